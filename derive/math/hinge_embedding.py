"""The hinge loss of distances."""

from sympy import Ne, Piecewise

from derive import Axes, Forward, Given, Input, Max, Reduced, Scalar

N = Axes("N")


class HingeEmbedding(Forward):
    """The distance of every pair of target 1, and by how much that of target -1 misses a margin.

    Source: Hadsell, Chopra and LeCun (2006), "Dimensionality reduction by learning an invariant
    mapping", equation 4, with distances instead of their squares, as in
    ``torch.nn.functional.hinge_embedding_loss``. Of the subgradients at the margin it is 0.
    """

    x = Input(N)
    target = Given(N)
    margin = Scalar(1)

    alike = Piecewise((x, Ne(target, -1)), (0, True))
    apart = Piecewise((Max(margin - x, 0), Ne(target, 1)), (0, True))
    losses = alike + apart
    loss = Reduced(losses, mean=N)
