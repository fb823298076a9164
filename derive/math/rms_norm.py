"""Root mean square normalization."""

from sympy import sqrt

from derive import Axes, Axis, Forward, Input, Scalar, Sum

N, C = Axes("N"), Axis("C")


class RMSNorm(Forward):
    """Every row divided by its root mean square.

    Source: Zhang and Sennrich (2019), "Root mean square layer normalization", equation 4, with
    eps under the root.
    """

    x = Input(N, C)
    gain = Input(C, default=1)
    eps = Scalar(1e-5)

    square = Sum(x**2, C) / C
    inv_rms = 1 / sqrt(square + eps)
    xhat = x * inv_rms
    y = gain * xhat
