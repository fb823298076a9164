"""A formula as it is written: its quotients, powers and logarithms stand as they were typed.

SymPy makes ``x`` of ``x**2/x`` and of ``exp(log(x))``, and rightly so where both have a value. What
torch computes has none where x is 0, or negative. So a text is read a second time with these nodes
instead of SymPy's own operations; `plain` gives what they mean, `needs` what they need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from sympy import Basic, Expr, Function, log

NOT_ZERO, NOT_NEGATIVE, POSITIVE = "!=", ">=", ">"
Kind = OneOf["!=", ">=", ">"]


class AsWritten(Function):
    """An operation that SymPy leaves alone."""

    is_real = True

    def meaning(self) -> Expr:
        """The same with SymPy's operation."""
        raise NotImplementedError

    def needed(self) -> Need | None:
        """What its operand must be, if not every number has a value."""
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
    """``a``, beside ``b`` that SymPy cancelled: ``b - b``, or ``0*b``, which has a value where b
    has.
    """

    def meaning(self) -> Expr:
        return self.args[0]


@dataclass(frozen=True)
class Need:
    """``operand > 0``, say, where an operation has a value."""

    kind: Kind
    operand: Expr

    @property
    def is_given(self) -> bool:
        """Whether it holds for every number."""
        e = self.operand
        known = {NOT_ZERO: e.is_nonzero, NOT_NEGATIVE: e.is_nonnegative, POSITIVE: e.is_positive}
        return known[self.kind] is True


def with_lost(e: Expr, before: tuple[Expr, ...]) -> Expr:
    """``e`` with the operations that were in its parts ``before``, and that SymPy cancelled."""
    lost = set().union(*(part.atoms(AsWritten) for part in before)) - e.atoms(AsWritten)
    for node in sorted(lost, key=str):
        if not any(node in other.atoms(AsWritten) for other in lost - {node}):
            e = BesideCancelled(e, node)
    return e


def plain(e: Basic) -> Basic:
    """``e`` with SymPy's own operations."""
    if not e.atoms(AsWritten):
        return e
    e = e.func(*map(plain, e.args))
    return e.meaning() if isinstance(e, AsWritten) else e


def needs(e: Expr) -> dict[Need, list[AsWritten]]:
    """What the operations in ``e`` need, unless it is given, and which of them need it."""
    found: dict[Need, list[AsWritten]] = {}
    for node in sorted(e.atoms(AsWritten), key=str):
        need = node.needed()
        if need is not None and not need.is_given:
            found.setdefault(need, []).append(node)
    return found


def with_only(e: Basic, kept: list[AsWritten]) -> Basic:
    """``e`` with SymPy's operations instead of all but the ``kept`` ones, and of those that
    they stand in.
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
