"""The smooth positive part."""

from sympy import exp, log

from derive import Axes, Forward, Input, Scalar

N = Axes("N")


class Softplus(Forward):
    """The smooth positive part of every entry, sharper for a larger beta.

    Source: Dugas et al. (2001), "Incorporating second-order functional knowledge for better option
    pricing", equation 5, with the beta of torch. There is no threshold above which it is taken for
    x: torch has one because its formula overflows.
    """

    x = Input(N)
    beta = Scalar(1, above=0)

    y = log(1 + exp(beta * x)) / beta
