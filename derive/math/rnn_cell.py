"""A step of a simple recurrent network."""

from sympy import tanh

from derive import Axes, Axis, Forward, Input, Rename, Sum

N, K = Axes("N"), Axis("K")  # examples, features of the input
H, J = Axis("H"), Axis("J")  # hidden units, after and before the step


class RNNCell(Forward):
    """The hidden state after one input.

    Source: Elman (1990), "Finding structure in time", figure 2; two biases and the tanh as in
    ``torch.nn.RNNCell``.
    """

    x = Input(N, K)
    h = Input(N, H)
    weight_ih = Input(H, K)
    weight_hh = Input(H, J)
    bias_ih = Input(H, default=0)
    bias_hh = Input(H, default=0)

    pre = Sum(x * weight_ih, K) + bias_ih + Sum(Rename(h, H, J) * weight_hh, J) + bias_hh
    y = tanh(pre)
