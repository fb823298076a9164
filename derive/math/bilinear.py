"""A bilinear layer."""

from derive import Axes, Axis, Forward, Input, Sum

N, H = Axes("N"), Axis("H")  # examples, outputs
K, L = Axis("K"), Axis("L")  # features of the first and the second input


class Bilinear(Forward):
    """For every output the product of two vectors through a matrix of weights, plus a bias.

    Source: Tenenbaum and Freeman (2000), "Separating style and content with bilinear models",
    equation 1.
    """

    x1 = Input(N, K)
    x2 = Input(N, L)
    weight = Input(H, K, L)
    bias = Input(H, default=0)

    through = Sum(x1 * weight, K)
    y = Sum(through * x2, L) + bias
