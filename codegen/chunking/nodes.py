"""The values of a function as a graph: mapped along an axis, independent of it, or accumulated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from codegen.program.shards import Running
from codegen.program.steps import Assign, Step
from derive.language.notation.layout import Layout

MAPPED, INDEPENDENT = "mapped", "independent"
SUM, LARGEST, FIRST, GATHERED, LAST = "sum", "largest", "first", "gathered", "last"  # accumulated


@dataclass(eq=False)
class ChunkNode:
    """All steps that write one name, in order. ``kind`` is 'mapped' (its rows are the chunk's),
    'independent' (the same for all chunks), or that of an accumulator. ``level`` is the first pass
    that may read it. An ``online`` sum is measured from that running maximum, to the ``degree``.
    What is ``known`` to run can start in any chunk: its states come as an argument. What
    ``travels`` goes round with the rows that it belongs to, and each rank adds to it.
    """

    name: str
    steps: list[Step]
    reads: set[str]
    kind: str
    dims: Layout = ()
    split: tuple[str, ...] = ()
    level: int = 0
    online: str = ""
    degree: Fraction = Fraction(0)
    of: str = ""  # the statement in which it is accumulated
    writes: set[str] = field(default_factory=set)
    known: bool = False
    travels: bool = False

    @property
    def is_accumulated(self) -> bool:
        return self.kind not in (MAPPED, INDEPENDENT)

    @property
    def running(self) -> Running | None:
        """The value, if it goes on from chunk to chunk."""
        value = self.steps[0].value if isinstance(self.steps[0], Assign) else None
        return value if isinstance(value, Running) else None

    @property
    def way(self) -> bool | None:
        """True if it has to run from the last chunk to the first, False from the first."""
        if self.kind == FIRST:
            return False
        if self.kind == LAST:
            return self.steps[0].sent[0].value.reverse
        return None if self.running is None or self.known else self.running.operation.reverse

    @property
    def along(self) -> int:
        """The dimension along the axis."""
        return next(i for i, group in enumerate(self.split) if group)


def closure(
    names: Iterable[str],
    nodes: Mapping[str, ChunkNode],
    stops: Callable[[ChunkNode], bool] = lambda n: False,
) -> set[str]:
    """The names that these are computed from, themselves among them; ``stops`` ends a path."""
    found: set[str] = set()
    waiting = [*names]
    while waiting:
        node = nodes.get(waiting.pop())
        if node is not None and node.name not in found and not stops(node):
            found.add(node.name)
            waiting += node.reads
    return found
