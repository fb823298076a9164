"""The standard deviation."""

from sympy import Piecewise, sqrt

from derive import Axes, Axis, Forward, Input, Scalar
from derive.math.var import Var

N, C = Axes("N"), Axis("C")


class Std(Forward):
    """The root of the variance of every row, with its ``correction``.

    Source: Cramer (1946), "Mathematical methods of statistics", section 27.4. Where the variance
    is zero, the gradient is 0: of the subgradients there the one that torch takes.
    """

    x = Input(N, C)
    correction = Scalar(1, below=C)

    var = Var(x, correction)
    y = Piecewise((0, var <= 0), (sqrt(var), True))
