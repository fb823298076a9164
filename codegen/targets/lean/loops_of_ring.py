"""The loops of a ring: over the parts of all ranks, each of which visits with the values that lie
along it, and with the sums to which every rank adds.
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen.chunking.nodes import ChunkNode
from codegen.chunking.passes import Pass
from codegen.program.parts import values_in
from codegen.program.shards import Visiting
from codegen.program.values import Value
from codegen.targets.lean.loops_of_chunks import DEEP, ChunkLine, ChunkWriter, in_loop
from codegen.targets.torch.lines import LONGEST, STEP, broken
from codegen.targets.torch.wrapping import free, wrapped
from derive.language.notation.layout import Dim, Layout


class RingWriter(ChunkWriter):
    """Values along the axis are this rank's outside of loops, and those of a visitor inside."""

    def __init__(self, *given):
        super().__init__(*given)
        groups = self.chunked.groups
        self.over_round = self.printer.over[groups.chunked]
        layouts = {name: p.layout for name, p in self.parameters.items()}
        self.away = {n for n in self.mapped if not any(groups.in_time(groups.at_home(layouts[n])))}

    def _is_round(self, dim: Dim) -> bool:
        return not dim.one and dim.axis.name in self.in_time

    def shows_length(self, name: str, dim: Dim) -> bool:
        return not (name in self.away and self._is_round(dim))

    def name_arguments(self, sliced: Sequence[str]) -> None:
        """The visiting rows have names of their own beside those of this rank."""
        super().name_arguments(())
        for name in sliced:
            narrowed, widened = (free(f"{way}_{name}", self.taken) for way in ("own", "wide_own"))
            self.printer.narrowed[name], self.printer.widened[name] = narrowed, widened
            if name not in self.floats:
                self.printer.widened[name] = narrowed

    def _body(self, one: Pass) -> tuple[list[ChunkLine], dict[str, int]]:
        over, axis = self.printer.over, self.passes.axis
        over[axis] = self.own["over"]
        found = super()._body(one)
        over[axis] = self.over_round
        return found

    def loop_over(self, one: Pass, entries: str) -> list[str]:
        own, like, chunk = self.own, self.own["like"], self.own["chunk"]
        cut = f"lambda {own['n']}: _runtime.chunks({own['n']}, {entries}, {like}, {chunk})"
        visiting, sums = self._visiting(one), [(n.name, n.along) for n in one.sums if n.travels]
        given = [cut, _named(visiting), _named(sums)]
        return [wrapped(f"for {own['over']} in {self.over_round}.ring", given, ":", len(STEP))]

    def _visiting(self, one: Pass) -> list[tuple[str, int]]:
        """Names of what is passed on, and the dimension of each along the axis."""
        steps = [step for _, step in self.steps_of(one)]
        read = {name for step in steps for name in self.reads_of(step)}
        found = [n for n in self.parameters if n in read & self.mapped - self.away]
        splits = self.passes.splits
        pairs = [(n, next(i for i, s in enumerate(splits[n]) if s)) for n in found]
        visitors = [v for step in steps for v in values_in(step) if isinstance(v, Visiting)]
        return pairs + [(v.operand.name, self._along(v.dims)) for v in visitors]

    def _along(self, dims: Layout) -> int:
        return next(i for i, dim in enumerate(dims) if self._is_round(dim))

    def part_of(self, name: str, along: int, dims: Layout) -> str:
        if name in self.mapped - self.away:
            return f"{self.own['over']}.visiting.{name}"
        return super().part_of(name, along, dims)

    def empty(self, name: str) -> str:
        """Memory for rows of this rank that are whole along the axis."""
        sizes = dict(self.printer.sizes)
        self.printer.sizes |= dict.fromkeys(self.in_time, f"{self.over_round}.size")
        found = super().empty(name)
        self.printer.sizes = sizes
        return found

    def sum_of(self, node: ChunkNode) -> str:
        return f"{self.own['over']}.sums.{node.name}" if node.travels else node.name

    def largest(self, node: ChunkNode, value: Value) -> list[str]:
        if not node.travels:
            return super().largest(node, value)
        name = self.sum_of(node)
        call = f"torch.maximum({name}, {self.printer.text(value)})"
        return [in_loop(broken(f"{name}.copy_({call})", DEEP))]

    def _length_for_all(self, axis: str) -> str:
        """Of this rank: no other waits for its chunks."""
        return self.printer.sizes[axis]


def _named(pairs: Sequence[tuple[str, int]]) -> str:
    """A dict of tensors by name, with the dimension of each."""
    each = [f'"{name}": ({name}, {along})' for name, along in pairs]
    text = f"{{{', '.join(each)}}}"
    if len(STEP * 3 + text) < LONGEST:
        return text
    return "\n".join(["{", *(f"{STEP * 3}{one}," for one in each), f"{STEP * 2}}}"])
