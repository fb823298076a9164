"""Concatenation: terms read from places of their own, each beginning where the one before ends, as
in ``torch.cat``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sympy import Expr, Integer

from codegen.lowering.context import Context
from codegen.lowering.frames import Frame, arranged
from codegen.lowering.picks import Picked, axes_at
from codegen.lowering.reads import (
    Ends,
    is_at_most_zero,
    operand_with,
    read_of,
    resolved,
    simplest,
)
from codegen.program.reads import Joined
from codegen.program.values import Times, Value
from derive.language.notation.layout import plain
from derive.language.reading_at import At, affine
from derive.language.symbols import Axis


@dataclass(frozen=True)
class ReadTerm:
    """A term: a number times entries read along ``axis`` from ``start`` to ``stop``, and 0
    elsewhere.
    """

    number: Expr
    read: At
    axis: Axis
    start: Expr
    stop: Expr


def joined(
    lowering: Context, terms: Sequence[Expr], frame: Frame, picked: Picked
) -> tuple[Value | None, list[Expr]]:
    """Concatenate the terms that fill an axis; the value, and the other terms."""
    parts = [part for term in terms if (part := _part(term)) is not None]
    for axis in dict.fromkeys(part.axis for part in parts):
        own = _in_a_row([part for part in parts if part.axis == axis])
        axes = [axes_at(part.read, picked) for part in own]
        if len(own) > 1 and axis not in picked and all(a == axes[0] for a in axes):
            order = tuple(a for a in (*frame, *lowering.order) if a in axes[0])
            order = tuple(dict.fromkeys(order))
            pieces = tuple(_piece(lowering, part, order, picked) for part in own)
            value = Joined(pieces, order.index(axis), dims=plain(order))
            taken = [part.number * part.read for part in own]
            return arranged(value, frame), [term for term in terms if term not in taken]
    return None, list(terms)


def _part(term: Expr) -> ReadTerm | None:
    number, read = term.as_coeff_Mul()
    if not isinstance(read, At) or read.fill != 0:
        return None
    index = affine(read.index)
    if len(index.axes) != 1 or index.divisor != 1 or index.of(index.axes[0]) != 1:
        return None
    (axis,) = index.axes
    begins = is_at_most_zero(-index.offset), is_at_most_zero(index.offset)
    last = axis - read.axis + index.offset  # below 0 where the read ends later
    ends = is_at_most_zero(last), is_at_most_zero(-last)
    if not any(begins) or not any(ends):
        return None
    start = Integer(0) if begins[0] else -index.offset
    stop = axis if ends[0] else read.axis - index.offset
    return ReadTerm(number, read, axis, start, stop)


def _in_a_row(parts: list[ReadTerm]) -> list[ReadTerm]:
    """``parts`` in a row, each beginning where another ends, if they fill the axis."""
    row, place = [], Integer(0)
    while (part := next((p for p in parts if resolved(p.start - place) == 0), None)) is not None:
        if part in row:
            return []
        row.append(part)
        place = part.stop
    return row if row and resolved(place - row[0].axis) == 0 else []


def _piece(lowering: Context, part: ReadTerm, order: Frame, picked: Picked) -> tuple[Value, bool]:
    """The entries that are read, without the zeros around them, and whether they are subtracted."""
    read, along = part.read, order.index(part.axis)
    operand = operand_with(lowering, read, (*order[:along], *order[along + 1 :]), along, picked)
    offset = affine(read.index).offset
    low, high = simplest(part.start + offset), simplest(part.stop + offset)
    more = simplest(high - read.axis)
    stop = more if more.is_Integer else high
    ends = Ends(simplest(-low), more, stop, True)
    value: Value = read_of(lowering, operand, along, read, plain(order), ends)
    magnitude = abs(part.number)
    if magnitude != 1:
        value = Times(((lowering.value(magnitude, ()), False), (value, False)), dims=value.dims)
    return value, part.number.is_negative is True
