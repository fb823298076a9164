"""The divergence of Kullback and Leibler, of log probabilities from a target."""

from sympy import Eq, Piecewise, exp, log

from derive import Axes, Axis, Forward, Input, Sum

N, D = Axes("N"), Axes("D")
B = Axis("B")


class KLDivNone(Forward):
    """The divergence entry by entry, before anything is summed.

    Source: Kullback and Leibler (1951), "On information and sufficiency", equation 2.4, of log
    probabilities ``x``. A target of 0 adds nothing, since t*log(t) goes to 0 with t; the gradient
    of that product, which has no limit there, is taken as 0.
    """

    x = Input(N)
    target = Input(N)

    information = Piecewise((0, Eq(target, 0)), (target * log(target), True))
    losses = information - target * x


class KLDivSum(Forward):
    """The sum over all entries.

    Source: Kullback and Leibler (1951), "On information and sufficiency", equation 2.4.
    """

    x = Input(N)
    target = Input(N)

    losses = KLDivNone(x, target)
    loss = Sum(losses, N)


class KLDiv(Forward):
    """The mean over all entries, as torch defines it: not the divergence, which is the sum.

    Source: Kullback and Leibler (1951), "On information and sufficiency", equation 2.4.
    """

    x = Input(N)
    target = Input(N)

    losses = KLDivNone(x, target)
    loss = Sum(losses, N) / N


class KLDivBatchmean(Forward):
    """The mean over the batch of the divergence of every distribution.

    Source: Kullback and Leibler (1951), "On information and sufficiency", equation 2.4.
    """

    x = Input(B, D)
    target = Input(B, D)

    losses = KLDivNone(x, target)
    loss = Sum(losses, B, D) / B


class KLDivLogTargetNone(Forward):
    """The same entry by entry, from a target given by its logarithm.

    Source: Kullback and Leibler (1951), "On information and sufficiency", equation 2.4.
    """

    x = Input(N)
    target = Input(N)

    losses = exp(target) * (target - x)


class KLDivLogTargetSum(Forward):
    """The sum over all entries, from a target given by its logarithm.

    Source: Kullback and Leibler (1951), "On information and sufficiency", equation 2.4.
    """

    x = Input(N)
    target = Input(N)

    losses = KLDivLogTargetNone(x, target)
    loss = Sum(losses, N)


class KLDivLogTarget(Forward):
    """The mean over all entries, from a target given by its logarithm.

    Source: Kullback and Leibler (1951), "On information and sufficiency", equation 2.4.
    """

    x = Input(N)
    target = Input(N)

    losses = KLDivLogTargetNone(x, target)
    loss = Sum(losses, N) / N


class KLDivLogTargetBatchmean(Forward):
    """The mean over the batch, from a target given by its logarithm.

    Source: Kullback and Leibler (1951), "On information and sufficiency", equation 2.4.
    """

    x = Input(B, D)
    target = Input(B, D)

    losses = KLDivLogTargetNone(x, target)
    loss = Sum(losses, B, D) / B
