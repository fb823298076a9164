"""Sweeps whose rows have pieces along different axes, such as a softmax along M beside a sum along
D: on a CPU these are loops one after another; a kernel would walk along one of them for each entry
of the other. So each becomes a sweep of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codegen.schedule.inlining import needed
from codegen.schedule.nodes import Node, Whole
from codegen.schedule.online import computed_again
from codegen.schedule.plan import Plan, Sweep
from codegen.schedule.rows import sweep_of
from codegen.targets.triton.shape import shape_of


def apart(plan: Plan) -> Plan:
    """The plan, where all that a sweep leaves in memory lies in its rows, as these are walked."""
    stages: list[Sweep | Whole] = []
    for stage in plan.stages:
        stages += [stage] if isinstance(stage, Whole) else divided(stage)
    return replace(plan, stages=tuple(stages))


def divided(sweep: Sweep) -> Iterator[Sweep]:
    """The sweep, or those that it becomes, in an order in which they can be computed."""
    for axis in (a for a in shape_of(sweep).rows if a not in sweep.rows):
        own = {node.name for node in sweep.nodes if axis in node.space}
        if any(_is_left(node, sweep) for node in sweep.nodes if node.name not in own):
            for nodes in _parts(sweep, own):
                yield from divided(nodes)
            return
    yield sweep


def _is_left(node: Node, sweep: Sweep) -> bool:
    """Whether it is a result that is not one number for each row."""
    along = bool({*node.space} - {*sweep.rows})
    return node.name in sweep.partial or (along and node.name in sweep.stored)


def _parts(sweep: Sweep, own: set[str]) -> Iterator[Sweep]:
    """The other nodes and its ``own``, each with reductions of the others before it; values are
    computed again.
    """
    stored = {*sweep.stored}
    values = {node.name: node for node in sweep.nodes if not node.kind}
    gone = {name: node for name, node in values.items() if name in own}
    others = [computed_again(node, gone) for node in sweep.nodes if node.name not in own]
    read = frozenset().union(*(node.reads for node in needed(others, stored - own)))
    if before := own & read:
        yield sweep_of(needed(sweep.nodes, before), sweep.parallel, before)
        rest = [node for node in sweep.nodes if node.name not in before]
        yield sweep_of(needed(rest, stored - before), sweep.parallel, stored - before)
        return
    again = values.keys() - stored - own
    mine = needed([n for n in sweep.nodes if n.name in own | again], own & stored)
    read = frozenset().union(*(node.reads for node in mine)) - {node.name for node in mine}
    for nodes, left in ((others, stored - own | read), (mine, own & stored)):
        if left:
            yield sweep_of(needed(nodes, left), sweep.parallel, left)
