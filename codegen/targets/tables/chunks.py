"""Functions of a module in chunks on kernels, as text: the loops over chunks and the matrix
products stay lines of torch; what stands between these becomes kernels, each of which walks over
the rows of a chunk.

A kernel writes over a value that nothing reads behind it: the gradient of the logits over the
logits. What only matrix products read or make is stored in their dtype, of 16 bits or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from codegen.chunking import Chunked
from codegen.chunking.nodes import LARGEST, MAPPED, SUM, ChunkNode, closure
from codegen.chunking.passes import Pass, Passes
from codegen.program import NUMBERS, Parameter, Program
from codegen.program.arrays import Arrange, Contract, Positions, Reduce
from codegen.program.parts import is_number, values_in, with_replaced
from codegen.program.shards import Exchange, OwnLargest, WholeSize
from codegen.program.steps import AddAt, Assign, Step
from codegen.program.values import Combine, Compare, Load, Value
from codegen.schedule.entry_rules import rules
from codegen.schedule.flattening import REDUCTIONS, flat
from codegen.schedule.nodes import Flat, LibraryNode
from codegen.sharding.ordering import line
from codegen.targets.lean.chunked import ChunkedPage, PlainChunks
from codegen.targets.lean.loops_of_chunks import (
    DEEP,
    ChunkWriter,
    InLoops,
    Made,
    in_loop,
)
from codegen.targets.lean.outside import Outside
from codegen.targets.lean.pair import Pair
from codegen.targets.lean.plain import FunctionText
from codegen.targets.tables.kernel import Kernel
from codegen.targets.torch.helpers import CALLED
from codegen.targets.torch.lines import broken
from codegen.targets.torch.printer import Printer
from codegen.targets.torch.wrapping import free
from derive.language.errors import QuestionError

CONDITIONS = (Compare, Combine)  # kernels compute these again: an array of them has another dtype


class KernelsOfChunks(Protocol):
    """A language of kernels, for those of one chunk."""

    def kernels(
        self, name: str, flat: Flat, codes: Mapping[str, str]
    ) -> Sequence[Kernel | LibraryNode]:
        """The kernels that compute all results."""

    def may_overwrite(self, flat: Flat, made: str, read: str) -> bool:
        """True if the kernels may write one value over another one."""

    def shape(
        self, kernel: Kernel, made: str, sizes: list[str], numbers: Mapping[str, str]
    ) -> list[str]:
        """The sizes of the memory for a value that a kernel writes."""

    def launch(self, kernel: Kernel, arrays: Sequence[str], numbers: Mapping[str, str]) -> str:
        """The line that calls a kernel; ``numbers`` are the texts of sizes and scalars."""


@dataclass(frozen=True)
class LoopsOfChunk:
    """The kernels of some statements: ``results`` are (name, node); ``over`` are arrays that a
    result may be written over, by its name.
    """

    flat: Flat
    kernels: tuple[Kernel, ...]
    over: Mapping[str, tuple[str, ...]]


class KernelChunkWriter(ChunkWriter):
    """The lines of one function, with kernels for what is no matrix product."""

    def __init__(
        self,
        chunked: Chunked,
        passes: Passes,
        plain: Printer,
        inputs: Mapping[str, str],
        needs: Mapping[str, str],
        language: KernelsOfChunks,
        called: str,
        found: list[Kernel],
    ):
        """``called`` begins the names of kernels, ``found`` are those of the module so far.

        Long: the arguments of any writer of chunks, and those of kernels.
        """
        super().__init__(chunked, passes, plain, inputs, needs)
        self.language, self.called, self.found = language, called, found
        self.loops: dict[InLoops, LoopsOfChunk] = {}
        self.conditions: dict[str, Value] = {}
        self.stored: set[str] = set()  # in the dtype of matrix products
        self.products: dict[str, Value] = {}  # inside of other values
        self.added: dict[str, set[str]] = {}  # what is read for additions to a value
        self.whole = free(f"{self.code}_whole", self.taken)
        self.program = self._program()
        nodes = {node.name: node for node in self.nodes.values()}
        self.of_nodes = {name: self._apart(node) for name, node in nodes.items()}
        self.narrow = self._products()

    def _program(self) -> Program:
        """The program of one chunk: the chunked axis has a length of its own."""
        program, own = self.chunked.program, self.chunked.groups.of
        others = {code for axis, code in program.sizes if axis not in own}
        named = {code: code for axis, code in program.sizes}
        for axis, code in program.sizes:
            if axis in own and code in others:
                named[code] = free(f"own_{code}", self.taken)
        sizes = tuple((a, named[code] if a in own else code) for a, code in program.sizes)
        of_own = {code for axis, code in sizes if axis in own}
        self.own_codes = {named[code] for _, code in program.sizes if code == self.code} & of_own
        flattened = tuple(
            (named[whole], tuple(map(named.get, parts)))
            if named[whole] in of_own
            else (whole, parts)
            for whole, parts in program.flattened
        )
        return replace(program, sizes=sizes, flattened=flattened)

    # -- cutting -----------------------------------------------------------------------------

    def steps_of(self, one: Pass) -> list[tuple[ChunkNode, Step]]:
        """The steps of a pass: as many as possible of one kernel together, then what torch computes
        from these, and so on.
        """
        steps = [(n, s) for n in self._in_order(one) for s in self.of_nodes[n.name]]
        self.conditions = {
            step.name: step.value
            for _, step in steps
            if isinstance(step, Assign) and isinstance(step.value, CONDITIONS)
        }
        self.added = {}
        for _, step in steps:
            if isinstance(step, AddAt):
                self.added.setdefault(step.name, set()).update(self._real_reads(step))
        able = {step.name: self._in_kernels(node, step.name) for node, step in steps}
        waiting = self._parted(steps, able)
        by_torch = {n for _, step, inside in waiting if not inside for n in line(step).reads}
        waiting = [w for w in waiting if w[1].name not in self.conditions or w[1].name in by_torch]
        writers: dict[str, int] = {}
        for _, step, _ in waiting:
            writers[step.name] = writers.get(step.name, 0) + 1
        done: list[tuple[ChunkNode, Step]] = []
        while waiting:
            rest = self._taken(waiting, writers, done, inside=False)
            if len(rest) == len(waiting):
                rest = self._kernel(waiting, writers, done, by_torch)
            waiting = rest
        return done

    def _parted(self, steps, able: Mapping[str, bool]) -> list[tuple[ChunkNode, Step, bool]]:
        """The steps, each with whether a kernel computes it. What is accumulated is computed for
        the chunk by a kernel, and added by torch.
        """
        found = []
        for node, step in steps:
            if not isinstance(step, Exchange) or not able[step.name]:
                found.append((node, step, able[step.name] and step.name not in self.conditions))
                continue
            (sent,) = step.sent
            part = free(f"{node.name}_part", self.taken)
            self.taken.add(part)
            self.parts[part] = node.name
            value = sent.value
            if isinstance(value, OwnLargest):
                value = Reduce("max", value.operand, value.along, value.keep, dims=value.dims)
            found.append((node, Assign(part, value), True))
            own = replace(sent, value=Load(part, dims=value.dims))
            found.append((node, replace(step, sent=(own,)), False))
        return found

    def _taken(self, waiting, writers: dict[str, int], done, inside: bool) -> list:
        """Do what is ready, in order; what is not is returned."""
        rest = []
        for node, step, own in waiting:
            behind = {s.name for _, s, _ in rest if s.name == step.name}
            if own == inside and not behind and not self._missing(self._before(step, own), writers):
                done.append((node, step))
                writers[step.name] -= 1
            else:
                rest.append((node, step, own))
        return rest

    def _before(self, step: Step, own: bool) -> set[str]:
        """The names that a step waits for. A kernel of its ``own`` has all additions to a value."""
        reads = {*line(step).reads}
        if own:
            reads = self._real_reads(step) | self.added.get(step.name, set())
        return reads - {step.name}

    def _missing(self, reads: Iterable[str], writers: Mapping[str, int]) -> set[str]:
        alias = {n: self.nodes[n].name if n in self.nodes else n for n in reads}
        return {n for n, own in alias.items() if writers.get(n) or writers.get(own)}

    def _real_reads(self, step: Step) -> set[str]:
        return {*line(self._inside(step)).reads}

    def _kernel(self, waiting, writers: dict[str, int], done, by_torch: set[str]) -> list:
        """Put everything that is ready into one kernel; torch computes it if there is none."""
        of_needs = next(
            self.of_needs[node.name]
            for node, step, own in waiting
            if own and not self._missing(self._before(step, own), writers)
        )
        mine: list[tuple[ChunkNode, Step]] = []
        alike = [w for w in waiting if self.of_needs[w[0].name] == of_needs]
        left = self._taken(alike, writers, mine, inside=True)
        kept = {id(step) for _, step, _ in left}
        rest = [w for w in waiting if self.of_needs[w[0].name] != of_needs or id(w[1]) in kept]
        steps = [self._inside(step) for _, step in mine]
        made = dict.fromkeys(step.name for step in steps)
        later = {n for _, step, own in rest for n in (*line(step).reads, *self._real_reads(step))}
        results = tuple(n for n in made if n in later or n in self.parts or self.is_written(n))
        loops = self._loops(steps, results) if results else None
        if loops is None:
            done += mine
            return rest
        read = {v.name for s in steps for v in _loads(s)} - made.keys() - self.numbers
        whole = InLoops(results[0], tuple(steps), tuple(sorted(read)), results)
        self.loops[whole] = loops
        done.append((mine[0][0], whole))
        return rest

    @property
    def numbers(self) -> set[str]:
        function = self.chunked.function
        return {p.name for p in function.parameters if p.role in NUMBERS} | {self.whole}

    def _apart(self, node: ChunkNode) -> list[Step]:
        """The steps of a node, with matrix products inside of a value as steps of their own."""
        found: list[Step] = []

        def named(value: Value) -> Value | None:
            if not isinstance(value, Contract) or value is whole:
                return None
            name = free(f"{node.name}_product", self.taken)
            self.taken.add(name)
            self.parts[name], self.products[name] = node.name, value
            found.append(Assign(name, value))
            return Load(name, dims=value.dims)

        for step in node.steps:
            able = node.kind in (MAPPED, SUM, LARGEST)
            whole = self._values(step)[0] if isinstance(step, (Assign, Exchange)) else None
            found.append(with_replaced(step, named) if able else step)
        return found

    def _ended(self, node: ChunkNode, step: Step) -> list[ChunkNode]:
        if isinstance(step, InLoops):
            return super()._ended(node, step)
        is_last = step is self.of_nodes[node.name][-1]
        return [node] if is_last and self.is_written(node.name) else []

    def _in_kernels(self, node: ChunkNode, name: str) -> bool:
        """True if a kernel may compute the value ``name``, which is that of the node or a product
        inside.
        """
        if node.kind not in (MAPPED, SUM, LARGEST):
            return False
        steps = [s for s in self.of_nodes[node.name] if s.name == name]
        if not all(isinstance(s, (Assign, AddAt, Exchange)) for s in steps):
            return False
        added = {n for s in steps if isinstance(s, AddAt) for n in line(s).reads} - {name}
        if name in closure(added, self.nodes):
            return False  # it is read before all is added
        values = [value for step in steps for value in self._values(step)]
        first = values[0]
        if isinstance(first, Load) or is_number(first, self.numbers):
            return False
        return all(map(self._is_known, values))

    def _values(self, step: Step) -> Sequence[Value]:
        if isinstance(step, Exchange):
            return [sent.value for sent in step.sent]
        if isinstance(step, AddAt):
            return [*values_in(step)]
        return [step.value]

    def _is_known(self, value: Value) -> bool:
        if isinstance(value, OwnLargest):
            value = value.operand
        every = [value, *values_in(value)]
        return all(
            isinstance(v, WholeSize)
            or (type(v) in rules and (not isinstance(v, Reduce) or v.kind in REDUCTIONS))
            for v in every
        ) and not any(map(self._misfits, every))

    def _misfits(self, value: Value) -> bool:
        """True if the program of a chunk has another length for a dimension: for all rows along the
        chunked axis, or for a chunk's own along another axis, as `Rename` calls it.
        """
        if not isinstance(value, (Load, Positions)):
            return False
        name = value.name if isinstance(value, Load) else ""
        if name in self.products:
            return any(map(self._misfits, values_in(self.products[name])))
        split = self.passes.splits.get(name, ("",) * len(value.dims))
        pairs = zip(value.dims, split, strict=True)
        return any(not d.one and (d.axis.name in self.in_time) != bool(own) for d, own in pairs)

    def _inside(self, step: Step) -> Step:
        """A step as a kernel computes it: conditions where they are read, sizes as numbers."""

        def change(value: Value) -> Value | None:
            if isinstance(value, WholeSize):
                return Load(self.whole)
            if isinstance(value, Load) and value.name in self.conditions:
                return with_replaced(self.conditions[value.name], change)
            return None

        return with_replaced(step, change)

    # -- kernels -----------------------------------------------------------------------------

    def _loops(self, steps: Sequence[Step], results: tuple[str, ...]) -> LoopsOfChunk | None:
        """The kernels of these steps; None if there are none."""
        name = free(f"{self.called}_{results[-1]}", self.taken | {k.name for k in self.found})
        try:
            found = self._flat(steps, results)
            kernels = self.language.kernels(name, found, dict(self.program.sizes))
        except QuestionError:
            return None
        if any(isinstance(kernel, LibraryNode) for kernel in kernels):
            return None
        self.found += kernels
        nodes, arrays = dict(found.results), [array.name for array in found.arrays]
        self.stored |= self.narrow & {*results, *arrays}
        over = {
            name: tuple(
                array
                for array in arrays
                if (array in self.narrow) == (name in self.narrow)
                and self.language.may_overwrite(found, nodes[name], array)
            )
            for name in results
        }
        return LoopsOfChunk(found, tuple(kernels), over)

    def _flat(self, steps: Sequence[Step], results: tuple[str, ...]) -> Flat:
        """The loops of these steps, on arrays in the dtypes in which a chunk has them."""
        made = {step.name for step in steps}
        loads = {v.name: v for s in steps for v in _loads(s) if v.name not in made}
        own = {p.name: p for p in self.chunked.function.parameters}
        parameters = [
            Parameter(name, (), "scalar")
            if name == self.whole
            else own.get(name) or Parameter(name, load.dims, "statement")
            for name, load in loads.items()
        ]
        function = replace(
            self.chunked.function,
            parameters=tuple(parameters),
            steps=tuple(steps),
            results=results,
            sizes=(),
        )
        found = flat(self.program, function)
        arrays = tuple(
            a
            if a.entries == "whole"
            else replace(a, entries="real" if a.name in self.narrow else "exact")
            for a in found.arrays
        )
        return replace(found, arrays=arrays, rounded=frozenset(self.narrow & {*results}))

    def _products(self) -> set[str]:
        """Matrix products that only kernels read, and values that only matrix products read."""
        nodes = {node.name: node for node in self.nodes.values()}
        steps = [(nodes[name], step) for name, own in self.of_nodes.items() for step in own]
        readers: dict[str, list[tuple[ChunkNode, Step]]] = {}
        for node, step in steps:
            for name in line(step).reads:
                readers.setdefault(name, []).append((node, step))
        written = {name for one in self.passes.passes for name in one.written}
        found = set()
        for node, step in steps:
            others = [each for each in readers.get(step.name, ()) if each[1].name != step.name]
            if (node.kind != MAPPED and step.name == node.name) or step.name in written:
                continue
            value = getattr(step, "value", None)
            if isinstance(value, Contract) and value.is_of_matrices:
                is_alone = all(self._in_kernels(n, s.name) for n, s in others)
                is_alone &= not any(isinstance(s, AddAt) for s in self.of_nodes[node.name])
                found |= {step.name} if is_alone else set()
            elif self._in_kernels(node, step.name) and others:
                found |= {step.name} if all(_multiplies(s, step.name) for _, s in others) else set()
        return found

    # -- lines -------------------------------------------------------------------------------

    def _assigned(self, node: ChunkNode, step: Assign, dead: set[str]) -> tuple[list[str], str]:
        if step.name in self.stored and isinstance(step.value, Contract):
            value = self._named_own(step.value)
            left, right = self.printer.product(value)
            return [in_loop(broken(f"{step.name} = {left} @ {right}", DEEP))], ""
        return super()._assigned(node, step, dead)

    def in_loops(self, step: InLoops, dead: set[str]) -> tuple[list[str], list[Made]]:
        """Allocations and launches; a result is written over a value that nothing reads behind."""
        loops, lines, made = self.loops[step], [], []
        names = {a.name: self._text(a.name) for a in loops.flat.arrays}
        of_results = {node: result for result, node in loops.flat.results}
        layouts, left = loops.flat.layouts, set(dead)
        for kernel in loops.kernels:
            numbers = {code: self._size(code) for code in kernel.sizes}
            numbers |= {s: self.code if s == self.whole else s for s in kernel.scalars}
            for node in kernel.writes:
                result = of_results.get(node, "")
                names[node] = self._own_name(result) if result else free(node, self.taken)
                self.taken.add(names[node])
                over = next((n for n in loops.over.get(result, ()) if n in left), "")
                left.discard(over)
                if result:
                    made.append((result, layouts[result], over))
                memory = over or self._memory(kernel, node, result, loops, numbers)
                lines.append(in_loop(broken(f"{names[node]} = {memory}", DEEP)))
            arrays = [names[n] for n in (*kernel.reads, *kernel.writes)]
            lines.append(in_loop(self.language.launch(kernel, arrays, numbers)))
        return lines, made

    def _memory(
        self,
        kernel: Kernel,
        node: str,
        result: str,
        loops: LoopsOfChunk,
        numbers: Mapping[str, str],
    ) -> str:
        """The allocation of what a kernel writes."""
        if result:
            sizes = self.sizes_of(loops.flat.layouts[result])
        else:
            sizes = [self._size(code) for code in self._sizes_of(kernel, loops, node)]
        shape = ", ".join(self.language.shape(kernel, node, sizes, numbers)) or "()"
        kind = f", dtype={self.own['narrow']}" * (result in self.stored)
        return f"{self.own['like']}.new_empty({shape}{kind})"

    def _sizes_of(self, kernel: Kernel, loops: LoopsOfChunk, node: str) -> Sequence[str]:
        if node in kernel.shapes:
            return kernel.shapes[node]
        codes = dict(self.program.sizes)
        return [codes[a] for n in loops.flat.nodes if n.name == node for a in n.axes]

    def _size(self, code: str) -> str:
        return self.own["n"] if code in self.own_codes else code

    def _text(self, name: str) -> str:
        """The name of an array that kernels read; of an argument, converted to the wide dtype."""
        return self.printer.widened.get(name, self._own_name(name))


def _loads(step: Step) -> list[Load]:
    return [v for v in values_in(step) if isinstance(v, Load)]


def _multiplies(step: Step, name: str) -> bool:
    """True if a step reads the value as an operand of a matrix product alone."""
    value = step.sent[0].value if isinstance(step, Exchange) else getattr(step, "value", None)
    if not isinstance(value, Contract) or not value.is_of_matrices:
        return False
    found = []
    for operand in (value.left, value.right):
        while isinstance(operand, Arrange):
            operand = operand.operand
        found.append(isinstance(operand, Load) and operand.name == name)
    others = sum(isinstance(v, Load) and v.name == name for v in values_in(value))
    return others == sum(found)


class ChunksOnKernels(ChunkedPage):
    """The functions of a module in chunks, on kernels; ``start`` begins the names of these, and
    ``found`` are those of the module so far.
    """

    def __init__(
        self,
        chunked: Chunked,
        pair: Pair,
        language: KernelsOfChunks,
        start: str,
        found: list[Kernel],
    ):
        super().__init__(chunked, pair)
        self.language, self.start, self.found = language, start, found

    def writer(self, kind: str, *given) -> KernelChunkWriter:
        return KernelChunkWriter(*given, self.language, f"{self.start}{kind}", self.found)


def functions_of(
    chunked: Chunked,
    outside: Outside,
    plain: PlainChunks | None,
    language: KernelsOfChunks,
    lines: str,
) -> tuple[list[FunctionText], list[Kernel]]:
    """The functions with kernels, and these; ``lines`` is the name of the module in chunks."""
    kernels: list[Kernel] = []
    pages = [ChunksOnKernels(chunked, Pair(chunked.program, outside), language, "", kernels)]
    if plain is not None:
        own = plain.pair
        pages.append(ChunksOnKernels(plain.chunked, own, language, "plain_", kernels))
    functions = []
    for page in pages:
        for text in page.texts():
            own = tuple(CALLED.sub(rf"{lines}._\1", line) for line in text.lines)
            functions.append(replace(text, lines=own))
    return functions, kernels


def names_in(chunked: Chunked, plain: PlainChunks | None) -> set[str]:
    """All names used by the functions of a module."""
    found: set[str] = set()
    for own in filter(None, (chunked, plain and plain.chunked)):
        function = own.function
        found |= {p.name for p in function.parameters} | {s.name for s in function.steps}
        found |= {code for _, code in own.program.sizes}
    return found
