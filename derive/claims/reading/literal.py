"""A formula as typed: quotients, powers and logarithms are left unevaluated.

SymPy turns ``x**2/x`` and ``exp(log(x))`` into ``x``, which is right wherever both are defined. In
torch the typed form has no value where x is 0 or negative. A text is therefore read a second time
with these nodes in place of SymPy's operations; `plain` evaluates them, `needs` lists the
conditions under which they are defined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from sympy import Basic, Expr, Function, log

NOT_ZERO, NOT_NEGATIVE, POSITIVE = "!=", ">=", ">"
Kind = OneOf["!=", ">=", ">"]


class AsWritten(Function):
    """An operation that SymPy does not evaluate."""

    is_real = True

    def meaning(self) -> Expr:
        """The same operation, evaluated by SymPy."""
        raise NotImplementedError

    def needed(self) -> Need | None:
        """The condition on its operand, or None if it is defined everywhere."""
        return None


class WrittenQuotient(AsWritten):
    """``a / b``"""

    def meaning(self) -> Expr:
        return self.args[0] / self.args[1]

    def needed(self) -> Need | None:
        return Need(NOT_ZERO, plain(self.args[1]))


class WrittenPower(AsWritten):
    """``base ** exponent``"""

    def meaning(self) -> Expr:
        return self.args[0] ** self.args[1]

    def needed(self) -> Need | None:
        base, exponent = plain(self.args[0]), plain(self.args[1])
        if exponent.is_Integer:
            return Need(NOT_ZERO, base) if exponent.is_negative else None
        return Need(NOT_NEGATIVE if exponent.is_positive else POSITIVE, base)


class Logarithm(AsWritten):
    """``log(a)``"""

    def meaning(self) -> Expr:
        return log(self.args[0])

    def needed(self) -> Need | None:
        return Need(POSITIVE, plain(self.args[0]))


class BesideCancelled(AsWritten):
    """``a``, with an operand ``b`` that SymPy cancelled (``b - b``, ``0*b``): defined only where
    ``b`` is.
    """

    def meaning(self) -> Expr:
        return self.args[0]


@dataclass(frozen=True)
class Need:
    """A condition such as ``operand > 0`` under which an operation is defined."""

    kind: Kind
    operand: Expr

    @property
    def is_given(self) -> bool:
        """Whether the condition holds for all values."""
        e = self.operand
        known = {NOT_ZERO: e.is_nonzero, NOT_NEGATIVE: e.is_nonnegative, POSITIVE: e.is_positive}
        return known[self.kind] is True


def with_lost(e: Expr, before: tuple[Expr, ...]) -> Expr:
    """``e`` with the unevaluated operations of its parts ``before`` that SymPy cancelled."""
    lost = set().union(*(part.atoms(AsWritten) for part in before)) - e.atoms(AsWritten)
    for node in sorted(lost, key=str):
        if not any(node in other.atoms(AsWritten) for other in lost - {node}):
            e = BesideCancelled(e, node)
    return e


def plain(e: Basic) -> Basic:
    """``e`` with SymPy's own operations throughout."""
    if not e.atoms(AsWritten):
        return e
    e = e.func(*map(plain, e.args))
    return e.meaning() if isinstance(e, AsWritten) else e


def needs(e: Expr) -> dict[Need, list[AsWritten]]:
    """The conditions that ``e`` needs and that do not hold everywhere, each with the operations
    behind it.
    """
    found: dict[Need, list[AsWritten]] = {}
    for node in sorted(e.atoms(AsWritten), key=str):
        need = node.needed()
        if need is not None and not need.is_given:
            found.setdefault(need, []).append(node)
    return found


def with_only(e: Basic, kept: list[AsWritten]) -> Basic:
    """``e`` with SymPy's operations except for the ``kept`` ones and the operations that contain
    them.
    """
    if not e.atoms(AsWritten):
        return e
    made = e.func(*(with_only(arg, kept) for arg in e.args))
    is_needed = e in kept or any(node in kept for node in e.atoms(AsWritten))
    return made.meaning() if isinstance(e, AsWritten) and not is_needed else made


def divided(a: Expr, b: Expr) -> Expr:
    return a / b if b.is_Number else WrittenQuotient(a, b)


def raised(base: Expr, exponent: Expr) -> Expr:
    whole = exponent.is_Integer and exponent.is_nonnegative
    return base**exponent if whole or base.is_Number else WrittenPower(base, exponent)


def logarithm(e: Expr) -> Expr:
    return log(e) if e.is_Number else Logarithm(e)
