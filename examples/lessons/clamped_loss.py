"""Clamping the loss is not clipping the gradient."""

from sympy import Min

from gradform import Axis, Forward, Input, Scalar, Sum

N = Axis("N")


class ClampedLoss(Forward):
    """The mean squared error, with the loss of every example clamped."""

    guess = Input(N)
    target = Input(N)
    most = Scalar(1.0)

    miss = guess - target
    error = miss**2
    clamped = Min(error, most)
    loss = Sum(clamped, N) / N
