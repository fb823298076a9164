"""The absolute error."""

from sympy import Abs

from derive import Axes, Forward, Input, Reduced

N = Axes("N")


class L1(Forward):
    """The absolute difference of every entry to its target.

    Source: Hastie, Tibshirani and Friedman (2009), "The elements of statistical learning",
    equation 10.22. Of the subgradients at 0 the one that torch takes: 0.
    """

    x = Input(N)
    target = Input(N)

    losses = Abs(x - target)
    loss = Reduced(losses, mean=N)
