"""A linear unit that is gated by GELU."""

from derive import Axes, Forward, Input
from derive.math.gelu import GELU

N = Axes("N")


class GEGLU(Forward):
    """Every entry times the GELU of its gate.

    Source: Shazeer (2020), "GLU variants improve transformer", equation 5, of the two projections.
    """

    gate = Input(N)
    x = Input(N)

    opened = GELU(gate)
    y = opened * x
