"""The cosine of pairs of vectors, as a loss."""

from sympy import Eq, Piecewise, sqrt

from derive import Axes, Axis, Forward, Given, Input, Scalar, Sum

N, C = Axes("N"), Axis("C")


class CosineEmbeddingNone(Forward):
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


class CosineEmbeddingSum(Forward):
    """The sum over all pairs.

    Source: ``torch.nn.functional.cosine_embedding_loss``.
    """

    x1 = Input(N, C)
    x2 = Input(N, C)
    target = Given(N)
    margin = Scalar(0)
    eps = Scalar(1e-12)

    losses = CosineEmbeddingNone(x1, x2, target, margin, eps)
    loss = Sum(losses, N)


class CosineEmbedding(Forward):
    """The mean over all pairs.

    Source: ``torch.nn.functional.cosine_embedding_loss``.
    """

    x1 = Input(N, C)
    x2 = Input(N, C)
    target = Given(N)
    margin = Scalar(0)
    eps = Scalar(1e-12)

    losses = CosineEmbeddingNone(x1, x2, target, margin, eps)
    loss = Sum(losses, N) / N
