"""The variance."""

from derive import Axes, Axis, Forward, Input, Scalar, Sum

N, C = Axes("N"), Axis("C")


class Var(Forward):
    """The variance of every row; ``correction`` is what the number of entries is reduced by.

    Source: Bessel's correction (1) for a sample, 0 for a whole population: Cramer (1946),
    "Mathematical methods of statistics", section 27.4.
    """

    x = Input(N, C)
    correction = Scalar(1, below=C)

    mean = Sum(x, C) / C
    diff = x - mean
    y = Sum(diff**2, C) / (C - correction)
