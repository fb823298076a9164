"""The squared error."""

from derive import Axes, Forward, Input, Sum

N = Axes("N")


class MSENone(Forward):
    """The squared difference of every entry to its target.

    Source: Bishop (2006), "Pattern recognition and machine learning", section 1.5.5.
    """

    x = Input(N)
    target = Input(N)

    error = x - target
    losses = error**2


class MSESum(Forward):
    """The sum of all squared differences.

    Source: Bishop (2006), "Pattern recognition and machine learning", section 1.5.5.
    """

    x = Input(N)
    target = Input(N)

    losses = MSENone(x, target)
    loss = Sum(losses, N)


class MSE(Forward):
    """The mean of all squared differences.

    Source: Goodfellow, Bengio and Courville (2016), "Deep learning", equation 5.5.
    """

    x = Input(N)
    target = Input(N)

    losses = MSENone(x, target)
    loss = Sum(losses, N) / N
