"""A convolution along one dimension."""

from derive import Axes, Axis, Forward, Input, Sum, Window

N = Axes("N")  # examples: none, or any number of dimensions
C, D = Axis("C"), Axis("D")  # channels of the input and of the output
T, K = Axis("T"), Axis("K")  # places, and the entries of a window
To = Axis("To", T - K + 1)  # where a window fits


class Conv1d(Forward):
    """Every window of K places times the weights of every output channel.

    Source: ``torch.nn.functional.conv1d``; a stride or padding is an argument of ``Window``.
    """

    x = Input(N, C, T)
    weight = Input(D, C, K)
    bias = Input(D, default=0)

    y = Sum(Window(x, T, into=(To, K)) * weight, C, K) + bias
