"""The calls of a line of a class body become statements of it."""

from __future__ import annotations

from sympy import Expr

from derive.language.errors import NotationError, Place
from derive.language.names import unused
from derive.language.pending import Pending
from derive.language.symbols import axes_of, tensors_in


def names_in(value: Expr) -> set[str]:
    """The names of the tensors in ``value``, and in the calls in it that have no name yet."""
    arguments = [a for call in value.atoms(Pending) for a in call.arguments]
    return {t.name for t in tensors_in(value)}.union(*map(names_in, arguments))


def placed_in(body, name: str, value: Expr, place: Place) -> Expr:
    """``value`` with every call in it replaced by its result, whose statements join ``body``."""
    if isinstance(value, Pending):
        return body.placed(value, name, place)
    for pending in sorted(value.atoms(Pending), key=str):
        own = unused(pending.own_name, lambda own: body.has(own) or own == name)
        placed = body.placed(pending, own, place)
        here = axes_of(placed)
        if here != set(pending.axes):
            raise NotationError(
                f"{pending.written} has its result along {', '.join(sorted(map(str, here)))} here, "
                "because the names of its own axes are taken",
                "give the call a line and a name of its own",
            )
        value = value.xreplace({pending: placed})
    return value
