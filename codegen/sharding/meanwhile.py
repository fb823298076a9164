"""Overlaps collectives with computation: a rank does independent work while it waits.

In: the steps of a function in their order. Out: the same, where a collective that has such work is
begun (`Exchange.handle`), the work done, and then waited for (`Ended`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codegen.program.arrays import Contract
from codegen.program.shards import Ended, Exchange, OwnAddAt
from codegen.program.steps import AddAt, Assign, Step
from codegen.program.values import Value
from codegen.sharding.ordering import TOGETHER, depends, line
from codegen.sharding.values import values_of

WORK = (Assign, AddAt, OwnAddAt)  # never raise, so that no rank stops in between
LARGE = 2  # dimensions of work worth overlapping: a row is done in no time


def meanwhile(steps: Sequence[Step], taken: set[str]) -> list[Step]:
    """Overlap collectives with work; ``taken`` are the function's names."""
    done: list[Step] = []
    for step in steps:
        if not (isinstance(step, Exchange) and step.kind in TOGETHER):
            done.append(step)
            continue
        begin = max((i + 1 for i, s in enumerate(done) if _tells(s)), default=0)
        before, work = _apart(done[begin:], step)
        if not any(_is_large(value) for each in work for value in values_of(each)):
            done.append(step)
            continue
        handle = _fresh("on_its_way", taken)
        done[begin:] = [*before, replace(step, handle=handle), *work, Ended(handle, step.sent)]
    return done


def _tells(step: Step) -> bool:
    return isinstance(step, Exchange | Ended)


def _apart(steps: Sequence[Step], exchange: Exchange) -> tuple[list[Step], list[Step]]:
    """Split the steps into those needed before the exchange begins, and work to overlap with it."""
    before, work = [line(exchange)], []
    for step in reversed(steps):
        mine = line(step)
        if isinstance(step, WORK) and not any(depends(other, mine) for other in before):
            work.append(step)
        else:
            before.append(mine)
    return [mine.step for mine in before[:0:-1]], work[::-1]


def _is_large(value: Value) -> bool:
    dims = getattr(value, "dims", ())
    return isinstance(value, Contract) or sum(not dim.one for dim in dims) >= LARGE


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
