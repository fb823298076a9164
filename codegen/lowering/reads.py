"""Reads at an affine index: the range of an axis, its steps, and padding at the ends."""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Add, Expr, Integer, Mul, floor

from codegen.lowering.context import Context
from codegen.lowering.frames import Frame, arranged, fitted
from codegen.lowering.picks import Picked, axes_at
from codegen.program.reads import IndexStep, Read
from codegen.program.values import Value
from derive.language.notation.layout import Layout, plain
from derive.language.reading_at import Affine, At, affine, is_long
from derive.language.symbols import Axis


def lowered_read(lowering: Context, e: At, frame: Frame, picked: Picked) -> Value:
    """The read entries, with dimensions in the order of ``frame``."""
    return arranged(_read(lowering, e, frame, picked), frame)


def _read(lowering: Context, e: At, frame: Frame, picked: Picked) -> Read:
    """The read, with its axis in place of the first new one; a nested read keeps its order."""
    index = affine(e.index)
    own = axes_at(e.operand, picked) - {e.axis}
    new = [axis for axis in outer_first(e, index) if axis not in own]
    if isinstance(e.operand, At) and not picked:
        operand: Value = _read(lowering, e.operand, (), picked)
        lie = [dim.axis for dim in operand.dims]
        along = lie.index(e.axis)
        others = tuple(axis for axis in lie if axis != e.axis)
    else:
        order = [*dict.fromkeys((*(a for a in frame if a in own | {*new}), *lowering.order))]
        others = tuple(axis for axis in order if axis in own)
        first = min(map(order.index, new), default=0)
        along = sum(order.index(axis) < first for axis in others)
        operand = operand_with(lowering, e, others, along, picked)
    dims = plain((*others[:along], *new[:1], *others[along:], *new[1:]))
    return read_of(lowering, operand, along, e, dims)


def operand_with(lowering: Context, e: At, others: Frame, along: int, picked: Picked) -> Value:
    """The operand of a read, with the axis that it reads along placed among the ``others``."""
    whole = (*others[:along], e.axis, *others[along:])
    return fitted(lowering.value(e.operand, whole, picked), plain(whole))


def read_of(
    lowering: Context, operand: Value, along: int, e: At, dims: Layout, ends: Ends | None = None
) -> Read:
    """The value of ``e`` from its operand, with the axis that is read at dimension ``along``."""
    index = affine(e.index)
    ends = ends or ends_of(e.axis, index)

    def number(size: Expr) -> Value:
        return lowering.value(size, ())

    steps = tuple(
        IndexStep(axis.name, number(abs_of(index.of(axis))), is_negative(index.of(axis)))
        for axis in outer_first(e, index)
    )
    sizes = (index.offset, index.divisor, e.fill, ends.before, ends.after, ends.stop)
    return Read(
        operand, along, e.axis.name, steps, *map(number, sizes), ends.fits, ends.grows, dims=dims
    )


@dataclass(frozen=True)
class Ends:
    """Entries to add before and after an axis so that it holds exactly what is read, negative where
    it has more; ``stop`` is the end. ``fits``: nothing has to be added.
    """

    before: Expr
    after: Expr
    stop: Expr
    fits: bool

    @property
    def grows(self) -> bool:
        """True if nothing is cut off."""
        return is_at_most_zero(-self.before) and is_at_most_zero(-self.after)


def ends_of(axis: Axis, index: Affine) -> Ends:
    low = index.offset + Add(
        *(c * (axis_ - 1) for axis_, c in index.coefficients if is_negative(c))
    )
    last = Add(*(abs_of(c) * (axis_ - 1) for axis_, c in index.coefficients))
    length = axis * index.divisor
    before, after = simplest(-low), simplest(low + last + 1 - length)
    step = max_step(index)
    most = upper(after)
    rounded = resolved(after).has(floor) and most.is_integer and not most.has(floor)
    if rounded and is_positive(simplest(lower(after) - most + step)):
        after = most  # the rest after the last step is read by none
    stop = after if after.is_Integer else simplest(low + last + 1)
    fits = is_at_most_zero(before) and is_at_most_zero(upper(after))
    return Ends(before, after, stop, fits)


def max_step(index: Affine) -> Expr:
    """The step of the outer axis of the read, 1 if there is none."""
    return abs_of(index.coefficients[0][1]) if len(index.coefficients) == 1 else _outer(index)


def _outer(index: Affine) -> Expr:
    steps = [abs_of(c) for _, c in index.coefficients]
    numbers = [s for s in steps if not s.is_Integer] or steps
    return max(numbers, key=lambda s: s if s.is_Integer else 0) if numbers else Integer(1)


def outer_first(e: At, index: Affine) -> list[Axis]:
    """The axes of an index, the widest steps first, and of equal ones the longest as far as its
    declaration tells: windows, then the entries in each.
    """

    def rank(axis: Axis):
        step = abs_of(index.of(axis))
        is_short = not is_long(axis, e.axis)
        width = -step if step.is_Integer else 0
        return (step.is_Integer, width, is_short, axis.length or 0, axis.name)

    return sorted(index.axes, key=rank)


def abs_of(coefficient: Expr) -> Expr:
    return -coefficient if is_negative(coefficient) else coefficient


def is_negative(e: Expr) -> bool:
    return e.could_extract_minus_sign()


def resolved(e: Expr) -> Expr:
    """``e`` with derived sizes written out."""
    formulas = {axis: axis.formula for axis in e.atoms(Axis) if axis.formula is not None}
    formulas |= {axis: Integer(axis.length) for axis in e.atoms(Axis) if axis.length is not None}
    return resolved(e.xreplace(formulas)) if formulas else e.expand()


def simplest(e: Expr) -> Expr:
    """``e`` with sizes written out, where that makes it shorter."""
    e, written = e.expand(), resolved(e)
    for axis in sorted(e.atoms(Axis), key=str):
        if resolved(axis - e) == 0:
            return axis
    return written if written.count_ops() < e.count_ops() or written.is_Integer else e


def upper(e: Expr) -> Expr:
    """An upper bound of ``e``: a quotient is rounded down."""
    return _bounded(e, lambda u: u, lambda u: u - 1 + 1 / u.as_numer_denom()[1])


def lower(e: Expr) -> Expr:
    return _bounded(e, lambda u: u - 1 + 1 / u.as_numer_denom()[1], lambda u: u)


def _bounded(e: Expr, added, subtracted) -> Expr:
    terms = []
    for term in Add.make_args(resolved(e)):
        rounded = [f for f in Mul.make_args(term) if isinstance(f, floor)]
        if len(rounded) == 1:
            rest = term / rounded[0]
            u = (added if not is_negative(rest) else subtracted)(rounded[0].args[0].together())
            term = rest * u
        terms.append(term)
    return Add(*terms).expand()


def is_at_most_zero(e: Expr) -> bool:
    return (-resolved(e)).is_nonnegative is True


def is_positive(e: Expr) -> bool:
    return resolved(e).is_positive is True
