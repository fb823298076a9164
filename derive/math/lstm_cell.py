"""A step of a network with long short-term memory."""

from sympy import tanh

from derive import Axes, Axis, Forward, Input, OneHot, Sum, Unflatten
from derive.math.sigmoid import Sigmoid

N, K = Axes("N"), Axis("K")  # examples, features of the input
H = Axis("H")  # hidden units
Gate, P = Axis("Gate", 4), Axis("P")  # the gates, and their units one after the other
State = Axis("State", 2)  # what the step returns: the hidden state, the cell


class LSTMCell(Forward):
    """The hidden state and the cell after one input, side by side: ``h, c = lstm_cell(...)``.

    Source: Hochreiter and Schmidhuber (1997), "Long short-term memory", with the forget gate of
    Gers, Schmidhuber and Cummins (2000), "Learning to forget", equations 2 to 8; the order of the
    gates (input, forget, candidate, output) and two biases as in ``torch.nn.LSTMCell``.
    """

    x = Input(N, K)
    h = Input(N, H)
    c = Input(N, H)
    weight_ih = Input(P, K)
    weight_hh = Input(P, H)
    bias_ih = Input(P, default=0)
    bias_hh = Input(P, default=0)

    pre = Sum(x * weight_ih, K) + bias_ih + Sum(h * weight_hh, H) + bias_hh
    gates = Unflatten(pre, P, into=(Gate, H))
    to_i = Sum(OneHot(0, Gate) * gates, Gate)
    to_f = Sum(OneHot(1, Gate) * gates, Gate)
    to_g = Sum(OneHot(2, Gate) * gates, Gate)
    to_o = Sum(OneHot(3, Gate) * gates, Gate)
    i = Sigmoid(to_i)
    f = Sigmoid(to_f)
    g = tanh(to_g)
    o = Sigmoid(to_o)
    cell = f * c + i * g
    shown = tanh(cell)
    hidden = o * shown
    y = OneHot(0, State) * hidden + OneHot(1, State) * cell
