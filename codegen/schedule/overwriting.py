"""Which array in memory a value may be written over, entry by entry."""

from __future__ import annotations

from collections.abc import Sequence

from codegen.schedule.elements import Axes, axes_in, index
from codegen.schedule.nodes import LibraryNode, Node
from codegen.schedule.plan import Nest, Plan, Sweep


def may_overwrite(plan: Plan, made: str, read: str) -> bool:
    """True if the loops may write the value ``made`` over the array ``read``: behind the loop that
    writes, nothing reads the array; in it, nothing reads another entry, unless it is one for all of
    the loop, which is read before; and no row reads another row's, which may be written already.
    """
    axes = next((a.axes for a in plan.flat.arrays if a.name == read), None)
    node = plan.nodes.get(made)
    if not isinstance(node, Node) or node.kind or node.axes != axes:
        return False
    places = [i for i, stage in enumerate(plan.stages) if made in _made(stage)]
    if len(places) != 1:
        return False
    place = places[0]
    if any(read in stage.reads for stage in plan.stages[place + 1 :]):
        return False
    sweep = plan.stages[place]
    return isinstance(sweep, Sweep) and _is_last(sweep, node, read, axes)


def _made(stage: Sweep | LibraryNode) -> Sequence[str]:
    return (stage.name,) if isinstance(stage, LibraryNode) else [n.name for n in stage.nodes]


def _is_last(sweep: Sweep, node: Node, read: str, axes: Axes) -> bool:
    """True if each row reads its own entries of ``read`` alone, and none once ``node`` is there."""
    if not {*sweep.parallel} <= {*axes} or node.name in (*sweep.partial, *sweep.kept):
        return False
    own = tuple(map(index, axes))
    rows = [axes.index(axis) for axis in sweep.parallel]
    is_written = False
    for nest in sweep.nests:
        for other in nest.nodes:
            entries = [e for e in other.value.entries if e.name == read]
            if _writes(nest, node):
                entries = [e for e in entries if e.args == own or not axes_in(e) <= {*sweep.rows}]
            if any(e.args[i] != own[i] for e in entries for i in rows):
                return False
            if entries and (is_written or (_writes(nest, node) and other.kind)):
                return False
            if _writes(nest, node) and any(e.args != own for e in entries):
                return False
            is_written |= other is node
    return True


def _writes(nest: Nest, node: Node) -> bool:
    return any(other is node for other in nest.nodes)
