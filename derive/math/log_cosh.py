"""The logarithm of the hyperbolic cosine, as an error."""

from sympy import cosh, log

from derive import Axes, Forward, Input, Reduced

N = Axes("N")


class LogCosh(Forward):
    """A parabola where the difference to the target is small, its absolute value where it is large.

    Source: Green (1990), "Bayesian reconstructions from emission tomography data using a modified
    EM algorithm", equation 9.
    """

    x = Input(N)
    target = Input(N)

    error = x - target
    losses = log(cosh(error))
    loss = Reduced(losses, mean=N)
