"""The loss of triplets with a margin."""

from sympy import Piecewise, sqrt

from derive import Axes, Axis, Forward, Input, Reduced, Scalar, Sum

N, C = Axes("N"), Axis("C")


class Triplet(Forward):
    """By how much a negative is not farther from its anchor than the positive and a margin.

    Source: Balntas et al. (2016), "Learning local feature descriptors with triplets and shallow
    convolutional neural networks", equation 3, with the ``eps`` that torch adds to differences. At
    the margin it has torch's derivative, that of the difference.
    """

    anchor = Input(N, C)
    positive = Input(N, C)
    negative = Input(N, C)
    margin = Scalar(1)
    eps = Scalar(1e-6)

    near = sqrt(Sum((anchor - positive + eps) ** 2, C))
    far = sqrt(Sum((anchor - negative + eps) ** 2, C))
    missing = near - far + margin
    losses = Piecewise((0, missing < 0), (missing, True))
    loss = Reduced(losses, mean=N)
