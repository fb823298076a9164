"""A convolution of images."""

from derive import Axes, Axis, Forward, Input, Sum, Window

N = Axes("N")  # images: one, or any number of dimensions
I, O = Axis("I"), Axis("O")  # noqa: E741  # channels of the input and of the output
H, W = Axis("H"), Axis("W")  # rows and columns
Kh, Kw = Axis("Kh"), Axis("Kw")  # those of a window
Ho, Wo = Axis("Ho", H - Kh + 1), Axis("Wo", W - Kw + 1)  # where a window fits


class Conv2d(Forward):
    """Every window of Kh x Kw places times the weights of every output channel.

    Source: ``torch.nn.functional.conv2d``; a stride or padding is an argument of ``Window``.
    """

    x = Input(N, I, H, W)
    weight = Input(O, I, Kh, Kw)
    bias = Input(O, default=0)

    rows = Window(x, H, into=(Ho, Kh))
    windows = Window(rows, W, into=(Wo, Kw))
    y = Sum(windows * weight, I, Kh, Kw) + bias
