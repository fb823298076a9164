"""Sums over rows that the next sweep reads: it adds their parts itself, without a kernel between.

Values with one number for each column are computed where the next sweep needs them, once by every
program, and one of these stores those that are needed later.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.schedule.elements import Element, entry, index
from codegen.schedule.nodes import LibraryNode, Node
from codegen.schedule.plan import Nest, Plan, Sweep
from codegen.schedule.shape import shape_of


def gathered(plan: Plan) -> Plan:
    """The plan with the fewest sweeps that this allows."""
    stages: list[Sweep | LibraryNode] = []
    for stage in plan.stages:
        while isinstance(stage, Sweep) and stages and _goes_into(stages[-1], stage):
            stage = _with(stages.pop(), stage)
        stages.append(stage)
    nodes = dict(plan.nodes)
    results = {made for _, made in plan.flat.results}
    for i, stage in enumerate(stages):
        if isinstance(stage, Sweep):
            own = _in_parts(stages, i, results)
            read = results.union(*(other.reads for other in stages if other is not stage))
            stored = tuple(name for name in own.stored if name in read)
            stages[i] = replace(own, stored=stored)
            nodes |= {node.name: node for node in (*own.nodes, *own.parts)}
    return replace(plan, stages=tuple(stages), nodes=nodes)


def _goes_into(small: Sweep | LibraryNode, sweep: Sweep) -> bool:
    """True if a sweep has values of columns alone and the next one has all their axes; rows that
    are too long for registers would need more than one pass.
    """
    if isinstance(small, LibraryNode) or any(node.kind for node in small.nodes):
        return False
    shape = shape_of(sweep)
    every = {*shape.rows, *shape.kept, *shape.inner}
    return shape.inner == (shape.tile,) and all({*node.axes} < every for node in small.nodes)


def _with(small: Sweep, sweep: Sweep) -> Sweep:
    stored = {*small.stored, *sweep.stored}
    nests = (Nest((), small.nodes), *sweep.nests)
    names = [node.name for nest in nests for node in nest.nodes]
    return replace(sweep, nests=nests, stored=tuple(n for n in names if n in stored))


def _in_parts(stages: list[Sweep | LibraryNode], place: int, results: set[str]) -> Sweep:
    """The sweep at a place, reading its sums in parts. Other readers get them from there: the
    sweeps before leave the parts under a name of their own. A single number is read in parts by all
    kernels that need it.
    """
    sweep, others = stages[place], [*stages[:place], *stages[place + 1 :]]
    for i, before in enumerate(stages[:place]):
        if isinstance(before, LibraryNode) or not shape_of(before).looped:
            continue
        again = [n for n in before.nodes if n.name in before.left and n.name in sweep.reads]
        sweep = replace(sweep, parts=(*sweep.parts, *again))
        own = [n for n in before.nodes if n.name in {*before.partial} & sweep.reads]
        if before.left:
            continue
        read = frozenset().union(*(stage.reads for stage in others[:place]))
        own = [n for n in own if n.kind == "sum" and n.name not in read]
        tile = shape_of(before).tile
        if not own or len({tile in node.axes for node in own}) > 1:
            continue
        later = results.union(*(stage.reads for stage in others[place:]))
        every = {axis for node in sweep.nodes for axis in node.space}
        if any(n.name in later and not every.issuperset(n.axes) for n in own):
            continue
        left = {n.name for n in own if not n.axes} - results
        left -= frozenset().union(*(s.reads for s in others[place:] if isinstance(s, LibraryNode)))
        renamed = {n.name: f"{n.name}_parts" for n in own if n.name in later - left}
        parts = [replace(n, name=renamed.get(n.name, n.name)) for n in own]
        totals = [
            Node(n.name, n.axes, entry(renamed[n.name], *map(index, n.axes)))
            for n in own
            if n.name in renamed
        ]
        stages[i] = _renamed(before, renamed, tuple(node.name for node in parts))
        nests = (Nest((), tuple(totals)), *sweep.nests) if totals else sweep.nests
        stored = (*renamed, *sweep.stored)
        sweep = replace(sweep, nests=nests, stored=stored, parts=(*sweep.parts, *parts))
    return sweep


def _renamed(sweep: Sweep, names: dict[str, str], left: tuple[str, ...]) -> Sweep:
    def change(e: Element) -> Element | None:
        return replace(e, name=names[e.name]) if e.name in names else None

    nests = tuple(
        replace(
            nest,
            nodes=tuple(
                replace(n, name=names.get(n.name, n.name), value=n.value.replaced(change))
                for n in nest.nodes
            ),
        )
        for nest in sweep.nests
    )
    stored, partial = (
        tuple(names.get(n, n) for n in given) for given in (sweep.stored, sweep.partial)
    )
    return replace(sweep, nests=nests, stored=stored, partial=partial, left=left)
