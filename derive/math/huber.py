"""The robust error of Huber."""

from sympy import Abs, Piecewise

from derive import Axes, Forward, Input, Scalar, Sum

N = Axes("N")


class HuberNone(Forward):
    """Half the squared difference of every entry to its target, linear beyond delta.

    Source: Huber (1964), "Robust estimation of a location parameter", section 1. There is no kink
    where the two pieces meet.
    """

    x = Input(N)
    target = Input(N)
    delta = Scalar(1, above=0)

    error = x - target
    size = Abs(error)
    losses = Piecewise((delta * (size - delta / 2), size > delta), (error**2 / 2, True))


class HuberSum(Forward):
    """The sum over all entries.

    Source: Huber (1964), "Robust estimation of a location parameter", section 1.
    """

    x = Input(N)
    target = Input(N)
    delta = Scalar(1, above=0)

    losses = HuberNone(x, target, delta)
    loss = Sum(losses, N)


class Huber(Forward):
    """The mean over all entries.

    Source: Huber (1964), "Robust estimation of a location parameter", section 1.
    """

    x = Input(N)
    target = Input(N)
    delta = Scalar(1, above=0)

    losses = HuberNone(x, target, delta)
    loss = Sum(losses, N) / N
