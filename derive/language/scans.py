"""Recurrences along an axis: cumulative sums and products, and h[t] = a[t]*h[t-1] + b[t].

Users write `CumSum`, `CumProd`, `Scan`, `Previous` and `Next`. All are one node, with K(t, s) the
product of the factors a[r] for s < r <= t:

    `Recurrence`        h[t] = sum of K(t, s)*b[s] for s <= t, + K(t, -1)*initial
    `RecurrenceBefore`  h[t-1], which is initial at the first place
    `Transposed`        g[s] = sum of K(t, s)*b[t] for t >= s, so g[s] = b[s] + a[s+1]*g[s+1]
    `TransposedBefore`  the same by the states before: q[s] = b[s+1] + a[s+1]*q[s+1]

The adjoint of each is made of the others, so that they close under differentiation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sympy import Expr, S

from derive.language.array_node import (
    Gradients,
    Whole,
    along_axes,
    check_carried,
    checked_operand,
    expression_of,
)
from derive.language.awaited import Awaited
from derive.language.entries import EntryReader, Places
from derive.language.errors import NotationError
from derive.language.symbols import Along, Axes, Axis, Tensor, axes_of
from derive.language.words import word


class GoneAlong(Whole):
    """A node that runs along an axis, each entry following from the previous one."""

    reverse, written_as = False, ""

    @property
    def axis(self) -> Axis:
        """The axis along which it runs."""
        return self.axes[0]

    @property
    def brings(self) -> tuple[Axis, ...]:
        return self.axes

    def _sympystr(self, printer):
        return written(self, printer._print)


class Recurrence(GoneAlong):
    """``Recurrence(b, a, initial, T)``: h[t] = a[t]*h[t-1] + b[t], with initial before it."""

    exclusive = False
    reason = "from the end along {axes}, where it came from the start"

    def entry(self, by: EntryReader, at: Places) -> Any:
        return by.recurrence(self, at)

    def adjoint(self, upstream: Expr) -> Gradients:
        # h[t] = a[t]*h[t-1] + b[t]  =>  db[s] = dh[s] + a[s+1]*db[s+1], da[s] = db[s]*h[s-1]
        # and dinitial = sum_t dh[t]*a[0]*...*a[t]
        back = KINDS[True, self.exclusive].over(upstream, self.factor, S.Zero, self.axes)
        before = RecurrenceBefore.over(*self.operands, self.axes)
        product = type(self).over(S.Zero, self.factor, S.One, self.axes)
        return [
            (self.operand, back),
            (self.factor, back * before),
            (self.initial, upstream * product),
        ]

    def __new__(cls, term: Expr, factor: Expr, initial: Expr, axes: Along) -> Expr:
        return cls.over(term, factor, initial, axes.axes)  # SymPy rebuilds a node from its args

    @classmethod
    def over(cls, term: Expr, factor: Expr, initial: Expr, axes: Iterable[Axis]) -> Expr:
        """Build the node unchecked; a common numeric factor stays outside."""
        if term == 0 and initial == 0:
            return S.Zero
        if factor == 0 and not cls.exclusive:
            return term
        number, rest = term.as_coeff_Mul() if initial == 0 else (S.One, term)
        return number * Expr.__new__(cls, rest, factor, initial, Along(axes))

    @property
    def factor(self) -> Expr:
        """The multiplier of the previous state."""
        return self.args[1]

    @property
    def initial(self) -> Expr:
        """The state before the first entry."""
        return self.args[2]

    @property
    def axes(self) -> tuple[Axis, ...]:
        return self.args[3].axes

    @property
    def operands(self) -> tuple[Expr, ...]:
        return self.args[:3]

    @property
    def free_axes(self) -> frozenset[Axis]:
        return frozenset(self.axes).union(*map(axes_of, self.operands))

    @property
    def inside(self) -> frozenset[Axis]:
        return self.free_axes

    @property
    def is_sum(self) -> bool:
        """Whether it is a cumulative sum."""
        return (self.factor, self.initial) == (1, 0)

    @property
    def word(self) -> str:
        """The textbook name, also used in names of values."""
        if self.is_step:
            return "next" if self.reverse else "previous"
        return "cumsum" if self.is_sum else "cumprod" if self.is_product else "scan"

    @property
    def subject(self) -> Expr:
        return self.factor if self.is_product else self.operand

    @property
    def is_step(self) -> bool:
        """Whether it is a shift by one entry, forward or backward."""
        return self.factor == 0

    @property
    def is_product(self) -> bool:
        """Whether it is a cumulative product."""
        return (self.operand, self.initial) == (0, 1)

    def _eval_is_nonnegative(self):
        return all(e.is_nonnegative for e in self.operands) or None

    def _eval_is_positive(self):
        term, factor, initial = self.operands
        if not (term.is_nonnegative and factor.is_nonnegative and initial.is_nonnegative):
            return None
        if not self.exclusive and term.is_positive:
            return True
        return (initial.is_positive and (term.is_positive or factor.is_positive)) or None


class RecurrenceBefore(Recurrence):
    """The state before each entry of the recurrence."""

    exclusive = True


class Transposed(Recurrence):
    """The adjoint of a recurrence by its terms: g[s] = b[s] + a[s+1]*g[s+1]."""

    reverse = True
    reason = "from the start along {axes}, where it came from the end"

    def adjoint(self, upstream: Expr) -> Gradients:
        # g[s] = b[s] + a[s+1]*g[s+1]  =>  db[t] = dg[t] + a[t]*db[t-1], da[t] = g[t]*db[t-1]
        onward = KINDS[False, self.exclusive].over(upstream, self.factor, S.Zero, self.axes)
        before = RecurrenceBefore.over(upstream, self.factor, S.Zero, self.axes)
        return [(self.operand, onward), (self.factor, self * before)]


class TransposedBefore(Transposed):
    """The adjoint of the states before: q[s] = b[s+1] + a[s+1]*q[s+1]."""

    exclusive = True


KINDS = {
    (kind.reverse, kind.exclusive): kind
    for kind in (Recurrence, RecurrenceBefore, Transposed, TransposedBefore)
}


Said = tuple[str, tuple[Expr, ...], tuple[str, ...]]


def said(e: GoneAlong) -> Said:
    """The textbook form: name, operands, and remarks on direction and ends."""
    if not isinstance(e, Recurrence):
        return e.word, e.operands, ("from the end",) * e.reverse
    before = ("before",) * e.exclusive
    starts = [e.initial] if e.initial != 0 else []
    if e.is_step:
        return e.word, (e.operand, *starts), ()
    if e.is_product:
        return e.word, (e.factor,), before
    if e.is_sum:
        back = "after" if e.exclusive else "from the end"
        return e.word, (e.operand,), (back,) if e.reverse else before
    return e.word, (e.factor, e.operand, *starts), ("transposed",) * e.reverse + before


def written(e: GoneAlong, shown: Callable[[Expr], str]) -> str:
    """The form that a user writes."""
    if not isinstance(e, Recurrence):
        return f"{e.written_as}({shown(e.operand)}, {e.axis.name})"
    options = [("reverse" if e.is_sum else "transposed", e.reverse), ("exclusive", e.exclusive)]
    more = "".join(f", {name}=True" for name, holds in options if holds)
    initial = f", initial={shown(e.initial)}" if e.initial != 0 else ""
    if e.is_step:
        return f"{e.word.capitalize()}({shown(e.operand)}, {e.axis.name}{initial})"
    if e.is_product:
        return f"CumProd({shown(e.factor)}, {e.axis.name}{more})"
    if e.is_sum:
        return f"CumSum({shown(e.operand)}, {e.axis.name}{more})"
    return f"Scan({shown(e.factor)}, {shown(e.operand)}, {e.axis.name}{initial}{more})"


@word("CumSum(x, T)", "reverse", "exclusive", axes="carried", runs_along=True)
def CumSum(x: Expr, axis: Axis, *, reverse: bool = False, exclusive: bool = False) -> Expr:
    """``CumSum(x, T)``: the sum of ``x`` up to and including each entry along ``T``.

    With ``reverse`` from each entry to the end; with ``exclusive`` without the entry itself.
    Source: ``torch.cumsum``.
    """
    x = checked_along("CumSum", x, axis)
    check_carried("CumSum", x, [axis])
    return KINDS[bool(reverse), bool(exclusive)].over(x, S.One, S.Zero, [axis])


@word("CumProd(x, T)", "exclusive", axes="carried", runs_along=True)
def CumProd(x: Expr, axis: Axis, *, exclusive: bool = False) -> Expr:
    """``CumProd(x, T)``: the product of ``x`` up to and including each entry along ``T``.

    With ``exclusive`` without the entry itself: 1 at the first. Source: ``torch.cumprod``.
    """
    x = checked_along("CumProd", x, axis)
    check_carried("CumProd", x, [axis])
    return KINDS[False, bool(exclusive)].over(S.Zero, x, S.One, [axis])


@word(
    "Scan(a, b, T)",
    "initial",
    "reverse",
    "exclusive",
    "transposed",
    axes="scanned",
    runs_along=True,
)
def Scan(
    a: Expr,
    b: Expr,
    axis: Axis,
    *,
    initial: Expr | float = 0,
    exclusive: bool = False,
    **direction: bool,
) -> Expr:
    """``Scan(a, b, T, initial=h0)``: h[t] = a[t]*h[t-1] + b[t] along ``T``, with h0 before it.

    With ``reverse=True`` from the end: h[t] = a[t]*h[t+1] + b[t]. With ``exclusive`` the state
    before each entry instead: h[t-1], or h[t+1]. ``transposed=True`` is the adjoint by ``b``:
    g[t] = b[t] + a[t+1]*g[t+1].
    """
    unknown = [name for name in direction if name not in ("reverse", "transposed")]
    if unknown:
        raise NotationError(f"Scan has no {unknown[0]}=", f"write {USAGE}")
    a, b = checked_along("Scan", a, axis), checked_along("Scan", b, axis)
    initial = _before("Scan", initial, axis)
    if axis not in axes_of(a) | axes_of(b):
        check_carried("Scan", b, [axis])
    back, transposed = bool(direction.get("reverse")), bool(direction.get("transposed"))
    if (back or transposed) and (initial != 0 or back == transposed):
        raise NotationError(
            "Scan from the end starts with 0, and is either reverse or transposed",
            "add what comes after the last entry to that entry of b",
        )
    if back and not exclusive and axis in axes_of(a):
        a = RecurrenceBefore.over(a, S.Zero, S.Zero, [axis])  # the adjoint reads a[t+1] at t
    return KINDS[back or transposed, bool(exclusive)].over(b, a, initial, [axis])


@word("Previous(x, T)", "initial", axes="carried", runs_along=True)
def Previous(x: Expr, axis: Axis, *, initial: Expr | float = 0) -> Expr:
    """``Previous(x, T, initial=x0)``: the entry before each along ``T``; x0 before the first.

    A statement may read itself this way, or one that a later line defines: both are a recurrence.
    """
    if isinstance(x, Awaited):
        checked_along("Previous", 0, axis)
        return x.before(axis, _before("Previous", initial, axis))
    x, initial = checked_along("Previous", x, axis), _before("Previous", initial, axis)
    check_carried("Previous", x, [axis])
    return RecurrenceBefore.over(x, S.Zero, initial, [axis])


@word("Next(x, T)", axes="carried", runs_along=True)
def Next(x: Expr, axis: Axis) -> Expr:
    """``Next(x, T)``: the entry after each along ``T``; 0 after the last."""
    x = checked_along("Next", x, axis)
    check_carried("Next", x, [axis])
    return TransposedBefore.over(x, S.Zero, S.Zero, [axis])


USAGE = "Scan(a, b, T), Scan(a, b, T, initial=h0) or Scan(a, b, T, reverse=True)"


def _before(node: str, initial: Expr | float, axis: Axis) -> Expr:
    """The state before the first entry, checked. Raises `NotationError`."""
    initial = expression_of(initial, node)
    if axis in axes_of(initial):
        raise NotationError(
            f"{node}(..., initial={initial}): it has the axis {axis}, and there is one state "
            "before the first",
            f"give it without {axis}",
        )
    return initial


def checked_along(node: str, operand: Expr | float, axis: Axis) -> Expr:
    """An operand of a user, checked. Raises `NotationError`."""
    operand = checked_operand(node, operand, (axis,), lambda e, axes: along_axes(node, e, axes))
    if isinstance(operand, Tensor) and operand.role == "label":
        raise NotationError(f"{node}({operand}, {axis}): {operand} is a label", "pass a number")
    if isinstance(axis, Axes):
        raise NotationError(
            f"{node}({operand}, {axis}): {axis} stands for any number of dimensions",
            f'go along a single one: {axis} = Axis("{axis}")',
        )
    return operand
