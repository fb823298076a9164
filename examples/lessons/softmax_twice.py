"""The backward of a softmax is a forward again."""

from sympy import exp

from gradform import Axis, Forward, Given, Input, Sum

C = Axis("C")


class SoftmaxTwice(Forward):
    """The gradient of a softmax dotted with v. Its gradient with respect to g is the tangent of
    the softmax, with respect to x its Hessian times v.
    """

    x = Input(C)
    g = Input(C)
    v = Given(C)

    counts = exp(x)
    y = counts / Sum(counts, C)
    backward = y * (g - Sum(g * y, C))
    total = Sum(v * backward, C)
