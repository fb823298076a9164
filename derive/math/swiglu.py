"""A linear unit that is gated by swish."""

from derive import Axes, Forward, Input
from derive.math.silu import Silu

N = Axes("N")


class Swiglu(Forward):
    """Every entry times the swish of its gate.

    Source: Shazeer (2020), "GLU variants improve transformer", equation 5, of the two projections.
    """

    gate = Input(N)
    x = Input(N)

    opened = Silu(gate)
    y = opened * x
