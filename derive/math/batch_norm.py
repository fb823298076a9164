"""Batch normalization of a batch of rows."""

from sympy import Rational

from derive import Axis, Forward, Input, Scalar, Sum

N, C = Axis("N"), Axis("C")


class BatchNorm(Forward):
    """Batch normalization with the unbiased (n-1) variance.

    Source: Ioffe and Szegedy (2015), "Batch normalization", algorithm 1, with Bessel's correction
    of the variance.
    """

    x = Input(N, C)
    gain = Input(C)
    bias = Input(C)
    eps = Scalar(1e-5, above=0)

    mean = Sum(x, N) / N
    diff = x - mean
    diff2 = diff**2
    var = Sum(diff2, N) / (N - 1)  # Bessel's correction
    inv_std = (var + eps) ** Rational(-1, 2)
    xhat = diff * inv_std
    y = gain * xhat + bias
