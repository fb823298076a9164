"""Batch normalization as it is trained and as it is used, of rows, sequences and images."""

from sympy import sqrt

from derive import Axes, Axis, Forward, Given, Input, Scalar, Sum

N, C = Axis("N"), Axis("C")  # examples, channels
S = Axes("S")  # places: none, of a sequence, of an image, ...


class BatchNormBiased(Forward):
    """Batch normalization with the biased variance (divided by the number of entries).

    Source: Ioffe and Szegedy (2015), "Batch normalization", algorithm 1 (rows) and section 3.2
    (every channel over all places of all examples, for images).
    """

    x = Input(N, C, S)
    gain = Input(C, default=1)
    bias = Input(C, default=0)
    eps = Scalar(1e-5, above=0)

    mean = Sum(x, N, S) / (N * S)
    diff = x - mean
    var = Sum(diff**2, N, S) / (N * S)
    inv_std = 1 / sqrt(var + eps)
    xhat = diff * inv_std
    y = gain * xhat + bias


class BatchNormEvaluation(Forward):
    """Batch normalization of examples that come one by one, with the mean and the variance that
    were found in training.

    Source: Ioffe and Szegedy (2015), "Batch normalization", algorithm 2.
    """

    x = Input(N, C, S)
    running_mean = Given(C)
    running_var = Given(C)
    gain = Input(C, default=1)
    bias = Input(C, default=0)
    eps = Scalar(1e-5)

    inv_std = 1 / sqrt(running_var + eps)
    xhat = (x - running_mean) * inv_std
    y = gain * xhat + bias
