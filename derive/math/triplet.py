"""The loss of triplets with a margin."""

from sympy import sqrt

from derive import Axes, Axis, Forward, Input, Max, Reduced, Scalar, Sum

N, C = Axes("N"), Axis("C")


class Triplet(Forward):
    """By how much a negative is not farther from its anchor than the positive and a margin.

    Source: Balntas et al. (2016), "Learning local feature descriptors with triplets and shallow
    convolutional neural networks", equation 3, with the ``eps`` that torch adds to differences. Of
    the subgradients at the margin it is 0.
    """

    anchor = Input(N, C)
    positive = Input(N, C)
    negative = Input(N, C)
    margin = Scalar(1)
    eps = Scalar(1e-6)

    near = sqrt(Sum((anchor - positive + eps) ** 2, C))
    far = sqrt(Sum((anchor - negative + eps) ** 2, C))
    losses = Max(near - far + margin, 0)
    loss = Reduced(losses, mean=N)
