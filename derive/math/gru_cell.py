"""A step of a network with gated recurrent units."""

from sympy import exp, tanh

from derive import Axes, Axis, Forward, Input, OneHot, Sum, Unflatten

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
    bias_ih = Input(P)
    bias_hh = Input(P)

    from_input = Unflatten(Sum(x * weight_ih, K) + bias_ih, P, into=(Gate, H))
    from_state = Unflatten(Sum(h * weight_hh, H) + bias_hh, P, into=(Gate, H))
    both = from_input + from_state
    reset = 1 / (1 + exp(-Sum(OneHot(0, Gate) * both, Gate)))
    update = 1 / (1 + exp(-Sum(OneHot(1, Gate) * both, Gate)))
    proposed = Sum(OneHot(2, Gate) * from_state, Gate)
    candidate = tanh(Sum(OneHot(2, Gate) * from_input, Gate) + reset * proposed)
    y = (1 - update) * candidate + update * h
