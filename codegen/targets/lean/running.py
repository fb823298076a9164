"""The lines of what runs along the chunks: its states before the first place, its value on a chunk
from the states before that, and the states that it leaves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from codegen.chunking.nodes import ChunkNode
from codegen.chunking.passes import Pass
from codegen.program.arrays import Cumulate, Expand, Stepped, Zeros
from codegen.program.loops import Body, Looped
from codegen.program.parts import with_replaced
from codegen.program.shards import Running
from codegen.program.steps import Assign, Step
from codegen.program.values import Extreme, Load, Plus, Times, Value
from codegen.targets.torch.printer import Printer
from codegen.targets.torch.wrapping import free
from derive.language.notation.layout import Layout

BEFORE_ALL = {"sum": "0.0", "product": "1.0"}  # what is cumulated begins with; or minus infinity


@dataclass(frozen=True)
class SummedLogarithms(Value):
    """The logarithm of the sum of two exponentials."""

    left: Value
    right: Value


class Writes(Protocol):
    """The part of the writer of a pass that the lines need."""

    one: Pass
    printer: Printer
    own: dict[str, str]
    nodes: Mapping[str, ChunkNode]
    rows: dict[str, str]
    taken: set[str]

    def shape(self, dims: Layout) -> str: ...
    def step(self, step: Step) -> str: ...
    def name_arguments(self, sliced: Sequence[str]) -> None: ...


def first_states(writer: Writes, value: Running) -> list[str]:
    """The lines with the states before the first place."""
    run, like = value.operation, writer.own["like"]
    if isinstance(run, Cumulate):
        (state,) = value.before
        given = f"{writer.shape(state.dims)}, {BEFORE_ALL.get(run.kind, '-torch.inf')}"
        return [f"{state.name} = {like}.new_full({given})"]
    writer.name_arguments(())
    found = []
    initial = [p.initial for p in run.passed] if isinstance(run, Looped) else [run.initial]
    for state, first in zip(value.before, initial, strict=True):
        zeros = f"{like}.new_zeros({writer.shape(state.dims)})"
        first = first.operand if isinstance(first, Expand) else first
        none = first is None or isinstance(first, Zeros)
        text = zeros if none else f"{zeros}.add({writer.printer.text(first)})"
        found.append(f"{state.name} = {text}")
    return found


def lines_of_running(writer: Writes, node: ChunkNode, target: str, value: Running) -> list[str]:
    """The lines on one chunk: from the states that are kept, if it runs in another pass."""
    run, before = value.operation, value.before
    if isinstance(run, Looped):
        run = with_own_names(run, node.name, writer)
    if writer.one.starts_anywhere(node):
        at = f"[{'~' * run.reverse}{writer.own['over']}.index]"
        pairs = zip(before, value.states, strict=True)
        before = [replace(state, name=f"{name}{at}") for state, name in pairs]
        return [writer.step(Assign(target, started(run, before)))]
    lines = []
    if node in writer.one.bordered:
        pairs = zip(value.states, before, strict=True)
        lines = [f"{states}.append({state.name})" for states, state in pairs]
    lines.append(writer.step(Assign(target, started(run, before))))
    if isinstance(run, Looped):
        ends = [p.before for p in run.passed]  # as the loop leaves them
    else:
        left = writer.printer.tight(run.operand) if isinstance(run, Stepped) else target
        ends = [f"{left}[{':, ' * run.along}{':1' if run.reverse else '-1:'}].clone()"]
    return [*lines, *(f"{state.name} = {end}" for state, end in zip(before, ends, strict=True))]


def started(run: Value, before: Sequence[Value]) -> Value:
    """The lines of a value that runs, on a chunk, from the states before it."""
    if isinstance(run, Looped):
        passed = (replace(p, initial=state) for p, state in zip(run.passed, before, strict=True))
        return replace(run, passed=tuple(passed))
    (state,) = before
    if not isinstance(run, Cumulate):
        return replace(run, initial=state)
    if run.kind == "sum":
        return Plus(((run, False), (state, False)), dims=run.dims)
    if run.kind == "product":
        return Times(((run, False), (state, False)), dims=run.dims)
    if run.kind == "max":
        return Extreme(True, run, state, dims=run.dims)
    return SummedLogarithms(run, state, dims=run.dims)


def with_own_names(run: Looped, record: str, writer: Writes) -> Looped:
    """The loop with other names inside of it, where theirs are those of values outside of it."""
    inside = {s.name for s in run.body.steps} | {p.before for p in run.passed}
    others = {n.name for n in writer.nodes.values() if record not in n.reads} | {*writer.rows}
    taken = {*writer.taken, *inside}
    return renamed({name: free(f"{name}_one", taken) for name in inside & others}, run)


def renamed(names: Mapping[str, str], run: Looped) -> Looped:
    def change(value: Value) -> Value | None:
        is_own = isinstance(value, Load) and value.name in names
        return replace(value, name=names[value.name]) if is_own else None

    def own(name: str) -> str:
        return names.get(name, name)

    steps = (with_replaced(s, change) for s in run.body.steps)
    return replace(
        run,
        body=Body(tuple(replace(s, name=own(s.name)) for s in steps)),
        passed=tuple(replace(p, before=own(p.before), after=own(p.after)) for p in run.passed),
        collected=tuple(own(name) for name in run.collected),
    )
