"""The softmax, its logarithm and its normalizer."""

from sympy import exp, log

from derive import Axes, Axis, Forward, Input, Sum

N, C = Axes("N"), Axis("C")


class Softmax(Forward):
    """The exponentials of a row, divided by their sum.

    Source: Bridle (1990), "Probabilistic interpretation of feedforward classification network
    outputs", equation 1.
    """

    x = Input(N, C)

    y = exp(x) / Sum(exp(x), C)


class LogSoftmax(Forward):
    """The logarithm of the softmax.

    Source: Goodfellow, Bengio and Courville (2016), "Deep learning", equation 6.30.
    """

    x = Input(N, C)

    probs = Softmax(x)
    y = log(probs)


class Logsumexp(Forward):
    """The logarithm of the sum of a row's exponentials.

    Source: Boyd and Vandenberghe (2004), "Convex optimization", section 3.1.5.
    """

    x = Input(N, C)

    y = log(Sum(exp(x), C))
