"""The cosine of pairs of vectors, as a loss."""

from sympy import Eq, Piecewise, sqrt

from derive import Axes, Axis, Forward, Given, Input, Reduced, Scalar, Sum

N, C = Axes("N"), Axis("C")


class CosineEmbedding(Forward):
    """1 less the cosine of every pair of target 1; of target -1 the cosine above the margin.

    Source: ``torch.nn.functional.cosine_embedding_loss``, with its ``eps`` under the root. At the
    margin the gradient of the cosine is taken, as torch does for a clamp.
    """

    x1 = Input(N, C)
    x2 = Input(N, C)
    target = Given(N)
    margin = Scalar(0)
    eps = Scalar(1e-12)

    product = Sum(x1 * x2, C)
    norms = sqrt((Sum(x1**2, C) + eps) * (Sum(x2**2, C) + eps))
    cosine = product / norms
    excess = cosine - margin
    losses = Piecewise(
        (1 - cosine, Eq(target, 1)),
        (excess, Eq(target, -1) & (excess >= 0)),
        (0, True),
    )
    loss = Reduced(losses, mean=N)
