"""The sigmoid linear unit, also called swish."""

from derive import Axes, Forward, Input
from derive.math.sigmoid import Sigmoid

N = Axes("N")


class Silu(Forward):
    """Every entry times its own sigmoid.

    Source: Elfwing, Uchibe and Doya (2018), "Sigmoid-weighted linear units for neural network
    function approximation in reinforcement learning", equation 6.
    """

    x = Input(N)

    s = Sigmoid(x)
    y = x * s
