"""A state read at the previous position, on lines above the one that defines it.

h = tanh(x + Sum(W * Rename(Previous(h, T, initial=h0), H, J), J))

The class body hands out an `Awaited` where such a line looks ``h`` up; `Previous` alone takes it.
"""

from __future__ import annotations

from collections.abc import Callable

from sympy import Expr

from derive.language.errors import NotationError
from derive.language.symbols import Axis, Tensor

StateBefore = Callable[[str, Axis, Expr], Tensor]  # of the name, along the axis, after an initial


class Awaited:
    """A statement ``name`` that a later line defines."""

    def __init__(self, name: str, before: StateBefore):
        self.name, self._before = name, before

    def before(self, axis: Axis, initial: Expr) -> Tensor:
        """The state before each place along ``axis``."""
        return self._before(self.name, axis, initial)

    def _operator(self, *_):
        raise NotationError(
            f"{self.name} is read on a line above its own, or on that, where only the place before "
            "is known",
            f"read it as Previous({self.name}, T, initial=...), or move one of the two lines",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _operator
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __neg__ = _sympy_ = _operator

    def __str__(self) -> str:
        return self.name
