"""A function of a Program as C++ kernels, one for each run of sweeps between library operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from codegen.schedule.costs import CPU
from codegen.schedule.dropping import last_axes, without
from codegen.schedule.elements import Axes, Element, scalars_of
from codegen.schedule.merging import with_joined_sizes
from codegen.schedule.moments import in_one_pass
from codegen.schedule.nodes import Flat, LibraryNode, Node
from codegen.schedule.plan import Sweep
from codegen.schedule.planning import planned
from codegen.targets.cpp.choices import choices_of, flag_of
from codegen.targets.cpp.loops import Loops
from codegen.targets.cpp.names import CppNames, named
from codegen.targets.cpp.vocabulary import I64
from codegen.targets.tables import kernel as tables
from codegen.targets.tables.names import with_joined


@dataclass(frozen=True, kw_only=True)
class CppKernel(tables.Kernel):
    """A function in C++: ``arguments`` are (type, name), with Real for a template's: In and Out of
    it are arrays in the dtype of the inputs, which may have 16 bits.

    ``special`` are specializations by condition, of which the first that holds is called; its flags
    are conditions of its template: which gradients are wanted. ``variants`` leave some gradients
    out: (the wanted ones, by the flags); ``counts`` are the numbers of entries of gradients that
    may be left out.
    """

    arguments: tuple[tuple[str, str], ...]
    lines: tuple[str, ...]
    special: tuple[tuple[str, CppKernel], ...] = ()
    variants: tuple[tuple[bool, ...], ...] = ()
    counts: tuple[tuple[str, str], ...] = ()


def kernels_of(
    name: str,
    flat: Flat,
    codes: Mapping[str, str],
    left_out: Sequence[str] = (),
    several: Sequence[str] = (),
) -> list[CppKernel | LibraryNode]:
    """The kernels of a function, and the library operations between them. ``codes`` are the names
    of sizes by their axes. If one kernel computes everything, the results ``left_out`` may be, and
    it is shorter for each of ``several`` sizes, of axes that stand for any number of dimensions,
    that is 1.
    """
    writer = CppKernels(name, flat, codes, left_out)
    pieces = writer.pieces()
    if left_out and not (len(pieces) == 1 and isinstance(pieces[0], CppKernel)):
        return kernels_of(name, flat, codes)
    if len(pieces) != 1 or isinstance(pieces[0], LibraryNode):
        return pieces
    kernel, special = pieces[0], []
    own = {axis: code for axis, code in writer.codes.items() if axis not in writer.flat.joined}
    shown = {*several}.intersection(kernel.sizes)
    along = [axis for axis in sorted(last_axes(writer.flat)) if own.get(axis) in shown]
    for count in range(len(along), 0, -1):
        for axes in combinations(along, count):
            shorter = flat
            for axis in axes:
                shorter = without(shorter, axis)
            words = [name, *(f"without_{axis}" for axis in axes)]
            (short,) = CppKernels("_".join(words), shorter, codes, left_out).pieces()
            condition = " && ".join(f"{writer.names.of_codes[own[axis]]} == 1" for axis in axes)
            alike = replace(short, reads=kernel.reads, writes=kernel.writes, sizes=kernel.sizes)
            special.append((condition, replace(alike, arguments=kernel.arguments)))
    open = writer.choices.open
    some = [gradients for gradients in subsets(open) if {*gradients} & {*kernel.writes}]
    variants = tuple(tuple(name in gradients for name in open) for gradients in some)
    return [replace(kernel, special=tuple(special), variants=variants)]


# Types of arrays that are read, by their entries.
READ = {"real": "In<Real>", "exact": "const Real*", "whole": f"const {I64}*"}
MOST = 3  # gradients of which each alone is a variant: with more there is one for all but the first


def subsets(results: Sequence[str]) -> list[tuple[str, ...]]:
    """Common subsets of the gradients, for callers who do not need all."""
    if len(results) < 2:
        return []
    alone = [(result,) for result in results] if len(results) <= MOST else []
    return list(dict.fromkeys([*alone, tuple(results[1:])]))


class CppKernels:
    """Writes the kernels of one function."""

    def __init__(
        self, name: str, flat: Flat, codes: Mapping[str, str], left_out: Sequence[str] = ()
    ):
        plan = planned(in_one_pass(flat, CPU))
        self.name, self.flat, self.codes = name, plan.flat, with_joined(codes, plan.flat)
        self.stages = [
            stage if isinstance(stage, LibraryNode) else with_joined_sizes(stage, plan.flat.joined)
            for stage in plan.stages
        ]
        self.nodes, self.entries = plan.nodes, plan.entries()
        self.arrays = {array.name: array for array in plan.flat.arrays}
        self.results = {made for _, made in flat.results}
        self.choices = choices_of(plan.nodes, self.results, left_out)
        self.names = CppNames([*self.arrays, *self.nodes], flat.scalars, self.codes)

    def runs(self) -> list[list[Sweep] | LibraryNode]:
        """The stages, with adjacent sweeps together."""
        runs: list[list[Sweep] | LibraryNode] = []
        for stage in self.stages:
            if isinstance(stage, LibraryNode):
                runs.append(stage)
            elif runs and isinstance(runs[-1], list):
                runs[-1].append(stage)
            else:
                runs.append([stage])
        return runs

    def pieces(self) -> list[CppKernel | LibraryNode]:
        runs = self.runs()
        found: list[CppKernel | LibraryNode] = []
        for i, run in enumerate(runs):
            if isinstance(run, LibraryNode):
                found.append(run)
                continue
            later = self.results.union(*(self._read(other) for other in runs[i + 1 :]))
            number = sum(isinstance(piece, CppKernel) for piece in found)
            found.append(
                self.kernel(f"{self.name}_{number + 1}" if number else self.name, run, later)
            )
        return found

    def _read(self, run: list[Sweep] | LibraryNode) -> frozenset[str]:
        if isinstance(run, LibraryNode):
            return run.reads
        return frozenset(name for node in nodes_in(run) for name in node.reads)

    def kernel(self, name: str, sweeps: Sequence[Sweep], later: set[str]) -> CppKernel:
        """The kernel of a run of sweeps: its reads, writes, scratch memory and arguments."""
        nodes = nodes_in(sweeps)
        own = {node.name for node in nodes}
        reads = sorted(self._read(list(sweeps)) - own)
        stored = [name for sweep in sweeps for name in sweep.stored]
        writes = [name for name in stored if name in later]
        local = [name for name in stored if name not in later]
        memory = {name: self.axes_of(name) for name in (*reads, *stored)}
        exact = tuple(name for name in writes if self.is_exact(name, sweeps))
        loops = Loops(self.names, memory, self.choices)
        elements = [part for node in nodes for part in node.value.parts()]
        axes = used_axes(elements, nodes, memory) | self.axes_of_labels(elements)
        joined = {axis: self.flat.joined[axis] for axis in sorted(axes & self.flat.joined.keys())}
        sizes = self.sizes(axes.difference(joined).union(*joined.values()))
        scalars = sorted(scalars_of(elements))
        for sweep in sweeps:
            loops.sweep(sweep)
        lines = [
            *map(self._joined, joined.items()),
            *self._labels_checked(elements, loops),
            *self._own_memory(local, exact, loops),
            *loops.lines,
            "    return DONE;",
        ]
        return CppKernel(
            name=name,
            reads=tuple(reads),
            writes=tuple(writes),
            sizes=sizes,
            scalars=tuple(scalars),
            exact=exact,
            arguments=self._arguments(reads, writes, exact, sizes, scalars),
            lines=tuple(lines),
            flags=tuple(self.choices.flags),
            counts=tuple(
                (named(name), self._count(self.axes_of(name))) for name in self.choices.open
            ),
        )

    def _arguments(
        self,
        reads: Sequence[str],
        writes: Sequence[str],
        exact: Sequence[str],
        sizes: Sequence[str],
        scalars: Sequence[str],
    ) -> tuple[tuple[str, str], ...]:
        return (
            *((READ[self.entries[name]], named(name)) for name in reads),
            *(("Real*" if name in exact else "Out<Real>", named(name)) for name in writes),
            *((I64, self.names.of_codes[size]) for size in sizes),
            *(("double", named(name)) for name in scalars),
            ("int", "threads"),
        )

    def _count(self, axes: Axes) -> str:
        """The number of entries, in terms of the arguments."""
        parts = (part for axis in axes for part in self.flat.joined.get(axis, (axis,)))
        return self.names.product(parts) or "1"

    def sizes(self, axes: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted({self.codes[axis] for axis in axes}))

    def _joined(self, pair: tuple[str, Axes]) -> str:
        axis, parts = pair
        return f"    const {I64} {self.names.size(axis)} = {self.names.product(parts)};"

    def is_exact(self, name: str, sweeps: Sequence[Sweep]) -> bool:
        """True if a result is not rounded to 16 bits: where its memory is read again, and sums, to
        which rows may add, unless it is one number.
        """
        node = self.nodes[name]
        if self.entries[name] == "exact" or node.kind == "max" or (node.kind and node.axes):
            return True
        sweep = next(sweep for sweep in sweeps if name in sweep.stored)
        own = next(nest for nest in sweep.nests if name in {node.name for node in nest.nodes})
        others = [node for nest in sweep.nests if nest is not own for node in nest.nodes]
        again = any(name in other.reads for other in others) and name not in sweep.kept
        return again and bool({*node.axes} & {*own.axes})

    def _own_memory(self, local: Sequence[str], exact: Sequence[str], loops: Loops) -> list[str]:
        """Lines for memory between sweeps; also for gradients that are not wanted."""
        pairs = [(f"Real* {named(name)}", name, "Real") for name in local]
        for name in self.choices.open:
            if self.choices.needed[name] != {name}:
                kind = "Real" if name in exact else "Stored<Real>"
                pairs.append((f"if constexpr (!{flag_of(name)}) {named(name)}", name, kind))
        lines = [
            f"    {start} = scratch.of<{kind}>({loops.count(self.axes_of(name))});"
            for start, name, kind in pairs
        ]
        return ["    Scratch scratch;"] * (loops.keeps or bool(lines)) + lines

    def axes_of(self, name: str) -> Axes:
        found = self.arrays.get(name) or self.nodes[name]
        return found.axes

    def axes_of_labels(self, elements: Sequence[Element]) -> set[str]:
        """The axes that labels in these elements index."""
        read = {e.name for e in elements if e.kind == "label"}
        picks = [axis for label, axis in self.flat.picks if label in read]
        return {part for axis in picks for part in self.flat.parts.get(axis, (axis,))}

    def _labels_checked(self, elements: Sequence[Element], loops: Loops) -> list[str]:
        """Bounds checks of labels, which would read from anywhere."""
        read = {e.name for e in elements if e.kind == "label"}
        lines = []
        for label, axis in self.flat.picks:
            if label in read:
                axes = self.arrays[label].axes
                count = loops.count(axes)
                size = loops.print.length(axis, self.flat.parts)
                ignored = self.flat.ignored.get(label)
                given = [named(label), count, size, *([named(ignored)] if ignored else [])]
                lines.append(f"    if (!in_range({', '.join(given)})) return OUT_OF_RANGE;")
        return lines


def nodes_in(sweeps: Sequence[Sweep]) -> list[Node]:
    return [node for sweep in sweeps for nest in sweep.nests for node in nest.nodes]


def used_axes(
    elements: Sequence[Element], nodes: Sequence[Node], memory: Mapping[str, Axes]
) -> set[str]:
    """The axes whose lengths the loops use."""
    axes = {e.name for e in elements if e.kind == "size"}
    return axes.union(*(node.space for node in nodes), *memory.values())
