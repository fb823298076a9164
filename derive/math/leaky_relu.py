"""The leaky rectifier."""

from sympy import Piecewise

from derive import Axes, Forward, Input, Scalar

N = Axes("N")


class LeakyRelu(Forward):
    """Every entry, the negative ones times a small slope.

    Source: Maas, Hannun and Ng (2013), "Rectifier nonlinearities improve neural network acoustic
    models", equation 2. Of the subgradients at 0 the one that torch takes: the negative slope.
    """

    x = Input(N)
    negative_slope = Scalar(0.01)

    y = Piecewise((x, x > 0), (negative_slope * x, True))
