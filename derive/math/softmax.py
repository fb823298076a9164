"""The softmax, also of what a mask leaves, its logarithm and its normalizer."""

from sympy import Eq, Ne, Piecewise, exp, log

from derive import Axes, Axis, Forward, Given, Input, Sum

N, C = Axes("N"), Axis("C")


class Softmax(Forward):
    """The exponentials of a row, divided by their sum.

    Source: Bridle (1990), "Probabilistic interpretation of feedforward classification network
    outputs", equation 1.
    """

    x = Input(N, C)

    y = exp(x) / Sum(exp(x), C)


class MaskedSoftmax(Forward):
    """The softmax of the entries that take part: where the mask is not 0. The others are 0, and so
    is a row in which none takes part.

    Source: Vaswani et al. (2017), "Attention is all you need", section 3.2.3 (masking out).
    """

    x = Input(N, C)
    mask = Given(N, C)

    counts = Piecewise((exp(x), Ne(mask, 0)), (0, True))
    kept = Sum(Piecewise((1, Ne(mask, 0)), (0, True)), C)
    nothing = Piecewise((1, Eq(kept, 0)), (0, True))
    y = counts / (Sum(counts, C) + nothing)


class LogSoftmax(Forward):
    """The logarithm of the softmax.

    Source: Goodfellow, Bengio and Courville (2016), "Deep learning", equation 6.30.
    """

    x = Input(N, C)

    y = x - log(Sum(exp(x), C))


class Logsumexp(Forward):
    """The logarithm of the sum of a row's exponentials.

    Source: Boyd and Vandenberghe (2004), "Convex optimization", section 3.1.5.
    """

    x = Input(N, C)

    y = log(Sum(exp(x), C))
