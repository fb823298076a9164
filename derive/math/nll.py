"""The negative log likelihood of labels."""

from derive import Axes, Axis, Forward, Given, Input, Label, OneHot, Sum

N, C, S = Axis("N"), Axis("C"), Axes("S")


class NLLNone(Forward):
    """The negative log probability of every label, times the weight of its class.

    Source: Bishop (2006), "Pattern recognition and machine learning", equation 4.108.
    """

    logprobs = Input(N, C, S)
    labels = Label(N, S, ignored=-100)
    weight = Given(C, default=1)

    losses = -Sum(OneHot(labels, C) * weight * logprobs, C)


class NLLSum(Forward):
    """The sum over all labels.

    Source: Bishop (2006), "Pattern recognition and machine learning", equation 4.108.
    """

    logprobs = Input(N, C, S)
    labels = Label(N, S, ignored=-100)
    weight = Given(C, default=1)

    losses = NLLNone(logprobs, labels, weight)
    loss = Sum(losses, N, S)


class NLL(Forward):
    """The mean over all labels, each counted with the weight of its class.

    Source: Bishop (2006), "Pattern recognition and machine learning", equation 4.108.
    """

    logprobs = Input(N, C, S)
    labels = Label(N, S, ignored=-100)
    weight = Given(C, default=1)

    losses = NLLNone(logprobs, labels, weight)
    counted = Sum(OneHot(labels, C) * weight, C)
    loss = Sum(losses, N, S) / Sum(counted, N, S)
