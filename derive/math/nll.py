"""The negative log likelihood of labels."""

from derive import Axes, Axis, Forward, Given, Input, Label, OneHot, Reduced, Sum

N, C, S = Axis("N"), Axis("C"), Axes("S")


class NLL(Forward):
    """The negative log probability of every label, times the weight of its class.

    Source: Bishop (2006), "Pattern recognition and machine learning", equation 4.108.
    """

    logprobs = Input(N, C, S)
    labels = Label(N, S, ignored=-100)
    weight = Given(C, default=1)

    losses = -Sum(OneHot(labels, C) * weight * logprobs, C)
    counted = Sum(OneHot(labels, C) * weight, C)
    loss = Reduced(losses, mean=Sum(counted, N, S))
