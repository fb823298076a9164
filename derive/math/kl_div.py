"""The divergence of Kullback and Leibler, of log probabilities from a target."""

from sympy import Eq, Piecewise, exp, log

from derive import Axes, Axis, Forward, Input, Reduced

B, D = Axis("B"), Axes("D")


class KLDiv(Forward):
    """The divergence entry by entry; it is their sum, and torch's mean over all entries is not.

    Source: Kullback and Leibler (1951), "On information and sufficiency", equation 2.4, of log
    probabilities ``x``; "batchmean" is the mean over the distributions. A target of 0 adds nothing,
    since t*log(t) goes to 0 with t; the gradient of that product, which has no limit there, is
    taken as 0.
    """

    x = Input(B, D)
    target = Input(B, D)

    information = Piecewise((0, Eq(target, 0)), (target * log(target), True))
    losses = information - target * x
    loss = Reduced(losses, mean=B * D, batchmean=B)


class KLDivLogTarget(Forward):
    """The same entry by entry, from a target given by its logarithm.

    Source: Kullback and Leibler (1951), "On information and sufficiency", equation 2.4.
    """

    x = Input(B, D)
    target = Input(B, D)

    losses = exp(target) * (target - x)
    loss = Reduced(losses, mean=B * D, batchmean=B)
