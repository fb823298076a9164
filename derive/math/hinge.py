"""The hinge loss."""

from derive import Axes, Forward, Given, Input, Max, Reduced

N = Axes("N")


class Hinge(Forward):
    """How far every score is from the right side of its margin; targets are 1 and -1.

    Source: Cortes and Vapnik (1995), "Support-vector networks", equation 23. Of the subgradients
    at the kink the one that torch takes for a relu: 0.
    """

    x = Input(N)
    target = Given(N)

    missing = 1 - target * x
    losses = Max(missing, 0)
    loss = Reduced(losses, mean=N)
