"""Rules for values that only chunks split: windows and reads, along other axes than those they move
along. A chunk has entries; a rank may have none, of which there are no windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

from codegen.chunking.halos import windows_added, windows_multiplied, windows_read
from codegen.program.loops import Body, Collected, Looped
from codegen.program.parts import operands, values_in
from codegen.program.reads import Convolve, Joined, Overlapped, Read
from codegen.program.shards import Running
from codegen.program.steps import Assign, Step
from codegen.program.values import Number, SizeOf, Value
from codegen.sharding.groups import Split
from codegen.sharding.placing import Placing, SplitValue, met
from codegen.sharding.rules import RULES as OF_RANKS
from codegen.sharding.rules import together
from codegen.sharding.values import with_operands


def convolved(placing: Placing, value: Convolve) -> SplitValue:
    """A product along batches, groups and channels; places of windows meet those of other parts."""
    c = value.channels
    apart = {*c.batch, *c.group, *c.into, *c.out}
    both = [placing.placed(value.first), placing.placed(value.second)]
    axes = {d.axis.name for p in both for d, s in zip(p.value.dims, p.split, strict=True) if s}
    if not axes <= apart:
        found = windows_multiplied(placing, value, partial(together, placing, "sum", axes - apart))
        if found is not None:
            placing.rewritten.add("near")
            return found
        raise placing.refusal(f"a window of the convolution along {', '.join(axes - apart)}")
    kept = {dim.axis.name for dim in value.dims}
    first, second = placing.aligned(both, kept)
    split = tuple(first.at(d.axis.name) or second.at(d.axis.name) for d in value.dims)
    groups = dict.fromkeys(s for p in (first, second) for s in p.split if s and s not in split)
    made = replace(value, first=first.value, second=second.value)
    return SplitValue(together(placing, "sum", groups, made), split)


def read_at(placing: Placing, value: Read) -> SplitValue:
    """Rows of which another dimension is read, at places that have no axis of the parts."""
    inner = placing.placed(value.operand)
    own = placing.groups.of.keys()
    numbers = (v for v in values_in(replace(value, operand=Number(Fraction(0)))))
    moves = any(step.axis in own for step in value.steps)
    counts = any(isinstance(v, SizeOf) and v.name in own for v in numbers)
    if inner.split[value.along] or moves or counts:
        found = None if counts else windows_read(placing, value)
        if found is not None:
            placing.rewritten.add("near")
            return found
        raise placing.refusal(f"a read of {value.read}")
    split = tuple(inner.at(d.axis.name) for d in value.dims)
    return SplitValue(replace(value, operand=inner.value), split)


def added_up(placing: Placing, value: Overlapped) -> SplitValue:
    """Windows along another dimension, or near a row."""
    inner = placing.placed(value.operand)
    if not inner.split[value.along] and not inner.split[-1]:
        made = replace(value, operand=inner.value)
        return SplitValue(made, inner.split[:-1])
    found = windows_added(placing, value)
    if found is None:
        raise placing.refusal(f"adding windows up along {value.length}")
    placing.rewritten.add("near")
    return found


def put_together(placing: Placing, value: Joined) -> SplitValue:
    """Rows of parts that are joined along another dimension."""
    parts = placing.aligned([placing.placed(part) for part, _ in value.parts])
    if any(p.split[value.along] for p in parts):
        raise placing.refusal(f"joining parts along {value.dims[value.along]}")
    pairs = zip(parts, value.parts, strict=True)
    made = replace(value, parts=tuple((p.value, minus) for p, (_, minus) in pairs))
    return SplitValue(made, met(value.dims, parts))


def looped(placing: Placing, value: Looped, along: str = "") -> SplitValue:
    """A loop, each step of which takes rows of one part to rows of it; or the one ``along`` the
    axis itself, whose parts go on from each other.
    """
    wholes = [placing.canonical(placing.placed(each.whole)) for each in value.given]
    firsts = [placing.canonical(placing.placed(each.initial)) for each in value.passed]
    given = zip(value.given, wholes, strict=True)
    passed = zip(value.passed, firsts, strict=True)
    inside = {g.name: tuple(s for i, s in enumerate(w.split) if i != g.along) for g, w in given}
    inside |= {p.before: first.split for p, first in passed}
    steps = _steps_inside(placing, value.body.steps, inside)
    made = replace(
        value,
        given=tuple(replace(g, whole=w.value) for g, w in zip(value.given, wholes, strict=True)),
        passed=tuple(
            replace(p, initial=f.value) for p, f in zip(value.passed, firsts, strict=True)
        ),
        body=Body(steps),
    )
    groups = {s for split in inside.values() for s in split if s} | {*filter(None, [along])}
    return SplitValue(made, tuple(groups)[:1])


def _steps_inside(
    placing: Placing, steps: Sequence[Step], splits: dict[str, Split]
) -> tuple[Step, ...]:
    """The steps of a loop, which have names of their own, and know of no other part."""

    def exchange(kind: str, *_: object) -> Value:
        raise placing.refusal("a step of a recurrence")

    outer = placing.splits, placing.defined, placing.exchange
    placing.splits, placing.defined = {**placing.splits, **splits}, {}
    placing.exchange = exchange
    found = []
    for step in steps:
        if not isinstance(step, Assign):
            raise placing.refusal(f"a {type(step).__name__} in a recurrence")
        own = placing.canonical(placing.placed(step.value))
        placing.splits[step.name] = own.split
        found.append(replace(step, value=own.value))
    placing.splits, placing.defined, placing.exchange = outer
    return tuple(found)


def collected(placing: Placing, value: Collected) -> SplitValue:
    """The values that a loop leaves at each place, or at its last one."""
    split = placing.groups.split(value.dims)
    if value.along is None and isinstance(placing.defined[value.record.name], Running):
        axis = placing.groups.chunked
        return SplitValue(placing.exchange("last", axis, value, 0, value.dims), split)
    return SplitValue(value, split)


def running(placing: Placing, value: Running) -> SplitValue:
    """A value that runs along the axis, in the rows of one part."""
    run = value.operation
    if isinstance(run, Looped):
        found = looped(placing, run, run.axis)
        return replace(found, value=replace(value, operation=found.value))
    parts = placing.aligned([placing.placed(v) for v in operands(run)])
    split = met(value.dims, parts)
    if split[run.along] != placing.groups.split(value.dims)[run.along]:
        raise placing.refusal(f"what runs along {value.dims[run.along]}")
    made = with_operands(run, [p.value for p in parts])
    return SplitValue(replace(value, operation=made), split)


RULES = {
    **OF_RANKS,
    Convolve: convolved,
    Read: read_at,
    Joined: put_together,
    Overlapped: added_up,
    Running: running,
    Looped: looped,
    Collected: collected,
}
