"""The memory order of axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import TopologicalSorter
from itertools import pairwise

from codegen.schedule.elements import Axes
from codegen.schedule.nodes import Node


def ordered(axes: Iterable[str], nodes: Sequence[Node]) -> Axes:
    """Axes in memory order; where arrays differ, in that of those met first."""
    wanted = {*axes}
    seen = [
        [arg.name for arg in e.args if arg.kind == "index" and arg.name in wanted]
        for node in nodes
        for e in node.value.entries
    ]
    seen += [[axis for axis in node.axes if axis in wanted] for node in nodes]
    after: dict[str, set[str]] = {axis: set() for axis in sorted(wanted)}
    for line in sorted(seen, key=len, reverse=True):
        for before, axis in pairwise(line):
            if before not in _reached(axis, after):
                after[before].add(axis)
    sorter = TopologicalSorter()
    for axis, later in after.items():
        sorter.add(axis)
        for other in sorted(later):
            sorter.add(other, axis)
    return tuple(sorter.static_order())


def _reached(axis: str, after: Mapping[str, set[str]]) -> set[str]:
    """All axes after an axis, and the axis."""
    return {axis}.union(*(_reached(later, after) for later in after[axis]))
