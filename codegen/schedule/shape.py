"""Layout of a sweep: the axes of its rows, the axes inside a row, and the one that the grid cuts.

Every array in a kernel has one dimension for the rows that a program computes at once, then one for
each axis inside of a row, of length 1 where the array lacks that axis. So broadcasting is the only
rule. A program that walks along a row has just that one: a value without other axes is a scalar.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from codegen.schedule.elements import Axes
from codegen.schedule.ordering import ordered
from codegen.schedule.plan import Sweep


@dataclass(frozen=True)
class Shape:
    """``tile`` is the one of the ``inner`` axes that the grid cuts; ``looped`` is True if programs
    walk over rows, for sums that each has a part of, or reads in parts: axes of which these have
    one value for each place are ``kept`` apart by the grid. ``chunked`` is True if they walk along
    a row.
    """

    rows: Axes
    inner: Axes
    tile: str
    looped: bool
    chunked: bool = False
    kept: Axes = ()

    @property
    def several(self) -> bool:
        """True if a program computes several rows at once."""
        return bool(self.rows) and not self.chunked

    @property
    def rank(self) -> int:
        return 1 if self.chunked else self.several + len(self.inner)

    def dim(self, axis: str) -> int:
        return 0 if axis in self.rows else self.several + self.inner.index(axis)


def shape_of(sweep: Sweep) -> Shape:
    shape, sums = in_rows(sweep), [node for node in sweep.nodes if node.name in sweep.partial]
    sums += sweep.parts
    kept = tuple(axis for axis in shape.rows if any(axis in node.axes for node in sums))
    walked = tuple(axis for axis in shape.rows if axis not in kept)
    if not sums or (kept and not walked) or any({*kept} & {*node.along} for node in sums):
        return shape
    is_of_all = not shape.rows and bool(sweep.partial)
    return replace(shape, rows=walked, kept=kept, looped=bool(walked) or is_of_all)


def in_chunks(sweep: Sweep) -> Shape:
    """The shape for walks along the row, longest axis last; what only the grid cuts is no row."""
    shape, in_tiles = in_rows(sweep), shape_of(sweep)
    if shape.inner == (shape.tile,):
        return in_tiles
    inner = tuple(sorted(shape.inner, key=lambda axis: axis.count("*")))
    looped = in_tiles.looped and not in_tiles.kept
    return replace(shape, inner=inner, tile="", chunked=bool(inner), looped=looped)


def in_rows(sweep: Sweep) -> Shape:
    nodes, rows = sweep.nodes, sweep.rows
    sums = [node for node in nodes if node.name in sweep.partial]
    inner = ordered({a for node in nodes for a in node.space} - {*rows}, nodes)
    reduced = {a for node in nodes if node not in sums for a in node.along}
    tile = inner[-1] if inner and inner[-1] not in reduced else ""
    moved = [a for a in inner if a not in reduced and a != tile]
    moved = [a for a in moved if not any(a in node.axes for node in sums)]
    rows = (*rows, *moved)
    return Shape(rows, tuple(a for a in inner if a not in moved), tile, looped=False)
