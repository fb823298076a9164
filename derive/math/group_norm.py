"""Group normalization."""

from sympy import sqrt

from derive import Axes, Axis, Flatten, Forward, Input, Scalar, Size, Sum, Unflatten

N, C = Axis("N"), Axis("C")  # examples, channels
S = Axes("S")  # places: none, of a sequence, of an image, ...
G, K = Axis("G"), Axis("K")  # groups, channels of a group


class GroupNorm(Forward):
    """Every group of neighbouring channels of an example centred and divided by its standard
    deviation.

    Source: Wu and He (2018), "Group normalization", equations 1, 2 and 7.
    """

    x = Input(N, C, S)
    gain = Input(C, default=1)
    bias = Input(C, default=0)
    groups = Size(G)
    eps = Scalar(1e-5)

    grouped = Unflatten(x, C, into=(G, K))
    mean = Sum(grouped, K, S) / (K * S)
    diff = grouped - mean
    var = Sum(diff**2, K, S) / (K * S)
    inv_std = 1 / sqrt(var + eps)
    xhat = diff * inv_std
    scaled = Unflatten(gain, C, into=(G, K)) * xhat
    y = Flatten(scaled, G, K, into=C) + bias
