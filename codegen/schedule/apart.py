"""Splits sweeps whose rows have pieces along different axes, such as a softmax along M beside a sum
along D: on a CPU these are loops one after another; a kernel would walk along one of them for each
entry of the other. So each becomes a sweep of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from codegen.schedule.elements import Element
from codegen.schedule.inlining import needed
from codegen.schedule.nodes import LibraryNode, Node, own
from codegen.schedule.online import computed_again
from codegen.schedule.plan import Plan, Sweep
from codegen.schedule.rows import sweep_of
from codegen.schedule.shape import in_rows


def apart(plan: Plan) -> Plan:
    """The plan with sweeps whose stored values all lie in their rows."""
    stages: list[Sweep | LibraryNode] = []
    for stage in plan.stages:
        stages += [stage] if isinstance(stage, LibraryNode) else divided(stage)
    return replace(plan, stages=tuple(stages))


def divided(sweep: Sweep) -> Iterator[Sweep]:
    """The sweep, or those that it is split into, in an order in which they can be computed. A sum
    along a row lies in registers at its own place alone.
    """
    of = {node.name: node for node in sweep.nodes}
    if elsewhere := {name for node in sweep.nodes for name in _read_elsewhere(node.value, of)}:
        for part in _before(sweep, elsewhere):
            yield from divided(part)
        return
    for axis in (a for a in in_rows(sweep).rows if a not in sweep.rows):
        along = {node.name for node in sweep.nodes if axis in node.space}
        if any(_is_left(node, sweep) for node in sweep.nodes if node.name not in along):
            for part in _parts(sweep, along):
                yield from divided(part)
            return
    yield sweep


def _read_elsewhere(e: Element, of: Mapping[str, Node], moved: bool = False) -> Iterator[str]:
    """The reductions that it reads at another place than their own, directly or through other
    values.
    """
    for part in (part for part in e.entries if part.name in of):
        node = of[part.name]
        if moved or part != own(node):
            if node.kind:
                yield node.name
            else:
                yield from _read_elsewhere(node.value, of, moved=True)


def _is_left(node: Node, sweep: Sweep) -> bool:
    """True if it is a result with more than one number for each row."""
    along = bool({*node.space} - {*sweep.rows})
    return node.name in sweep.partial or (along and node.name in sweep.stored)


def _before(sweep: Sweep, names: set[str]) -> Iterator[Sweep]:
    """Sweeps that compute these names, and the rest."""
    rest = [node for node in sweep.nodes if node.name not in names]
    stored = {*sweep.stored} - names
    for nodes, left in ((sweep.nodes, names), (rest, stored)):
        if left:
            yield sweep_of(needed(nodes, left), sweep.parallel, left)


def _parts(sweep: Sweep, along: set[str]) -> Iterator[Sweep]:
    """The other nodes and those ``along`` an axis, each with reductions of the others before it;
    values are recomputed.
    """
    stored = {*sweep.stored}
    values = {node.name: node for node in sweep.nodes if not node.kind}
    gone = {name: node for name, node in values.items() if name in along}
    others = [computed_again(node, gone) for node in sweep.nodes if node.name not in along]
    read = frozenset().union(*(node.reads for node in needed(others, stored - along)))
    if before := along & read:
        yield from _before(sweep, before)
        return
    again = values.keys() - stored - along
    mine = needed([n for n in sweep.nodes if n.name in along | again], along & stored)
    read = frozenset().union(*(node.reads for node in mine)) - {node.name for node in mine}
    for nodes, left in ((others, stored - along | read), (mine, along & stored)):
        if left:
            yield sweep_of(needed(nodes, left), sweep.parallel, left)
