"""A linear layer."""

from derive import Axes, Axis, Forward, Input, Sum

N = Axes("N")
K, H = Axis("K"), Axis("H")


class Linear(Forward):
    """The product of a batch of rows and a matrix of weights, plus a bias.

    Source: Goodfellow, Bengio and Courville (2016), "Deep learning", section 6.5.6 (the gradients
    of a matrix product).
    """

    x = Input(N, K)
    weight = Input(K, H)
    bias = Input(H, default=0)

    y = Sum(x * weight, K) + bias
