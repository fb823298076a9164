"""The smooth positive part."""

from sympy import Piecewise, exp, log

from derive import Axes, Forward, Input, Scalar

N = Axes("N")


class Softplus(Forward):
    """The smooth positive part of every entry, sharper for a larger beta.

    Source: Dugas et al. (2001), "Incorporating second-order functional knowledge for better option
    pricing", equation 5, with the beta of torch. Its threshold is below, which nothing needs but
    who compares: torch has one because its formula overflows.
    """

    x = Input(N)
    beta = Scalar(1, above=0)

    y = log(1 + exp(beta * x)) / beta


class SoftplusThreshold(Forward):
    """The same, taken for x itself where beta times x is above a threshold.

    Source: ``torch.nn.functional.softplus``, with its threshold.
    """

    x = Input(N)
    beta = Scalar(1, above=0)
    threshold = Scalar(20)

    inside = beta * x
    y = Piecewise((x, inside > threshold), (log(1 + exp(inside)) / beta, True))
