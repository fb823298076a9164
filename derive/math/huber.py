"""The robust error of Huber."""

from sympy import Abs, Piecewise

from derive import Axes, Forward, Input, Reduced, Scalar

N = Axes("N")


class Huber(Forward):
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
    loss = Reduced(losses, mean=N)
