"""A call in a class body that stands for statements which have no names yet."""

from __future__ import annotations

from collections.abc import Iterable

from sympy import Expr

from derive.language.errors import NotationError
from derive.language.symbols import Axis, Tensor


class Pending(Tensor):
    """The result of such a call, until the assignment is known that gives it a name."""

    __slots__ = ()

    @property
    def written(self) -> str:
        """The call, as it is written in a message."""
        raise NotImplementedError

    @property
    def own_name(self) -> str:
        """What the result is called inside of a larger expression."""
        raise NotImplementedError

    @property
    def arguments(self) -> tuple[Expr, ...]:
        """What is passed."""
        raise NotImplementedError

    def along(self, axes: Iterable[Axis]) -> Tensor:
        raise NotationError(
            f"{self.written} is renamed before it has a name",
            "assign it to a name first, and rename that",
        )
