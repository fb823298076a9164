"""A saturated tanh passes no gradient."""

from sympy import tanh

from gradform import Axis, Forward, Input, Sum

N, K, H = Axis("N"), Axis("K"), Axis("H")


class SaturatedTanh(Forward):
    """A hidden layer: the hyperbolic tangent of a matrix product."""

    x = Input(N, K)
    weight = Input(K, H)

    u = Sum(x * weight, K)
    h = tanh(u)
