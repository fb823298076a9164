"""Which axes of a sweep are rows, which lie in a row, and which one the grid cuts.

Every array in a kernel has one dimension for the rows that a program computes at once, then one for
each axis inside of a row; what has no such axis is 1 long there. So broadcasting is the only rule.
A program that walks along a row has just that one: what has no other axis is a scalar.
"""

from __future__ import annotations

from dataclasses import dataclass

from codegen.schedule.elements import Axes
from codegen.schedule.ordering import ordered
from codegen.schedule.plan import Sweep
from codegen.targets.tables.names import short


@dataclass(frozen=True)
class Shape:
    """``tile`` is that of the ``inner`` axes which the grid cuts; ``looped`` says whether programs
    walk over rows, for sums that each has a part of; ``chunked`` whether they walk along a row.
    """

    rows: Axes
    inner: Axes
    tile: str
    looped: bool
    chunked: bool = False

    @property
    def several(self) -> bool:
        """Whether a program computes several rows at once."""
        return bool(self.rows) and not self.chunked

    @property
    def rank(self) -> int:
        return 1 if self.chunked else self.several + len(self.inner)

    def dim(self, axis: str) -> int:
        return 0 if axis in self.rows else self.several + self.inner.index(axis)

    def block(self, axis: str) -> str:
        """The name of how many entries along an inner axis are computed at once."""
        one = self.chunked or len(self.inner) == 1
        return "BLOCK" if one else f"BLOCK_{short(axis)}"


def shape_of(sweep: Sweep) -> Shape:
    nodes, rows = sweep.nodes, sweep.rows
    sums = [node for node in nodes if node.name in sweep.partial]
    inner = ordered({a for node in nodes for a in node.space} - {*rows}, nodes)
    reduced = {a for node in nodes if node not in sums for a in node.along}
    tile = inner[-1] if inner and inner[-1] not in reduced else ""
    moved = [a for a in inner if a not in reduced and a != tile]
    moved = [a for a in moved if not any(a in node.axes for node in sums)]
    rows = (*rows, *moved)
    looped = bool(sums) and not any({*node.axes} & {*rows} for node in sums)
    return Shape(rows, tuple(a for a in inner if a not in moved), tile, looped)
