"""How many entries the loops of a backward read and write, where what can be computed in one walk
through memory is.

In: `Loop` records in the order of computation, one for each statement and each reduction in it.
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


class Read(NamedTuple):
    """What is read: its name, those of its axes along which it is met as it was made, and how many
    entries.
    """

    name: Name
    axes: Axes
    entries: int


@dataclass(frozen=True)
class Loop:
    """One value: the ``axes`` that it has, with so many ``entries``, the ``space`` that is walked
    for it, and what it reads. ``whole``: a library computes it.
    """

    name: Name
    axes: Axes
    space: Axes
    reads: tuple[Read, ...]
    entries: int
    whole: bool = False


def moved(loops: Sequence[Loop], results: frozenset[Name]) -> int:
    """The entries that are read and written for all ``loops``, of which ``results`` are asked for,
    with the rows for which that is least.
    """
    return min(_moved(loops, results, rows) for rows in _rows(loops))


def _rows(loops: Sequence[Loop]) -> Iterator[Axes]:
    """Along which axes a sweep may be parallel, at least one; where nothing is reduced that is all
    the same.
    """
    reduced = (loop.space for loop in loops if loop.axes < loop.space and not loop.whole)
    axes = sorted(max(reduced, key=len, default=frozenset()), key=lambda axis: axis.name)
    for count in range(min(1, len(axes)), len(axes) + 1):
        yield from map(frozenset, combinations(axes, count))


def _moved(loops: Sequence[Loop], results: frozenset[Name], rows: Axes) -> int:
    of = {loop.name: loop for loop in loops}
    swept = {loop.name for loop in loops if not loop.whole and rows <= loop.space}
    times: dict[Name, int] = {}
    for loop in loops:
        times[loop.name] = max(
            (
                times[read.name]
                + (read.name in swept and not (loop.name in swept and _at_hand(read, of, rows)))
                for read in loop.reads
                if read.name in times
            ),
            default=0,
        )
    stored, read_in = set(results), {}
    for loop in loops:
        place = loop.name if loop.whole else (times[loop.name], loop.name in swept)
        for name, _, entries in loop.reads:
            made = (times[name], name in swept) if name in of else None
            if loop.whole or made != place or of[name].whole:
                read_in[name, place] = max(entries, read_in.get((name, place), 0))
                stored.add(name)
    return sum(read_in.values()) + sum(loop.entries for loop in loops if loop.name in stored)


def _at_hand(read: Read, of, rows: Axes) -> bool:
    return rows <= of[read.name].axes and rows <= read.axes
