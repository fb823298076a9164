"""Attention, to all keys or to those that a mask leaves."""

from sympy import Piecewise, exp, oo, sqrt

from derive import Axes, Axis, Forward, Given, Input, Position, Scalar, Sum
from derive.math.softmax import MaskedSoftmax, Softmax

B = Axes("B")  # examples and heads
T, S = Axis("T"), Axis("S")  # queries, keys
E, F = Axis("E"), Axis("F")  # features of a query, features of a value


class ScaledDotProductAttention(Forward):
    """For every query the average of the values, weighted by the softmax of its products with the
    keys.

    Source: Vaswani et al. (2017), "Attention is all you need", equation 1.
    """

    query = Input(B, T, E)
    key = Input(B, S, E)
    value = Input(B, S, F)
    scale = Scalar(1 / sqrt(E))

    scores = scale * Sum(query * key, E)
    probs = Softmax(scores)
    y = Sum(probs * value, S)


class MaskedAttention(Forward):
    """The same, with the keys that take part: where the mask, of booleans or numbers, is not 0. A
    query without any gets 0.

    Source: Vaswani et al. (2017), "Attention is all you need", section 3.2.3.
    """

    query = Input(B, T, E)
    key = Input(B, S, E)
    value = Input(B, S, F)
    mask = Given(B, T, S, broadcast=True)
    scale = Scalar(1 / sqrt(E))

    scores = scale * Sum(query * key, E)
    probs = MaskedSoftmax(scores, mask)
    y = Sum(probs * value, S)


class BiasedAttention(Forward):
    """The same, with a bias for every pair of a query and a key, such as for their distance. A key
    takes part where the bias is not ``-inf``; a query without any gets 0.

    Source: Press, Smith and Lewis (2022), "Train short, test long: attention with linear biases
    enables input length extrapolation", section 3; ``-inf`` as in
    ``torch.nn.functional.scaled_dot_product_attention``.
    """

    query = Input(B, T, E)
    key = Input(B, S, E)
    value = Input(B, S, F)
    bias = Input(B, T, S, broadcast=True)
    scale = Scalar(1 / sqrt(E))

    scores = scale * Sum(query * key, E) + bias
    mask = Piecewise((1, bias > -oo), (0, True))
    probs = MaskedSoftmax(scores, mask)
    y = Sum(probs * value, S)


class CausalAttention(Forward):
    """The same, with the keys that come no later than the query.

    Source: Vaswani et al. (2017), "Attention is all you need", section 3.2.3.
    """

    query = Input(B, T, E)
    key = Input(B, S, E)
    value = Input(B, S, F)
    scale = Scalar(1 / sqrt(E))

    scores = scale * Sum(query * key, E)
    counts = Piecewise((exp(scores), Position(S) <= Position(T)), (0, True))
    probs = counts / Sum(counts, S)
    y = Sum(probs * value, S)
