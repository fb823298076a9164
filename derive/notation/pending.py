"""A call in a class body that stands for statements which have no names yet."""

from __future__ import annotations

from sympy import Expr

from derive.language.errors import NotationError, Place
from derive.language.names import unused
from derive.language.symbols import Tensor, axes_of, tensors_in


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

    def placed(self, body, name: str, place: Place) -> Expr:
        """The result, whose statements join ``body``; it has the ``name`` itself."""
        raise NotImplementedError

    def along(self, axes):
        raise NotationError(
            f"{self.written} is renamed before it has a name",
            "assign it to a name first, and rename that",
        )


def names_in(value: Expr) -> set[str]:
    """The names of the tensors in ``value``, and in the calls in it that have no name yet."""
    arguments = [a for call in value.atoms(Pending) for a in call.arguments]
    return {t.name for t in tensors_in(value)}.union(*map(names_in, arguments))


def placed_in(body, name: str, value: Expr, place: Place) -> Expr:
    """``value`` with every call in it replaced by its result, whose statements join ``body``."""
    if isinstance(value, Pending):
        return value.placed(body, name, place)
    for pending in sorted(value.atoms(Pending), key=str):
        own = unused(pending.own_name, lambda own: body.has(own) or own == name)
        placed = pending.placed(body, own, place)
        here = axes_of(placed)
        if here != set(pending.axes):
            raise NotationError(
                f"{pending.written} has its result along {', '.join(sorted(map(str, here)))} here, "
                "because the names of its own axes are taken",
                "give the call a line and a name of its own",
            )
        value = value.xreplace({pending: placed})
    return value
