"""The exponential linear unit."""

from sympy import Piecewise, exp

from derive import Axes, Forward, Input, Scalar

N = Axes("N")


class Elu(Forward):
    """Every entry, the negative ones saturating at -alpha.

    Source: Clevert, Unterthiner and Hochreiter (2016), "Fast and accurate deep network learning by
    exponential linear units (ELUs)", equation 16. At 0, which is a kink unless alpha is 1, the
    gradient from the left is taken, as torch does: alpha.
    """

    x = Input(N)
    alpha = Scalar(1)

    y = Piecewise((alpha * (exp(x) - 1), x <= 0), (x, True))
