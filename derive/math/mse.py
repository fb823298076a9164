"""The squared error."""

from derive import Axes, Forward, Input, Reduced

N = Axes("N")


class MSE(Forward):
    """The squared difference of every entry to its target.

    Source: Bishop (2006), "Pattern recognition and machine learning", section 1.5.5.
    """

    x = Input(N)
    target = Input(N)

    error = x - target
    losses = error**2
    loss = Reduced(losses, mean=N)
