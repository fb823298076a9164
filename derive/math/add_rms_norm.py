"""The sum of a block and of what goes around it, and its root mean square normalization."""

from sympy import sqrt

from derive import Axes, Axis, Forward, Input, Outputs, Scalar, Sum

N, C = Axes("N"), Axis("C")


class AddRMSNorm(Forward):
    """The sum of two tensors and its RMS norm: ``y, h = add_rms_norm(x, residual, gain)``, where
    ``y`` goes into the next block and ``h`` around it.

    Source: Zhang and Sennrich (2019), "Root mean square layer normalization", equation 4, with
    eps under the root, in front of every block as in Touvron et al. (2023), "LLaMA: open and
    efficient foundation language models", section 2.2.
    """

    x = Input(N, C)
    residual = Input(N, C)
    gain = Input(C, default=1)
    eps = Scalar(1e-5)

    h = x + residual
    square = Sum(h**2, C) / C
    inv_rms = 1 / sqrt(square + eps)
    xhat = h * inv_rms
    y = gain * xhat
    outputs = Outputs(y, h)
