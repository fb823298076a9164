"""The absolute error, smoothed where it is small."""

from sympy import Abs, Piecewise

from derive import Axes, Forward, Input, Scalar, Sum

N = Axes("N")


class SmoothL1None(Forward):
    """The absolute difference of every entry to its target, a parabola within beta.

    Source: Girshick (2015), "Fast R-CNN", equations 2 and 3, with the beta of torch. There is no
    kink where the two pieces meet.
    """

    x = Input(N)
    target = Input(N)
    beta = Scalar(1, at_least=0)

    error = x - target
    size = Abs(error)
    losses = Piecewise((size - beta / 2, size >= beta), (error**2 / (2 * beta), True))


class SmoothL1Sum(Forward):
    """The sum over all entries.

    Source: Girshick (2015), "Fast R-CNN", equations 2 and 3.
    """

    x = Input(N)
    target = Input(N)
    beta = Scalar(1, at_least=0)

    losses = SmoothL1None(x, target, beta)
    loss = Sum(losses, N)


class SmoothL1(Forward):
    """The mean over all entries.

    Source: Girshick (2015), "Fast R-CNN", equations 2 and 3.
    """

    x = Input(N)
    target = Input(N)
    beta = Scalar(1, at_least=0)

    losses = SmoothL1None(x, target, beta)
    loss = Sum(losses, N) / N
