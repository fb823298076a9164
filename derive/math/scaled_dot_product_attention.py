"""Attention."""

from sympy import exp, sqrt

from derive import Axes, Axis, Forward, Input, Max, Sum

B = Axes("B")  # examples and heads
T, S = Axis("T"), Axis("S")  # queries, keys
E, F = Axis("E"), Axis("F")  # features of a query, features of a value


class ScaledDotProductAttention(Forward):
    """For every query the average of the values, weighted by the softmax of its products with the
    keys.

    Source: Vaswani et al. (2017), "Attention is all you need", equation 1. The row's maximum is
    subtracted for numerical safety only.
    """

    query = Input(B, T, E)
    key = Input(B, S, E)
    value = Input(B, S, F)

    scores = Sum(query * key, E) / sqrt(E)
    counts = exp(scores - Max(scores, S))
    probs = counts / Sum(counts, S)
    y = Sum(probs * value, S)
