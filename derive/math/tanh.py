"""The hyperbolic tangent."""

from sympy import tanh

from derive import Axes, Forward, Input

N = Axes("N")


class Tanh(Forward):
    """The hyperbolic tangent of every entry.

    Source: LeCun et al. (1998), "Efficient backprop", section 4.4.
    """

    x = Input(N)

    y = tanh(x)
