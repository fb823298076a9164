"""The rectifier."""

from derive import Axes, Forward, Input, Max

N = Axes("N")


class Relu(Forward):
    """The positive part of every entry.

    Source: Nair and Hinton (2010), "Rectified linear units improve restricted Boltzmann machines",
    section 2. Of the subgradients at 0 the one that torch takes: 0.
    """

    x = Input(N)

    y = Max(x, 0)
