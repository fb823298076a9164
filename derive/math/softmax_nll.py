"""Softmax and negative log likelihood, in the atoms of the hand-written exercise."""

from sympy import exp, log

from derive import Axis, Forward, Input, Label, Max, OneHot, Sum

N, C = Axis("N"), Axis("C")


class SoftmaxNLL(Forward):
    """Mean negative log likelihood of the labels under the softmax of the logits.

    Source: Bridle (1990), "Probabilistic interpretation of feedforward classification network
    outputs". The row's maximum is subtracted for numerical safety only.
    """

    logits = Input(N, C)
    labels = Label(N)

    logit_maxes = Max(logits, C)
    norm_logits = logits - logit_maxes
    counts = exp(norm_logits)
    counts_sum = Sum(counts, C)
    counts_sum_inv = 1 / counts_sum
    probs = counts * counts_sum_inv
    logprobs = log(probs)
    loss = -Sum(OneHot(labels, C) * logprobs, N, C) / N
