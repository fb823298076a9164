"""The mish activation."""

from sympy import tanh

from derive import Axes, Forward, Input
from derive.math.softplus import Softplus

N = Axes("N")


class Mish(Forward):
    """Every entry times the hyperbolic tangent of its softplus.

    Source: Misra (2020), "Mish: a self regularized non-monotonic activation function", equation 1.
    """

    x = Input(N)

    smooth = Softplus(x)
    gate = tanh(smooth)
    y = x * gate
