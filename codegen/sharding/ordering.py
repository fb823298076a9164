"""Orders the lines of a function so that few collectives are needed: sums taken at the same time
travel together.

Lines keep their order where one depends on the other. A sum waits until nothing else can be done,
since others may join it; a maximum does not, because sums usually depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from codegen.program.shards import (
    Exchange,
    OwnAddAt,
    OwnGathered,
    OwnOneHot,
    OwnPart,
    OwnPick,
    OwnPositions,
    WholeSize,
)
from codegen.program.steps import (
    AddAt,
    Assign,
    InRange,
    NotZero,
    Numeric,
    Refuse,
    SplitLabel,
    Step,
    Within,
)
from codegen.program.values import Load
from codegen.sharding.values import values_of

PLACES = (OwnPart, OwnPick, OwnPositions, OwnOneHot, OwnGathered, WholeSize)  # asks for sizes
WAITING = ("agreed", "largest", "first", "gathered", "moments", "sum")  # who goes first
CHECKS = (InRange, NotZero, Refuse, Within)  # make nothing
TOGETHER = ("largest", "sum")  # travel in one buffer


@dataclass(frozen=True)
class OrderedStep:
    """A step, with its reads and writes, and the groups whose sizes it needs."""

    step: Step
    reads: frozenset[str]
    writes: frozenset[str]
    sizes: frozenset[str]


def line(step: Step) -> OrderedStep:
    sent = step.sent if isinstance(step, Exchange) else ()
    found = [*values_of(step)]
    reads = {v.name for v in found if isinstance(v, Load)}
    writes = {s.name for s in sent} if sent else {step.name}
    if isinstance(step, InRange | Numeric):
        reads |= {step.name}
    if isinstance(step, CHECKS):
        writes = set()
    if isinstance(step, SplitLabel):
        writes |= {step.kept}
        reads |= {step.name}
    if isinstance(step, AddAt | OwnAddAt):
        reads |= {step.name}
    sizes = {v.group for v in found if isinstance(v, PLACES)}
    sizes |= {step.group} if isinstance(step, OwnAddAt) else set()
    if isinstance(step, Exchange) and step.kind in ("gathered", "first"):
        sizes |= {step.group}
    return OrderedStep(step, frozenset(reads), frozenset(writes), frozenset(sizes))


def ordered(steps: Sequence[Step]) -> list[Step]:
    lines = [line(step) for step in steps]
    before = {i: {j for j in range(i) if depends(mine, lines[j])} for i, mine in enumerate(lines)}
    done: list[Step] = []
    known: set[str] = set()  # the groups whose sizes are
    while before:
        ready = [i for i, waits in before.items() if not waits]
        now = _next(ready, lines, known)
        if isinstance(now, Exchange):
            done.append(now)
            known.add(now.group)
            continue
        done.append(_joined([lines[i].step for i in now]))
        if isinstance(done[-1], Exchange):
            known.add(done[-1].group)
        for i in now:
            del before[i]
        for waits in before.values():
            waits -= {*now}
    return done


def needed(steps: Sequence[Step], results: Sequence[str]) -> list[Step]:
    """Dead code elimination: the steps that a result needs."""
    read, kept = {*results}, []
    for step in reversed(steps):
        mine = line(step)
        told = isinstance(step, Exchange) and step.kind != "agreed"
        if not (isinstance(step, Assign) or told) or mine.writes & read:
            kept.append(step)
            read |= mine.reads
    return kept[::-1]


def depends(mine: OrderedStep, other: OrderedStep) -> bool:
    """True if a line must stay behind another one."""
    return bool(other.writes & (mine.reads | mine.writes) or other.reads & mine.writes)


def _next(
    ready: Sequence[int], lines: Sequence[OrderedStep], known: set[str]
) -> list[int] | Exchange:
    """The next to run: a line, several that travel together, or an exchange of sizes."""
    able = [i for i in ready if lines[i].sizes <= known]
    own = [i for i in able if not isinstance(lines[i].step, Exchange)]
    if own:
        return [own[0]]
    if not able:
        group = sorted(lines[ready[0]].sizes - known)[0]
        return Exchange("", "agreed", group, ())
    first = min(able, key=lambda i: (WAITING.index(lines[i].step.kind), i))
    kind, group = lines[first].step.kind, lines[first].step.group
    checks = (lines[i] for i in ready if isinstance(lines[i].step, CHECKS))
    unknown = {size for check in checks for size in check.sizes} - known - {group}
    if unknown:  # a check that only some ranks of this group fail: before they meet
        return Exchange("", "agreed", sorted(unknown)[0], ())
    if kind not in TOGETHER:
        return [first]
    alike = [i for i in able if (lines[i].step.kind, lines[i].step.group) == (kind, group)]
    return alike


def _joined(steps: Sequence[Step]) -> Step:
    if len(steps) == 1:
        return steps[0]
    return replace(steps[0], sent=tuple(sent for step in steps for sent in step.sent))
