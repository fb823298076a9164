"""Vectors of length 1."""

from sympy import Piecewise, sqrt

from derive import Axes, Axis, Forward, Input, Scalar, Sum

N, C = Axes("N"), Axis("C")


class L2Normalize(Forward):
    """Every row divided by its Euclidean norm, or by eps where that is larger.

    Source: Schroff, Kalenichenko and Philbin (2015), "FaceNet", section 3 (embeddings on the
    hypersphere); eps as in ``torch.nn.functional.normalize``. Where the norm is less than eps, no
    gradient passes through it.
    """

    x = Input(N, C)
    eps = Scalar(1e-12)

    norm = sqrt(Sum(x**2, C))
    length = Piecewise((norm, norm >= eps), (eps, True))
    y = x / length
