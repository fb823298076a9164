"""The absolute error, smoothed where it is small."""

from sympy import Abs, Piecewise

from derive import Axes, Forward, Input, Reduced, Scalar

N = Axes("N")


class SmoothL1(Forward):
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
    loss = Reduced(losses, mean=N)
