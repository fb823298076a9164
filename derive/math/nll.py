"""The negative log likelihood of labels."""

from derive import Axis, Forward, Input, Label, OneHot, Sum

N, C = Axis("N"), Axis("C")


class NLLNone(Forward):
    """The negative log probability of every label, times the weight of its class.

    Source: Bishop (2006), "Pattern recognition and machine learning", equation 4.108.
    """

    logprobs = Input(N, C)
    labels = Label(N)
    weight = Input(C)

    losses = -Sum(OneHot(labels, C) * weight * logprobs, C)


class NLLSum(Forward):
    """The sum over all labels.

    Source: Bishop (2006), "Pattern recognition and machine learning", equation 4.108.
    """

    logprobs = Input(N, C)
    labels = Label(N)
    weight = Input(C)

    losses = NLLNone(logprobs, labels, weight)
    loss = Sum(losses, N)


class NLL(Forward):
    """The mean over all labels, each counted with the weight of its class.

    Source: Bishop (2006), "Pattern recognition and machine learning", equation 4.108.
    """

    logprobs = Input(N, C)
    labels = Label(N)
    weight = Input(C)

    losses = NLLNone(logprobs, labels, weight)
    counted = Sum(OneHot(labels, C) * weight, C)
    loss = Sum(losses, N) / Sum(counted, N)
