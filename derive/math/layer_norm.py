"""Layer normalization."""

from sympy import sqrt

from derive import Axes, Axis, Forward, Input, Scalar, Sum

N, C = Axes("N"), Axis("C")


class LayerNorm(Forward):
    """Every row centred and divided by its standard deviation.

    Source: Ba, Kiros and Hinton (2016), "Layer normalization", equation 4; eps as in
    Ioffe and Szegedy (2015), "Batch normalization", algorithm 1.
    """

    x = Input(N, C)
    gain = Input(C, default=1)
    bias = Input(C, default=0)
    eps = Scalar(1e-5)

    mean = Sum(x, C) / C
    diff = x - mean
    var = Sum(diff**2, C) / C
    inv_std = 1 / sqrt(var + eps)
    xhat = diff * inv_std
    y = gain * xhat + bias
