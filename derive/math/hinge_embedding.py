"""The hinge loss of distances."""

from sympy import Ne, Piecewise

from derive import Axes, Forward, Given, Input, Reduced, Scalar

N = Axes("N")


class HingeEmbedding(Forward):
    """The distance of every pair of target 1, and by how much that of target -1 misses a margin.

    Source: Hadsell, Chopra and LeCun (2006), "Dimensionality reduction by learning an invariant
    mapping", equation 4, with distances instead of their squares, as in
    ``torch.nn.functional.hinge_embedding_loss``. At the margin it has torch's derivative, -1.
    """

    x = Input(N)
    target = Given(N)
    margin = Scalar(1)

    alike = Piecewise((x, Ne(target, -1)), (0, True))
    missing = Piecewise((0, x > margin), (margin - x, True))
    apart = Piecewise((missing, Ne(target, 1)), (0, True))
    losses = alike + apart
    loss = Reduced(losses, mean=N)
