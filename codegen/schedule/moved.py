"""Memory traffic of a schedule's sweeps: reads and writes of arrays of full size."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.files.quality import Moves
from codegen.program import Program
from codegen.schedule.elements import axes_in
from codegen.schedule.flattening import flat
from codegen.schedule.nodes import Flat, LibraryNode
from codegen.schedule.plan import Plan, Sweep
from codegen.schedule.planning import planned
from derive.language.errors import QuestionError


def loops_of(program: Program) -> tuple[tuple[Moves, ...], tuple[Moves, ...]]:
    """Traffic of the forward and the backward; empty for one that is not made of loops."""
    try:
        flats = [flat(program, function) for function in (program.forward, program.backward)]
    except QuestionError:
        return (), ()
    output = flats[1].arrays[0]  # the upstream gradient has its axes
    full = max(1, *(len(array.axes) for array in (*flats[0].arrays, output)))
    forward, backward = (_moves(each, planned(each), full) for each in flats)
    return (forward,), (backward,)


def _moves(flat: Flat, plan: Plan, full: int) -> Moves:
    axes = {array.name: array.axes for array in flat.arrays}
    axes |= {node.name: node.axes for node in flat.nodes}
    reads = writes = 0
    for stage in plan.stages:
        made = {stage.name} if isinstance(stage, LibraryNode) else {*stage.stored}
        reads += len(set(_read_in_full(stage, axes, full, plan.flat)) - made)
        writes += sum(len(axes[name]) >= full for name in made)
    return Moves(reads, writes)


def _read_in_full(stage: Sweep | LibraryNode, axes, full: int, flat: Flat) -> Iterator[str]:
    """The arrays of full size that a stage reads, except those from which entries are picked."""
    if isinstance(stage, LibraryNode):
        yield from (name for name in stage.reads if len(axes[name]) >= full)
        return
    own = {node.name for nest in stage.nests for node in nest.nodes}
    for nest in stage.nests:
        for node in nest.nodes:
            for entry in node.value.entries:
                loops = frozenset().union(*map(axes_in, entry.args))
                several = (len(flat.joined.get(axis, (axis,))) for axis in loops)
                if entry.name not in own and sum(several) >= full:
                    yield entry.name
