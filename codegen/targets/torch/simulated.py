"""Ranks as threads of one process: simulates ``torch.distributed`` for a module.

Only for comparing a module before it is written; the tests run it on processes.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product

import torch
import torch.distributed as dist
from torch import Tensor

from codegen.targets.torch import _ranks

LONGEST = 60.0  # seconds that a rank waits for the others
PAUSE = 1e-4  # seconds until it looks again


class Ring:
    """Threads as ranks: each passes its data to all others."""

    def __init__(self, count: int):
        self.count, self.slots = count, [None] * count
        self.barrier = threading.Barrier(count, timeout=LONGEST)
        self.boxes: dict[tuple, queue.SimpleQueue] = defaultdict(queue.SimpleQueue)

    def passed(self, rank: int, what: object) -> list:
        self.slots[rank] = what
        self.barrier.wait()
        found = list(self.slots)
        self.barrier.wait()
        return found


@dataclass(frozen=True)
class SimulatedGroup:
    """The group argument of one simulated rank; ``counts`` lists its collectives."""

    ring: Ring
    rank: int
    counts: list[str] = field(default_factory=list)

    def passed(self, kind: str, what: object) -> list:
        self.counts.append(kind)
        return self.ring.passed(self.rank, what)


class Done:
    """A handle of a collective that is complete already."""

    def wait(self) -> None: ...


@dataclass(frozen=True)
class SimulatedPass:
    """A tensor that is sent to another rank, or received from it."""

    way: str
    tensor: Tensor
    group: SimulatedGroup
    tag: int
    group_peer: int

    def begun(self) -> SimulatedPass:
        if self.way == Simulated.isend:
            key = (self.group.rank, self.group_peer, self.tag)
            self.group.ring.boxes[key].put(self.tensor.clone())
        return self

    def wait(self) -> None:
        if self.way == Simulated.irecv:
            box = self.group.ring.boxes[self.group_peer, self.group.rank, self.tag]
            until = time.monotonic() + LONGEST
            while box.empty():
                if self.group.ring.barrier.broken or time.monotonic() > until:
                    raise threading.BrokenBarrierError
                time.sleep(PAUSE)
            self.tensor.copy_(box.get())


class Simulated:
    """Replaces ``torch.distributed`` in a module."""

    ReduceOp = dist.ReduceOp
    P2POp = SimulatedPass
    isend, irecv = "send", "receive"

    def batch_isend_irecv(self, calls: Sequence[SimulatedPass]) -> list[SimulatedPass]:
        return [call.begun() for call in calls]

    def get_backend(self, group: SimulatedGroup) -> str:
        return "threads"

    def is_initialized(self) -> bool:
        return True

    def get_rank(self, group: SimulatedGroup) -> int:
        return group.rank

    def get_world_size(self, group: SimulatedGroup) -> int:
        return group.ring.count

    def all_gather(
        self, parts: list[Tensor], tensor: Tensor, group: SimulatedGroup, async_op: bool = False
    ) -> Done:
        for part, found in zip(parts, group.passed("gather", tensor.clone()), strict=True):
            part.copy_(found)
        return Done()

    def all_gather_object(self, objects: list, own: object, group: SimulatedGroup) -> None:
        objects[:] = group.passed("objects", own)

    def all_reduce(
        self, tensor: Tensor, operation, group: SimulatedGroup, async_op: bool = False
    ) -> Done:
        found = torch.stack(group.passed("reduce", tensor.clone()))
        largest = operation == dist.ReduceOp.MAX
        tensor.copy_(found.amax(0) if largest else found.sum(0))
        return Done()


def on_ranks(
    counts: Sequence[int], function: Callable[[Sequence[SimulatedGroup], Sequence[int]], object]
) -> list:
    """``function`` on every rank of a grid, with its group along each direction and its place; the
    results, rank by rank.

    Raises the error of the first rank that fails by itself.
    """
    everywhere = list(places(counts))
    rings: dict[tuple, Ring] = {}
    results: list = [None] * len(everywhere)
    errors: list[BaseException | None] = [None] * len(everywhere)

    def run(number: int) -> None:
        place = everywhere[number]
        groups = []
        for way in range(len(counts)):
            key = (way, *place[:way], *place[way + 1 :])
            groups.append(SimulatedGroup(rings[key], place[way]))
        try:
            results[number] = function(groups, place)
        except BaseException as error:
            errors[number] = error
            for ring in rings.values():
                ring.barrier.abort()

    for place in everywhere:
        for way, count in enumerate(counts):
            rings.setdefault((way, *place[:way], *place[way + 1 :]), Ring(count))
    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(everywhere))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    own = [e for e in errors if e is not None and not isinstance(e, threading.BrokenBarrierError)]
    for error in own or [e for e in errors if e is not None]:
        raise error
    return results


def places(counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The coordinates of a grid."""
    return product(*map(range, counts))


@contextmanager
def simulated() -> Iterator[None]:
    """Modules loaded in this process use threads instead of processes."""
    before, _ranks.dist = _ranks.dist, Simulated()
    try:
        yield
    finally:
        _ranks.dist = before
