"""Attention that is linear in the length: to all keys so far."""

from derive import Axes, Axis, CumSum, Forward, Input, Sum
from derive.math.elu import Elu

B = Axes("B")  # examples and heads
T = Axis("T")  # places
E, F = Axis("E"), Axis("F")  # features of a query, features of a value


class LinearAttention(Forward):
    """For every query the average of the values so far, weighted by the products of features that
    are positive. What is carried along is a sum of outer products, as large as a head.

    Source: Katharopoulos et al. (2020), "Transformers are RNNs: fast autoregressive transformers
    with linear attention", equations 7, 9 and 10.
    """

    query = Input(B, T, E)
    key = Input(B, T, E)
    value = Input(B, T, F)

    q = Elu(query) + 1
    k = Elu(key) + 1
    state = CumSum(k * value, T)
    weight = CumSum(k, T)
    y = Sum(q * state, E) / Sum(q * weight, E)
