"""A step of a network with gated recurrent units."""

from sympy import tanh

from derive import Axes, Axis, Forward, Input, OneHot, Sum, Unflatten
from derive.math.sigmoid import Sigmoid

N, K = Axes("N"), Axis("K")  # examples, features of the input
H = Axis("H")  # hidden units
Gate, P = Axis("Gate", 3), Axis("P")  # the gates, and their units one after the other


class GRUCell(Forward):
    """The hidden state after one input.

    Source: Cho et al. (2014), "Learning phrase representations using RNN encoder-decoder",
    equations 5 to 8, with the reset gate behind the product, the order of the gates (reset, update,
    candidate) and two biases as in ``torch.nn.GRUCell``.
    """

    x = Input(N, K)
    h = Input(N, H)
    weight_ih = Input(P, K)
    weight_hh = Input(P, H)
    bias_ih = Input(P, default=0)
    bias_hh = Input(P, default=0)

    from_input = Unflatten(Sum(x * weight_ih, K) + bias_ih, P, into=(Gate, H))
    from_state = Unflatten(Sum(h * weight_hh, H) + bias_hh, P, into=(Gate, H))
    both = from_input + from_state
    to_reset = Sum(OneHot(0, Gate) * both, Gate)
    to_update = Sum(OneHot(1, Gate) * both, Gate)
    proposed = Sum(OneHot(2, Gate) * from_state, Gate)
    reset = Sigmoid(to_reset)
    update = Sigmoid(to_update)
    to_candidate = Sum(OneHot(2, Gate) * from_input, Gate) + reset * proposed
    candidate = tanh(to_candidate)
    y = (1 - update) * candidate + update * h
