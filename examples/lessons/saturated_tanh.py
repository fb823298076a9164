"""A saturated tanh passes no gradient."""

from sympy import tanh

from gradform import Axis, Forward, Input, Sum

N, K, H = Axis("N"), Axis("K"), Axis("H")


class SaturatedTanh(Forward):
    """A hidden layer: a matrix product, and the hyperbolic tangent of it."""

    x = Input(N, K)
    weight = Input(K, H)

    u = Sum(x * weight, K)
    h = tanh(u)
