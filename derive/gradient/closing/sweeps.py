"""Count the entries that the loops of a backward read and write, with as much as possible computed
in one walk through memory.

In: `SweptValue` records in the order of computation, one for each statement and each reduction in
it.
Out: the entries that move. A walk (a sweep) is parallel along some axes, its rows; what has one
value for each row is at hand within it, however often the row is passed. What a sweep reads or
writes of an array counts once. A matrix product is a library's, which reads and writes for itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from derive.language.symbols import Axis

Axes = frozenset[Axis]
Name = object  # of a statement, or the reduction itself


class ReadTensor(NamedTuple):
    """An array that is read: its name, those of its axes along which it is met as it was made, and
    its number of entries.
    """

    name: Name
    axes: Axes
    entries: int


@dataclass(frozen=True)
class SweptValue:
    """The loop of one value: the ``axes`` that it has, with so many ``entries``, the ``space`` that
    is walked for it, and its reads. ``whole``: a library computes it.
    """

    name: Name
    axes: Axes
    space: Axes
    reads: tuple[ReadTensor, ...]
    entries: int
    whole: bool = False


class _Numbered(NamedTuple):
    """A loop with a number for each name, a loop's being its place, and a bit for each axis: the
    same loops are looked at for all rows, and numbers compare in no time.
    """

    axes: int
    space: int
    reads: tuple[tuple[int, int, int], ...]
    entries: int
    whole: bool


def moved(loops: Sequence[SweptValue], results: frozenset[Name]) -> int:
    """The entries that are read and written for all ``loops``, of which ``results`` are asked for,
    with the rows for which that is least.
    """
    number = {loop.name: i for i, loop in enumerate(loops)}
    asked = {number[name] for name in results if name in number}
    bit: dict[Axis, int] = {}

    def bits(axes: Axes) -> int:
        return sum(bit.setdefault(axis, 1 << len(bit)) for axis in axes)

    numbered = []
    for loop in loops:
        reads = (
            (number.setdefault(name, len(number)), bits(axes), entries)
            for name, axes, entries in loop.reads
        )
        space, axes = bits(loop.space), bits(loop.axes)
        numbered.append(_Numbered(axes, space, tuple(reads), loop.entries, loop.whole))
    return min(_moved(numbered, asked, bits(rows)) for rows in _rows(loops))


def _rows(loops: Sequence[SweptValue]) -> Iterator[Axes]:
    """Axes along which a sweep may be parallel, at least one; the choice does not matter where
    nothing is reduced.
    """
    reduced = (loop.space for loop in loops if loop.axes < loop.space and not loop.whole)
    axes = sorted(max(reduced, key=len, default=frozenset()), key=lambda axis: axis.name)
    for count in range(min(1, len(axes)), len(axes) + 1):
        yield from map(frozenset, combinations(axes, count))


def _moved(loops: Sequence[_Numbered], results: set[int], rows: int) -> int:
    swept = [not loop.whole and not rows & ~loop.space for loop in loops]
    times: list[int] = []
    for i, loop in enumerate(loops):
        latest = 0
        for name, axes, _ in loop.reads:
            if name < i:
                at_hand = swept[i] and not rows & ~(loops[name].axes & axes)
                latest = max(latest, times[name] + (swept[name] and not at_hand))
        times.append(latest)
    walks = [2 * time + sweeps for time, sweeps in zip(times, swept, strict=True)]
    stored, read_in = set(results), dict[tuple[int, int], int]()
    for i, loop in enumerate(loops):
        walk = -1 - i if loop.whole else walks[i]  # a library walks for itself
        for name, _, entries in loop.reads:
            if name >= len(loops) or walks[name] != walk or loops[name].whole:
                read_in[name, walk] = max(entries, read_in.get((name, walk), 0))
                stored.add(name)
    return sum(read_in.values()) + sum(loop.entries for i, loop in enumerate(loops) if i in stored)
