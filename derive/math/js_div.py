"""The divergence of Jensen and Shannon."""

from sympy import Eq, Piecewise, log

from derive import Axes, Axis, Forward, Input, Sum

N, C = Axes("N"), Axis("C")


class Entropy(Forward):
    """The entropy of every distribution.

    Source: Shannon (1948), "A mathematical theory of communication", section 6. A probability of 0
    adds nothing, and the gradient there is taken as 0.
    """

    probs = Input(N, C)

    information = Piecewise((0, Eq(probs, 0)), (probs * log(probs), True))
    uncertainty = -Sum(information, C)


class JSDiv(Forward):
    """The mean over the batch of the divergence of two distributions.

    Source: Lin (1991), "Divergence measures based on the Shannon entropy", equation 4.1, with
    equal weights.
    """

    p = Input(N, C)
    q = Input(N, C)

    mixture = (p + q) / 2
    of_mixture = Entropy(mixture)
    of_p = Entropy(p)
    of_q = Entropy(q)
    divergences = of_mixture - (of_p + of_q) / 2
    loss = Sum(divergences, N) / N
