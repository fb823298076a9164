"""Your own normalization.

Generate it with: gradform examples/fourth_moment_norm.py --out out
"""

from sympy import sqrt

from gradform import Axis, Forward, Input, Scalar, Sum

N, C = Axis("N"), Axis("C")


class FourthMomentNorm(Forward):
    """Rows centred and divided by the square root of their fourth moment."""

    x = Input(N, C)
    gain = Input(C)
    eps = Scalar(1e-5)

    mean = Sum(x, C) / C
    diff = x - mean
    fourth = Sum(diff**4, C) / C
    scale = 1 / sqrt(sqrt(fourth) + eps)
    y = gain * diff * scale
