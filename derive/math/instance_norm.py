"""Instance normalization."""

from sympy import sqrt

from derive import Axes, Axis, Forward, Input, Scalar, Sum

N, C = Axis("N"), Axis("C")  # examples, channels
S = Axes("S")  # places: none, of a sequence, of an image, ...


class InstanceNorm(Forward):
    """Every channel of every example centred and divided by its standard deviation.

    Source: Ulyanov, Vedaldi and Lempitsky (2016), "Instance normalization", equation 4, with a
    gain and a bias for every channel.
    """

    x = Input(N, C, S)
    gain = Input(C, default=1)
    bias = Input(C, default=0)
    eps = Scalar(1e-5)

    mean = Sum(x, S) / S
    diff = x - mean
    var = Sum(diff**2, S) / S
    inv_std = 1 / sqrt(var + eps)
    xhat = diff * inv_std
    y = gain * xhat + bias
