"""The backward of a softmax is a forward again."""

from sympy import exp

from gradform import Axis, Forward, Given, Input, Sum

C = Axis("C")


class SoftmaxTwice(Forward):
    """What the gradient of a softmax comes to along v: a number whose own gradients are the
    tangent of the softmax, by g, and its Hessian times v, by x.
    """

    x = Input(C)
    g = Input(C)
    v = Given(C)

    counts = exp(x)
    y = counts / Sum(counts, C)
    backward = y * (g - Sum(g * y, C))
    total = Sum(v * backward, C)
