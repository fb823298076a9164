"""The Gaussian error linear unit, exact and by its approximation."""

from sympy import erf, pi, sqrt, tanh

from derive import Axes, Forward, Input

N = Axes("N")


class GELU(Forward):
    """Every entry times the probability that a standard normal variable is smaller.

    Source: Hendrycks and Gimpel (2016), "Gaussian error linear units (GELUs)", section 2.
    """

    x = Input(N)

    y = x * (1 + erf(x / sqrt(2))) / 2


class GELUTanh(Forward):
    """The same with an approximation of the normal distribution function.

    Source: Hendrycks and Gimpel (2016), "Gaussian error linear units (GELUs)", section 2.
    """

    x = Input(N)

    t = tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))
    y = x * (1 + t) / 2
