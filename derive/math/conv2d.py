"""A convolution of images."""

from derive import Axes, Axis, Forward, Input, Sum, Window

N = Axes("N")  # images: one, or any number of dimensions
C, D = Axis("C"), Axis("D")  # channels of the input and of the output
H, W = Axis("H"), Axis("W")  # rows and columns
Kh, Kw = Axis("Kh"), Axis("Kw")  # those of a window
Ho, Wo = Axis("Ho", H - Kh + 1), Axis("Wo", W - Kw + 1)  # where a window fits


class Conv2d(Forward):
    """Every window of Kh x Kw places times the weights of every output channel.

    Source: ``torch.nn.functional.conv2d``; a stride or padding is an argument of ``Window``.
    """

    x = Input(N, C, H, W)
    weight = Input(D, C, Kh, Kw)
    bias = Input(D, default=0)

    rows = Window(x, H, into=(Ho, Kh))
    windows = Window(rows, W, into=(Wo, Kw))
    y = Sum(windows * weight, C, Kh, Kw) + bias
