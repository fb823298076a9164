"""Uninitialized tensors (``torch.empty``), and the parts not written yet.

An unwritten entry is `UNWRITTEN` in the expression; the unwritten parts are boxes, one stretch
along each dimension. Once no box is left, every entry has been written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sympy import Dummy, Expr, Integer

from derive.claims.reading.lengths import is_at_least
from derive.claims.reading.refusals import Refusal
from derive.language.notation.definition import Definition

UNWRITTEN = Dummy("unwritten", real=True)
REMEDY = "write all of it first, or begin with zeros: torch.zeros_like(x)"


@dataclass(frozen=True)
class Stretch:
    """The entries from ``start`` up to ``stop`` in steps."""

    start: Expr
    stop: Expr
    step: int = 1


Box = tuple[Stretch, ...]


def whole(sizes: Sequence[Expr]) -> tuple[Box, ...]:
    """One box over a whole tensor of these sizes."""
    return (tuple(Stretch(Integer(0), size) for size in sizes),)


def check_written(e: Expr) -> None:
    if e.has(UNWRITTEN):
        raise Refusal("this is read before it is completely written", REMEDY)


def left_of(definition: Definition, boxes: Sequence[Box], written: Box) -> tuple[Box, ...]:
    """The boxes left after ``written`` is written: those that differ from it along
    some dimension.
    """

    def at_least(one: Expr, other: Expr) -> bool:
        return is_at_least(definition, one - other, 0)

    found: list[Box] = []
    for box in boxes:
        for i, (own, new) in enumerate(zip(box, written, strict=True)):
            found += [(*box[:i], piece, *box[i + 1 :]) for piece in _beside(own, new, at_least)]
    return tuple(dict.fromkeys(found))


def _beside(own: Stretch, new: Stretch, at_least: Callable[[Expr, Expr], bool]) -> list[Stretch]:
    """The pieces of a stretch outside another one; the whole stretch if that is undecided."""
    first = new.start - own.start
    reaches = at_least(new.stop, own.stop)
    if new.step == 1:
        before = Stretch(own.start, new.start, own.step)
        behind = Stretch(new.stop, own.stop)
        pieces = [before] * (not at_least(own.start, new.start)) + [behind] * (not reaches)
    elif own.step == new.step and first.expand() == 0 and reaches:
        pieces = []
    elif own.step == 1 and first.is_Integer and 0 <= first < new.step and reaches:
        steps = [k for k in range(new.step) if k != first]
        pieces = [Stretch(own.start + k, own.stop, new.step) for k in steps]
    else:
        pieces = [own]
    return [piece for piece in pieces if not at_least(piece.start, piece.stop)]
