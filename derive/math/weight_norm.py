"""Weight normalization."""

from sympy import sqrt

from derive import Axes, Axis, Forward, Input, Sum

H, K = Axis("H"), Axes("K")  # outputs, whatever they are computed from


class WeightNorm(Forward):
    """The weights of every output as a length times a direction.

    Source: Salimans and Kingma (2016), "Weight normalization", equation 2.
    """

    v = Input(H, K)
    g = Input(H)

    norm = sqrt(Sum(v**2, K))
    w = g * v / norm
