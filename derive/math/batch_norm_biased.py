"""Batch normalization as it is trained, of rows, sequences and images."""

from sympy import sqrt

from derive import Axes, Axis, Forward, Input, Scalar, Sum

N, C = Axis("N"), Axis("C")  # examples, channels
S = Axes("S")  # places: none, of a sequence, of an image, ...


class BatchNormBiased(Forward):
    """Batch normalization with the biased variance (divided by the number of entries).

    Source: Ioffe and Szegedy (2015), "Batch normalization", algorithm 1 (rows) and section 3.2
    (every channel over all places of all examples, for images).
    """

    x = Input(N, C, S)
    gain = Input(C)
    bias = Input(C)
    eps = Scalar(1e-5)

    mean = Sum(x, N, S) / (N * S)
    diff = x - mean
    var = Sum(diff**2, N, S) / (N * S)
    inv_std = 1 / sqrt(var + eps)
    xhat = diff * inv_std
    y = gain * xhat + bias
