"""Calls in a class body that stand for statements without names yet."""

from __future__ import annotations

from collections.abc import Iterable

from sympy import Expr

from derive.language.errors import NotationError
from derive.language.symbols import Axis, Tensor


class Pending(Tensor):
    """The result of such a call, until an assignment gives it a name."""

    __slots__ = ()

    @property
    def written(self) -> str:
        """The call as messages show it."""
        raise NotImplementedError

    @property
    def own_name(self) -> str:
        """The name of the result inside a larger expression."""
        raise NotImplementedError

    @property
    def arguments(self) -> tuple[Expr, ...]:
        """The arguments of the call."""
        raise NotImplementedError

    def along(self, axes: Iterable[Axis]) -> Tensor:
        raise NotationError(
            f"{self.written} is renamed before it has a name",
            "assign it to a name first, and rename that",
        )
