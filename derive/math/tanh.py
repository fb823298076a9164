"""The hyperbolic tangent."""

from sympy import tanh

from derive import Axis, Forward, Input

N, C = Axis("N"), Axis("C")


class Tanh(Forward):
    """The hyperbolic tangent of every entry.

    Source: LeCun et al. (1998), "Efficient backprop", section 4.4.
    """

    x = Input(N, C)

    y = tanh(x)
