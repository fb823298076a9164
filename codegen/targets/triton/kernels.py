"""A function of a Program as Triton kernels: one for each sweep, and others for rows too long for
registers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from codegen.schedule.elements import Axes, Element, is_whole, scalars_of
from codegen.schedule.inlining import needed
from codegen.schedule.merging import short
from codegen.schedule.nodes import Flat, LibraryNode
from codegen.schedule.plan import Sweep
from codegen.schedule.shape import Shape, shape_of
from codegen.schedule.walks import Walk, planned_for_gpu, walks
from codegen.targets.tables import kernel as tables
from codegen.targets.tables.kernel import Computed
from codegen.targets.tables.names import with_joined
from codegen.targets.torch.lines import broken
from codegen.targets.torch.wrapping import wrapped
from codegen.targets.triton.alive import alive
from codegen.targets.triton.expressions import TritonExpressions, named
from codegen.targets.triton.names import TritonNames, block_of
from codegen.targets.triton.scopes import INDENT
from codegen.targets.triton.sweeps import Sweeps
from codegen.targets.triton.values import Values, inlined_in

CONSTANTS = ("REAL", "ALIGN", "ROWS", "BLOCK")
CONDITIONS = ("compare", "and", "or", "not")
WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class TritonFunction:
    """A Triton function: its name is that of its kernel, with ``suffix``; ``said`` are the fields
    of its record, ``arguments`` and ``lines`` are its own.
    """

    suffix: str
    said: tuple[str, ...]
    arguments: tuple[str, ...]
    lines: tuple[str, ...]

    def text(self, name: str) -> str:
        record = f"@{name}.long" if self.suffix else "@kernel"
        head = wrapped(record, self.said)
        signature = wrapped(f"def {name}{self.suffix}", self.arguments, ":")
        return "\n".join([head, "@triton.jit", signature, *self.lines])


@dataclass(frozen=True, kw_only=True)
class TritonKernel(tables.Kernel):
    """The ``functions`` of a sweep: that for rows in registers first."""

    functions: tuple[TritonFunction, ...]


def kernels_of(
    name: str,
    flat: Flat,
    codes: Mapping[str, str],
    left_out: Sequence[str] = (),
    several: Sequence[str] = (),
) -> list[TritonKernel | LibraryNode]:
    """The kernels of a function, and the library operations between them. ``codes`` are the names
    of sizes by axis; the results ``left_out`` may be. Sizes of 1 need no kernels of their own.
    """
    writer = _Kernels(name, flat, codes, left_out)
    found: list[TritonKernel | LibraryNode] = []
    for stage in writer.plan.stages:
        if isinstance(stage, LibraryNode):
            found.append(stage)
        else:
            number = sum(isinstance(piece, TritonKernel) for piece in found)
            found.append(writer.kernel(f"{name}_{number + 1}" if number else name, stage))
    return found


class _Kernels:
    def __init__(self, name: str, flat: Flat, codes: Mapping[str, str], left_out: Sequence[str]):
        self.plan = planned_for_gpu(flat)
        self.name, self.flat, self.left_out = name, self.plan.flat, left_out
        self.codes = with_joined(codes, self.flat)
        self.inlined = inlined_in(self.flat, self.plan)
        made = {made for _, made in flat.results} - {*left_out}
        self.needed = {node.name for node in needed([*self.plan.nodes.values()], made)}
        self.needed |= {n for s in self.plan.stages for n in getattr(s, "left", ())}
        self.entries = self.plan.entries()
        self.memory: dict[str, Axes] = {a.name: a.axes for a in self.flat.arrays}
        self.memory |= {node.name: node.axes for node in self.plan.nodes.values()}

    def kernel(self, name: str, sweep: Sweep) -> TritonKernel:
        numbers: dict[Element, str] = {}
        joined = self.flat.joined
        whole = Walk(sweep, shape_of(sweep), self.memory, self.inlined, self.codes, joined)
        functions = [self.function("", whole, numbers)]
        for walk in walks(whole):
            suffix = "_in_chunks" if walk.shape.chunked else "_columns"
            count = sum(each.suffix.startswith(suffix) for each in functions)
            suffix += f"_{count + 1}" if count else ""
            functions.append(self.function(suffix, walk, numbers, sweep))
        scalars = scalars_of(e for node in sweep.nodes for e in node.value.parts())
        used = {word for function in functions for word in _words(function.arguments)}
        arrays = {*_words(functions[0].arguments)}
        return TritonKernel(
            name=name,
            reads=tuple(n for n in sorted(sweep.reads) if self.pointer(n) in arrays),
            writes=sweep.stored,
            left=sweep.left,
            shapes={name: self.sizes_of(self.memory[name]) for name in sweep.stored},
            sizes=tuple(sorted(self.sizes(whole, used))),
            scalars=tuple(s for s in sorted(scalars) if named(s) in used),
            computed=tuple(self.computed(number, e) for e, number in numbers.items()),
            flags=tuple(self.left_out),
            functions=tuple(functions),
            exact=tuple(n for n in sweep.stored if self.entries.get(n, "exact") == "exact"),
        )

    def computed(self, number: str, e: Element) -> Computed:
        parts = [part for part in e.parts() if part.kind in ("size", "scalar")]
        takes = [self.codes[p.name] if p.kind == "size" else p.name for p in parts]
        text = TritonExpressions(self.names()).in_python(e)
        return Computed(number, text, tuple(dict.fromkeys(takes)))

    def names(self) -> TritonNames:
        return TritonNames([*self.memory], self.flat.scalars, self.codes)

    def pointer(self, name: str) -> str:
        return f"{self.names().of(name)}_ptr"

    def sizes(self, whole: Walk, used: Collection[str]) -> set[str]:
        """The sizes that its functions take, or that determine the number of programs."""
        axes, names = {axis for node in whole.sweep.nodes for axis in node.space}, self.names()
        axes |= {axis for axis in self.codes if names.size(axis) in used}
        return {*self.sizes_of(axes)}

    def sizes_of(self, axes: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.codes[a] for axis in axes for a in self.flat.joined.get(axis, (axis,)))

    def function(
        self, suffix: str, walk: Walk, numbers: dict[Element, str], of: Sweep | None = None
    ) -> TritonFunction:
        """``of`` is the sweep that this is a part of, ``numbers`` are those of all functions."""
        sweep, shape = walk.sweep, walk.shape
        names = TritonNames([*walk.memory], self.flat.scalars, walk.codes)
        several = self.left_out and len(sweep.stored) > 1
        stored = {*(of or sweep).stored}.intersection(sweep.stored)
        open = stored - self.needed if several else ()
        values = Values(sweep, walk.inlined)
        writer = Sweeps(sweep, shape, names, walk.memory, values, numbers, open)
        lines = writer.lines()
        aligned = self.aligned(lines, shape, writer)
        lines = [INDENT + line for line in aligned] + lines
        made = self.made(lines, walk, names)
        lines = [f"{INDENT}{size} = {of}" for size, of in made.items()] + lines
        lines = self.in_real(lines, walk, numbers) + lines
        arguments = [a for a in self.arguments(lines, walk, writer) if a not in made]
        said = tuple(self.said(walk, alive(sweep, shape, values), of))
        return TritonFunction(suffix, said, tuple(arguments), tuple(map(_folded, lines)))

    def aligned(self, lines: Sequence[str], shape: Shape, writer: Sweeps) -> list[str]:
        """The hint to the compiler of a divisor of the row stride."""
        if not shape.inner:
            return []
        size = writer.size(shape.inner[-1])
        steps = any(re.search(rf"\* {size} \+", line) for line in lines)
        return [f"{size} = aligned({size}, ALIGN)"] if steps else []

    def in_real(
        self, lines: Sequence[str], walk: Walk, numbers: Mapping[Element, str]
    ) -> list[str]:
        """Casts of numbers to the dtype of the data: torch.compile passes them in float64, and
        everything would be computed in that.
        """
        parts = [e for node in walk.sweep.nodes for e in node.value.parts()]
        found = {named(e.name) for e in parts if e.kind == "scalar"}
        found |= {n for e, n in numbers.items() if e.kind not in CONDITIONS and not is_whole(e)}
        used = found.intersection(_words(lines))
        return [f"{INDENT}{number} = tl.cast({number}, REAL)" for number in sorted(used)]

    def made(self, lines: Sequence[str], walk: Walk, names: TritonNames) -> dict[str, str]:
        """The sizes of merged axes without a loop, with their formulas."""
        shape = walk.shape
        used, loops = {*_words(lines)}, (*shape.rows, *shape.kept, *shape.inner)
        others = ((names.size(a), of) for a, of in walk.joined.items() if a not in loops)
        return {size: names.product(of) for size, of in others if size in used}

    def arguments(self, lines: Sequence[str], walk: Walk, writer: Sweeps) -> list[str]:
        """The arguments that are used."""
        names, sweep, shape = writer.names, walk.sweep, walk.shape
        used = {word for line in lines for word in _words([line])}
        arrays = [*map(self.pointer, (*sorted(sweep.reads), *sweep.stored))]
        sizes = ["rows"] if "rows" in used and len(shape.rows) > 1 else []
        sizes += [f"{self.names().of(node.name)}_count" for node in sweep.parts]
        sizes += [names.of_codes[code] for code in sorted({*walk.codes.values()})]
        scalars = [named(name) for name in sorted(self.flat.scalars)]
        numbers = [*scalars, *(n for n in writer.numbers.values() if n not in scalars)]
        given = [a for a in dict.fromkeys((*arrays, *sizes, *numbers)) if a in used]
        blocks = [c for c in CONSTANTS if c in used]
        along = (block_of(shape, axis) for axis in shape.inner)
        blocks += [block for block in along if block in used and block != "BLOCK"]
        return [*given, *(f"{block}: tl.constexpr" for block in blocks)]

    def said(self, walk: Walk, alive: int, of: Sweep | None) -> Iterator[str]:
        """Fields of a kernel's record."""
        sweep, shape = walk.sweep, walk.shape
        rows = " ".join(self.axis(a, walk) for a in shape.rows)
        kept = " ".join(self.axis(a, walk) for a in shape.kept)
        rows += " in parts" * shape.looped + f" for {kept}" * bool(kept)
        inner = " ".join(self.axis(a, walk) for a in shape.inner)
        how = " in tiles" if shape.tile else " in chunks" if shape.chunked else ""
        yield f'"{f"{rows} | {inner}{how}".strip() if inner else rows.strip()}"'
        if alive > 1:
            yield f"alive={alive}"
        nodes, own = {node.name: node for node in sweep.nodes}, self.names().of
        found: dict[str, list[str]] = {}
        for word, kind in (("sums", "sum"), ("largest", "max")):
            found[word] = [name for name in sweep.partial if nodes[name].kind == kind]
        found["keeps"] = [n for n in sweep.stored if of is not None and n not in of.stored]
        for word, names in found.items():
            axes = {own(n): " ".join(map(short, nodes[n].axes)) for n in names}
            told = ", ".join(f"{n}: {along}".strip() for n, along in axes.items())
            yield from [f'{word}="{told}"'] if told else []
        if sweep.parts:
            yield f'parts="{" ".join(own(node.name) for node in sweep.parts)}"'
        if of is None:
            yield from [f'left="{" ".join(map(own, sweep.left))}"'] * bool(sweep.left)
            yield f'makes="{" ".join(map(own, sweep.stored))}"'

    def axis(self, axis: str, walk: Walk) -> str:
        joined = walk.joined.get(axis, (axis,))
        size = "*".join(self.codes[a] for a in joined)
        return axis if axis == size == short(axis) else f"{short(axis)}={size}"


def _words(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield from WORD.findall(line)


def _folded(line: str) -> str:
    own = line.lstrip()
    margin = line[: len(line) - len(own)]
    return margin + broken(own, margin) if not own.startswith(("for ", "if ")) else line
