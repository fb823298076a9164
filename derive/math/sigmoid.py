"""The logistic sigmoid."""

from sympy import exp

from derive import Axes, Forward, Input

N = Axes("N")


class Sigmoid(Forward):
    """The logistic function of every entry.

    Source: Goodfellow, Bengio and Courville (2016), "Deep learning", equation 3.30.
    """

    x = Input(N)

    y = 1 / (1 + exp(-x))
