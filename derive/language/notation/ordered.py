"""A statement with the order of its dimensions given by its line.

    R = Ordered(entries, N, I, J)

It is the mathematics of ``entries``: only what is stored has its dimensions in that order.
"""

from __future__ import annotations

from sympy import Expr

from derive.language.array_node import expression_of
from derive.language.errors import NotationError
from derive.language.symbols import Axis, axes_of, ordered


class Ordered:
    """``y = Ordered(e, N, C)``: the dimensions of ``y`` are along N and then C, as after torch's
    ``permute``.
    """

    def __init__(self, e: Expr | float, *axes: Axis):
        self.expression, self.axes = expression_of(e, "Ordered"), axes
        own = ordered(axes_of(self.expression))
        if sorted(map(str, axes)) != [*map(str, own)] or {*axes} != {*own}:
            names = ", ".join(map(str, own)) or "none"
            raise NotationError(
                f"Ordered({e}, {', '.join(map(str, axes))}): the axes of {e} are {names}",
                "name each of them once, in the order of the dimensions",
            )

    def _operator(self, *_):
        raise NotationError(
            "Ordered(...) stands inside an expression",
            "the order is that of a statement: give it a line of its own, y = Ordered(e, N, C)",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _operator
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __neg__ = _operator
