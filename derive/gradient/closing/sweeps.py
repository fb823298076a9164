"""The traffic of sweeps: what the loops of a function read and write in memory, with as much as
possible computed in one walk through it.

In: `SweptValue` records in the order of computation, one for each loop. ``closing`` makes them of
statements and their reductions, ``codegen.schedule`` of the nodes of a Program.
Out: what moves, in entries or in another measure that the records say. A walk (a sweep) is parallel
along some axes, its rows; what has one value for each row is at hand within it, however often the
row is passed. What a sweep reads or writes of an array counts once. A matrix product is a
library's, which reads and writes for itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

Axes = frozenset
Name = Hashable  # of a statement, or the reduction itself


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


class SweptLoops:
    """The loops of a function, for any rows; ``results`` are asked for."""

    def __init__(self, loops: Sequence[SweptValue], results: Iterable[Name]):
        number = {loop.name: i for i, loop in enumerate(loops)}
        self.results = {number[name] for name in results if name in number}
        self.bit: dict[Hashable, int] = {}
        self.numbered = []
        for loop in loops:
            reads = (
                (number.setdefault(name, len(number)), self.bits(axes), entries)
                for name, axes, entries in loop.reads
            )
            space, axes = self.bits(loop.space), self.bits(loop.axes)
            own = _Numbered(axes, space, tuple(reads), loop.entries, loop.whole)
            self.numbered.append(own)

    def bits(self, axes: Iterable[Hashable]) -> int:
        return sum(self.bit.setdefault(axis, 1 << len(self.bit)) for axis in axes)

    def along(self, rows: Iterable[Hashable]) -> AlongRows:
        return AlongRows(self, self.bits(rows))


class AlongRows:
    """The loops in sweeps that are parallel along ``rows``: the number of a loop's sweep is its
    time. SweptLoops that lack an axis of the rows stand before the sweep of their time.
    """

    def __init__(self, loops: SweptLoops, rows: int):
        self.loops, self.results, self.rows = loops.numbered, loops.results, rows
        self.swept = [not loop.whole and not rows & ~loop.space for loop in loops.numbered]

    def is_at_hand(self, reader: int, name: int, met: int) -> bool:
        """Whether a loop finds what another one makes, met along these axes, before the end of its
        sweep.
        """
        if not self.swept[name]:
            return True
        return self.swept[reader] and not self.rows & ~(self.loops[name].axes & met)

    def earliest(self) -> list[int]:
        """The first sweep in which each can be computed."""
        times: list[int] = []
        for i, loop in enumerate(self.loops):
            latest = 0
            for name, met, _ in loop.reads:
                if name < i:
                    latest = max(latest, times[name] + (not self.is_at_hand(i, name, met)))
            times.append(latest)
        return times

    def latest(self, earliest: Sequence[int]) -> list[int]:
        """The last one that the readers allow, so that less is stored for them."""
        ends = zip(earliest, self.swept, strict=True)
        last = max((time for time, swept in ends if swept), default=0)
        times = [last + (not swept) for swept in self.swept]
        for i in reversed(range(len(times))):
            for name, met, _ in self.loops[i].reads:
                if name < i:
                    before = times[i] - (not self.is_at_hand(i, name, met))
                    times[name] = min(times[name], before)
        return times

    def moved(self, times: Sequence[int]) -> int:
        """The entries that are read and written."""
        loops = self.loops
        walks = [2 * time + sweeps for time, sweeps in zip(times, self.swept, strict=True)]
        stored, read_in = set(self.results), dict[tuple[int, int], int]()
        for i, loop in enumerate(loops):
            walk = -1 - i if loop.whole else walks[i]  # a library walks for itself
            for name, _, entries in loop.reads:
                if name >= len(loops) or walks[name] != walk or loops[name].whole:
                    read_in[name, walk] = max(entries, read_in.get((name, walk), 0))
                    stored.add(name)
        written = sum(loop.entries for i, loop in enumerate(loops) if i in stored)
        return sum(read_in.values()) + written


def moved(loops: Sequence[SweptValue], results: frozenset[Name]) -> int:
    """The entries that are read and written for all ``loops``, of which ``results`` are asked for,
    with the rows for which that is least.
    """
    every = SweptLoops(loops, results)
    sweeps = (every.along(rows) for rows in _rows(loops))
    return min(each.moved(each.earliest()) for each in sweeps)


def _rows(loops: Sequence[SweptValue]) -> Iterator[Axes]:
    """Axes along which a sweep may be parallel, at least one; the choice does not matter where
    nothing is reduced.
    """
    reduced = (loop.space for loop in loops if loop.axes < loop.space and not loop.whole)
    axes = sorted(max(reduced, key=len, default=frozenset()), key=lambda axis: axis.name)
    for count in range(min(1, len(axes)), len(axes) + 1):
        yield from map(frozenset, combinations(axes, count))
