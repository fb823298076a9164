"""The plain functions of a lean module on kernels, as text: allocations and launches.

They have the arguments and results of those that they replace; library operations between loops
stay lines of torch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from codegen.program import NUMBERS, Function, Parameter
from codegen.program.arrays import Contract
from codegen.program.parts import is_number, values_in
from codegen.program.reads import Convolve
from codegen.program.steps import Assign, Fill, NotZero, Refuse, SplitLabel
from codegen.program.values import Load, SizeOf
from codegen.schedule.at_once import AroundLoss, with_gradients
from codegen.schedule.elements import number
from codegen.schedule.flattening import flat
from codegen.schedule.nodes import Flat, LibraryNode
from codegen.targets.lean.pair import Pair
from codegen.targets.lean.plain import FunctionText, PlainFunctions, doc, returning
from codegen.targets.tables.kernel import Kernel
from codegen.targets.tables.sizes import SizeTexts
from codegen.targets.torch.checks import condition, size_lines
from codegen.targets.torch.helpers import CALLED
from codegen.targets.torch.lines import STEP, broken
from codegen.targets.torch.wrapping import KINDS, free, not_asked, wrapped
from derive.language.errors import QuestionError
from derive.language.notation.definition import IGNORE_INDEX, REDUCTION, SUM

# Prints the kernels of a function: of its name, its nodes, the names of sizes by their axes, the
# results that may be left out, and the sizes of axes that stand for any number of dimensions.
Prints = Callable[
    [str, Flat, Mapping[str, str], Sequence[str], Sequence[str]], Sequence[Kernel | LibraryNode]
]


def names_taken(pairs: Sequence[Pair]) -> frozenset[str]:
    """All names used by the functions of a module."""
    taken: set[str] = set()
    for program in (pair.program for pair in pairs):
        taken |= {name for _, name in program.sizes} | {*program.outputs}
        for function in (program.forward, program.backward):
            taken |= {p.name for p in function.parameters} | {s.name for s in function.steps}
    return frozenset(taken)


class KernelPage(PlainFunctions):
    """The functions with kernels. Raises `QuestionError` for operations that no loop computes."""

    indices = ("label",)  # a mask is multiplied with, in the dtype of the others

    def __init__(self, pair: Pair, taken: frozenset[str], prints: Prints):
        program = pair.program
        super().__init__(program, pair.outside)
        self.prints, self.codes = prints, dict(program.sizes)
        self.renamed = {}  # values have the names of results
        self.pair, self.at_once = pair, None
        self.plain: KernelPage | None = None  # of the calls that pass nothing optional
        self.own = {name: free(name, taken) for name in ("kernels", "lines")}
        for name in ("forward", "backward", "at_once"):
            part = "plain_" * bool(pair.is_plain)
            self.own[name] = free(f"{part}{name}", taken)
        gradients = program.backward.results
        own = [self._loops("forward", program.forward, ())]
        self.at_once = self._at_once(pair)
        if not self.at_once or self.outside.reductions:  # where entries are asked for
            left_out = gradients if self.asked() else ()
            own.append(self._loops("backward", program.backward, left_out))
        self.loops = [found for found in (*own, self.at_once) if found and found.kernels]

    @property
    def kernels(self) -> list[Kernel]:
        return [kernel for loops in self.loops for kernel in loops.kernels]

    def written(self) -> Iterator[FunctionText]:
        """The functions, without dtypes that no line names."""
        for loops in self.loops:
            self.current = loops
            if loops is self.at_once:
                text = self._with_gradients()
            else:
                text = self.forward() if self._is_forward(loops) else self.backward()
            helper = rf"{self.own['lines']}._\1"
            lines = tuple(CALLED.sub(helper, line) for line in text.lines)
            for name in (self.wide, self.both):
                own = [line for line in lines if line.lstrip().startswith(f"{name} = ")]
                if not any(speaks_of(line, name) for line in lines if line not in own):
                    lines = tuple(line for line in lines if line not in own)
            yield replace(text, lines=lines)

    def _is_forward(self, loops: FunctionOnKernels) -> bool:
        return loops.function is self.program.forward

    def _loops(self, name: str, function: Function, left_out: Sequence[str]) -> FunctionOnKernels:
        found = flat(self.program, function)
        if self.outside.reductions:  # the entries of a loss are not rounded before they are added
            own = {p.name for p in self.program.upstreams}
            arrays = [replace(a, entries="exact") if a.name in own else a for a in found.arrays]
            rounded = found.rounded - {*self.outputs}
            found = replace(found, arrays=tuple(arrays), rounded=rounded)
        return self._printed(name, function, found, left_out)

    def _printed(
        self, name: str, function: Function, flat: Flat, left_out: Sequence[str]
    ) -> FunctionOnKernels:
        nodes = dict.fromkeys(node for result, node in flat.results if result in left_out)
        given = self.own[name], flat, self.codes, tuple(nodes), self.program.several
        return FunctionOnKernels(function, flat, tuple(self.prints(*given)))

    def _at_once(self, pair: Pair) -> FunctionOnKernels | None:
        """A loss with its gradients, and the lines around it; None if the output is not a number,
        or a library operation is needed.
        """
        gradients = self.program.backward.results
        found = with_gradients(self.program, gradients, around_of(pair))
        if found is None or any(isinstance(node, LibraryNode) for node in found[1].nodes):
            return None
        function, nodes = found
        return self._printed("at_once", function, nodes, gradients if gradients[1:] else ())

    def _with_gradients(self) -> FunctionText:
        """The function that computes a loss with its gradients."""
        function, forward = self.at_once.function, self.program.forward
        optional = {p.name for p in forward.tensors if p.default is not None}
        given = [p for p in function.parameters if p.name != REDUCTION]
        kinds = [
            f"{p.name}: {KINDS.get(p.role, 'Tensor')}{' | None' * (p.name in optional)}"
            for p in given
        ]
        kinds += [f"{REDUCTION}: str"] * bool(self.outside.reductions)
        kinds += [f"need_{name}: bool = True" for name in self.asked_of(function)]
        fills = [s for s in forward.steps if isinstance(s, Fill)]
        filled = [self.printer(forward).step(step) for step in fills]
        lines = [*self.sizes_in(filled), *filled, *self._formats(returned=True)]
        if self.outside.reductions:
            lines.append(f"{REDUCTION} = REDUCTIONS.index({REDUCTION})")
        lines += [*self._widened(function.tensors), *self.lines(function)]
        if self.plain is not None and self.plain.at_once:
            lines[:0] = self._left_to(self.plain)
        gradients = [f"d{p.name}" if p.role == "input" else "None" for p in given]
        gradients += ["None"] * bool(self.outside.reductions)
        if self.pair.is_plain:
            gradients = [each for each in gradients if each != "None"]
        loss = self.loss_at_once()
        return FunctionText(
            wrapped(f"def {self.name}_at_once", kinds, " -> tuple[Tensor | None, ...]:"),
            doc("The loss, and the gradient of every argument where it arrives as 1."),
            (*lines, returning([loss, *gradients])),
        )

    @property
    def reductions(self) -> list[str]:
        """The line of reductions whose numbers are passed to a kernel, if it reduces."""
        words = [f'"{word}"' for word in (SUM, *(word for word, _ in self.outside.divisors))]
        line = f"REDUCTIONS = [{', '.join(words)}]"
        return [line] if self.at_once and self.outside.reductions else []

    def _left_to(self, plain: KernelPage) -> list[str]:
        """Lines that pass on the calls that pass nothing optional."""
        own = [p.name for p in plain.at_once.function.parameters]
        needs = [f"need_{name}" for name in plain.asked_of(plain.at_once.function)]
        margin = len(STEP) * 2
        there = [f"d{name}" for name in plain.differentiable]
        made = ", ".join([self.outputs[0], *there])
        call = wrapped(f"{made} = {plain.name}_at_once", [*own, *needs], indent=margin)
        given = [p.name for p in self.at_once.function.parameters]
        places = [f"d{name}" if f"d{name}" in there else "None" for name in given]
        returned = returning([self.outputs[0], *places])
        return [condition(plain.pair.tests, "and"), STEP + call, STEP + returned]

    def loss_at_once(self) -> str:
        """The loss in the form returned with its gradients."""
        loss = self.outputs[0]
        is_made = self.is_narrow and not self.is_exact(loss, self.current)
        return loss if is_made else f"{loss}.to({self.both})"

    def asked_of(self, function: Function) -> list[str]:
        """The inputs whose gradients a function computes only if needed."""
        if self.at_once and function is self.at_once.function:
            return self.differentiable if self.differentiable[1:] else []
        return self.asked() if function is self.program.backward else []

    def places(self, function: Function) -> dict[str, str]:
        with_gradients = self.at_once and function is self.at_once.function
        return super().places(self.program.backward if with_gradients else function)

    # -- lines ------------------------------------------------------------------------

    def lines(self, function: Function, margin: str = STEP) -> list[str]:
        loops = next(own for own in self.loops if own.function is function)
        return KernelLines(self, loops, margin).lines()

    def memory_for(
        self, loops: FunctionOnKernels, piece: Kernel, name: str, shape: Sequence[str]
    ) -> str:
        """The allocation of a kernel's result."""
        like, dtype = self.format_of(loops, piece, name)
        given = ", ".join(shape) or "()"
        return f"{like}.new_empty({given}{f', dtype={dtype}' if dtype else ''})"

    def format_of(self, loops: FunctionOnKernels, piece: Kernel, name: str) -> tuple[str, str]:
        """A tensor whose dtype a value's memory has, or any one and the dtype: that of the inputs,
        or of the argument that a gradient is of. Values that are passed on, or are parts of a loss,
        are not rounded.
        """
        if not self.is_narrow:
            return self.like, ""
        return self._format(loops, name, name in (*piece.exact, *piece.left))

    def _format(self, loops: FunctionOnKernels, name: str, exact: bool) -> tuple[str, str]:
        function, result = loops.function, self._result(loops, name)
        like = self.printer(function).like
        if loops is self.at_once and not exact:
            own = result.removeprefix("d")
            return (like, self.both) if result in self.outputs else (own, f"unscaled({own})")
        if exact or (self.outside.reductions and result in self.outputs):
            return like, self.wide
        if self._is_forward(loops):
            return (like, "") if len(self.floats) == 1 else (like, self.both)
        own = {p.name for p in function.parameters}
        if result.removeprefix("d") in own:
            return result.removeprefix("d"), ""
        upstream = self.program.upstreams[0]
        is_long = len(self._layout(result)) >= len(upstream.layout)
        return (upstream.name, "") if is_long else (like, self.wide)

    def _result(self, loops: FunctionOnKernels, name: str) -> str:
        return next((result for result, node in loops.flat.results if node == name), name)

    def _layout(self, result: str) -> Sequence[object]:
        inputs = {f"d{p.name}": p.layout for p in self.program.forward.parameters}
        return inputs.get(result, ())

    def launched(self, piece: Kernel, named: Callable[[str], str], margin: int) -> Iterator[str]:
        """The lines that call a kernel; ``named`` maps arrays to their names."""
        given = [*map(named, (*piece.reads, *piece.writes)), *piece.sizes, *piece.scalars]
        yield wrapped(f"{self.own['kernels']}.{piece.name}", given, indent=margin)

    @property
    def is_narrow(self) -> bool:
        """True if kernels alone compute the function that is being printed."""
        return len(self.current.kernels) == len(self.current.pieces)

    @property
    def like(self) -> str:
        return self.printer(self.current.function).like

    def _widened(self, tensors: Sequence[Parameter]) -> list[str]:
        return [] if self.is_narrow else super()._widened(tensors)

    def returned(self, name: str) -> str:
        """A result, converted unless a kernel made it in its dtype."""
        is_made = self.is_narrow and not self.is_exact(name, self.current)
        return name if is_made else super().returned(name)

    def is_exact(self, result: str, loops: FunctionOnKernels) -> bool:
        """True if a kernel computes it without rounding it."""
        exact = {made for kernel in loops.kernels for made in kernel.exact}
        return dict(loops.flat.results)[result] in exact

    def multiplies_matrices(self, function: Function) -> bool:
        """True if a line of torch multiplies matrices."""
        loops = next(own for own in self.loops if own.function is function)
        lines = [Assign(p.name, p.value) for p in loops.pieces if isinstance(p, LibraryNode)]
        return any(isinstance(v, (Contract, Convolve)) for line in lines for v in values_in(line))


def around_of(pair: Pair) -> AroundLoss:
    """Torch's computation around the entries of a loss."""
    outside, forward = pair.outside, pair.program.forward
    labels = [step.ignored for step in forward.steps if isinstance(step, SplitLabel)]
    return AroundLoss(
        reduces=bool(outside.reductions),
        divisors=tuple(steps for _, steps in outside.divisors),
        ignored=tuple((i.label.name, i.kept.name) for i in outside.ignoring),
        index=IGNORE_INDEX if outside.ignoring else "".join(labels[:1]),
        absent={name: number(Fraction(default)) for name, default in pair.absent},
    )


def imports_of(
    name: str,
    lines: str,
    functions: Sequence[FunctionText],
    folder: Sequence[str],
    libraries: Sequence[str] = (),
) -> list[str]:
    """The import lines for the functions, the module ``name`` as ``lines`` among them; with those
    for ``libraries`` and of the ``folder``.
    """
    code = "\n".join(line for f in functions for line in (f.signature, *f.lines))
    found = [f"import {module}" for module in ("functools", "math") if f"{module}." in code]
    found += [""] * bool(found)
    found += [*["import torch"] * ("torch." in code), *libraries, "from torch import Tensor", ""]
    return [*found, f"from .. import {name} as {lines}", *folder]


@dataclass(frozen=True)
class FunctionOnKernels:
    """A function, and the kernels that compute it."""

    function: Function
    flat: Flat
    pieces: tuple[Kernel | LibraryNode, ...]

    @property
    def kernels(self) -> list[Kernel]:
        return [piece for piece in self.pieces if isinstance(piece, Kernel)]


class KernelLines:
    """The lines of one function."""

    def __init__(self, page: KernelPage, loops: FunctionOnKernels, margin: str):
        self.page, self.loops, self.margin = page, loops, margin
        self.function, self.flat, self.pieces = loops.function, loops.flat, loops.pieces
        self.printer = page.printer(self.function)
        self.numbers = self._numbers()
        self.names = self._names()
        every = frozenset(node for _, node in self.flat.results)
        asked = [f"d{name}" for name in page.asked_of(self.function)]
        always = {node for result, node in self.flat.results if result not in asked}
        self.asked = {node for result, node in self.flat.results if result in asked} - always
        self.wanted = self._wanted(every)
        self.every = every

    def lines(self) -> list[str]:
        body: list[str] = []
        before: frozenset[str] | None = None
        unset: list[str] = []
        for piece in self.pieces:
            by = self._by(piece)
            lines = [*self._piece(piece, by)]
            if by is None:
                body += lines
            else:
                if by != before:
                    body.append(self.page.asks_for(self._results(by), self.function))
                body += [STEP + line for line in lines]
                unset += [n for n in self._made(piece) if n in self.every and n not in unset]
            before = by
        results = dict(self.flat.results)
        shown = [n for n in results if results[n] in unset]
        body[:0] = [not_asked(shown)] * bool(shown)
        for result, node in self.flat.results:
            name = self.name(node)
            if name == result or node in self._known_numbers:
                continue
            if node in unset and name not in results:  # where it was not asked for it is not there
                asked = self._results(frozenset([node]))
                body.append(self.page.asks_for(asked, self.function))
                body.append(f"{STEP}{result} = {name}")
            else:
                body.append(f"{result} = {name}")
        return [*self.sizes(), *self.refusals(), *self.number_lines(), *body]

    def refusals(self) -> list[str]:
        """Checks of the function's sizes and numbers, printed before anything is launched."""
        steps = [s for s in self.function.steps if isinstance(s, (NotZero, Refuse))]
        steps = [s for s in steps if not self.page.is_left_out(s, self.function)]
        return [self.printer.step(step, self.margin) for step in steps]

    # -- requested results -------------------------------------------------------------

    def _wanted(self, every: frozenset[str]) -> dict[str, frozenset[str]]:
        """The results that each value is computed for."""
        found = {name: frozenset([name]) for name in every}
        for piece in self.pieces[::-1]:
            made = self._made(piece)
            by = frozenset().union(*(found.get(name, frozenset()) for name in made))
            for name in piece.reads:
                found[name] = found.get(name, frozenset()) | by
        return found

    def _by(self, piece: Kernel | LibraryNode) -> frozenset[str] | None:
        """The results that a piece is computed for, if any of them may be unwanted."""
        wanted = (self.wanted.get(name, frozenset()) for name in self._made(piece))
        by = frozenset().union(*wanted)
        return by if by != self.every and by <= self.asked else None

    def _results(self, nodes: frozenset[str]) -> frozenset[str]:
        return frozenset(result for result, node in self.flat.results if node in nodes)

    def _made(self, piece: Kernel | LibraryNode) -> tuple[str, ...]:
        return (piece.name,) if isinstance(piece, LibraryNode) else piece.writes

    # -- pieces ------------------------------------------------------------------------

    def _piece(self, piece: Kernel | LibraryNode, by: frozenset[str] | None) -> Iterator[str]:
        if isinstance(piece, LibraryNode):
            yield self.printer.step(Assign(piece.name, piece.value), self.margin)
            return
        for name in piece.writes:
            memory = self.page.memory_for(self.loops, piece, name, self.shape(name))
            line = f"{self.name(name)} = {memory}"
            wanted = self._wanted_for(piece, name)
            if self.is_left_out(piece, name) and wanted != by:
                asked = self.page.asks_for(self._results(wanted), self.function)
                line += f" {asked.removesuffix(':')} else None"
            yield broken(line, self.margin)
        yield from self.page.launched(piece, self.name, len(self.margin))

    def is_left_out(self, kernel: Kernel, name: str) -> bool:
        """True if a kernel writes it only on request."""
        return self._wanted_for(kernel, name) <= self.asked and name not in kernel.left

    def _wanted_for(self, kernel: Kernel, name: str) -> frozenset[str]:
        """The results that a kernel writes a value for."""
        return self.wanted[name] if kernel.flags else self.every

    def name(self, node: str) -> str:
        return self.names.get(node, node)

    def _names(self) -> dict[str, str]:
        """Result names for values, where no line of torch uses another name for them."""
        spoken = {
            name for p in self.pieces if isinstance(p, LibraryNode) for name in (*p.reads, p.name)
        }
        made = {name for p in self.loops.kernels for name in p.writes}
        taken = {p.name for p in self.function.parameters} | made | spoken
        found: dict[str, str] = {}
        for result, node in self.flat.results:
            is_free = result not in taken and result not in found.values()
            if is_free and result != node and node in made - spoken and node not in found:
                found[node] = result
        return found

    def shape(self, name: str) -> list[str]:
        layouts = dict(self.flat.layouts)
        for result, node in self.flat.results:
            if result in layouts:
                layouts.setdefault(node, layouts[result])
        for piece in self.pieces:
            if isinstance(piece, LibraryNode):
                values = values_in(Assign(piece.name, piece.value))
                for value in (value for value in values if isinstance(value, Load)):
                    layouts.setdefault(value.name, value.dims)
        if name in layouts:
            found = ["1" if d.one else self.page.codes[d.axis.name] for d in layouts[name]]
        else:
            own = {n.name: [self.page.codes[axis] for axis in n.axes] for n in self.flat.nodes}
            for piece in self.loops.kernels:  # its language's own numbers
                own |= {made: [*sizes] for made, sizes in piece.shapes.items()}
            found = own[name]
        is_whole = found and self.page.is_pointwise  # in the shape of its arguments
        return [f"{self.printer.like}.shape"] if is_whole else found

    # -- numbers and sizes -------------------------------------------------------------

    def _numbers(self) -> dict[str, Assign]:
        """The scalar steps, which lines of torch may read."""
        own = {p.name for p in self.function.parameters if p.role in NUMBERS}
        found: dict[str, Assign] = {}
        for step in self.function.steps:
            if isinstance(step, Assign) and is_number(step.value, own | found.keys()):
                found[step.name] = step
        return found

    @property
    def _known_numbers(self) -> set[str]:
        return self.numbers.keys() - {name for p in self.loops.kernels for name in p.writes}

    def number_lines(self) -> list[str]:
        read: set[str] = {result for result, _ in self.flat.results}
        for piece in self.pieces:
            if isinstance(piece, LibraryNode):
                values = values_in(Assign(piece.name, piece.value))
                read |= {value.name for value in values if isinstance(value, Load)}
        found: list[str] = []
        for name, step in reversed(self.numbers.items()):
            if name in read & self._known_numbers:
                found.insert(0, self.printer.step(step, self.margin))
                read |= {value.name for value in values_in(step) if isinstance(value, Load)}
        return found

    def sizes(self) -> list[str]:
        """The sizes in the lines: from shapes of arguments, or computed from others."""
        needed, every = self._sizes_needed(), {*self.page.codes.values()}
        given = {p.name for p in self.function.parameters if p.role in NUMBERS}
        texts, around = self._size_texts()
        parts = {
            self.page.codes[whole]: [self.page.codes[axis] for axis in axes]
            for whole, axes in self.flat.parts.items()
            if whole in self.page.codes
        }
        wanted: list[str] = []

        def ask(name: str) -> None:
            """Add a size, after those that it is computed from."""
            said = " ".join([texts.get(name, ""), *around.get(name, ())])
            for other in sorted(every - {name}):
                if speaks_of(said, other):
                    ask(other)
            if name not in wanted:
                wanted.append(name)

        for name in sorted(needed - given):
            ask(name)
        try:
            found = SizeTexts(texts, given, parts).lines([n for n in wanted if n not in given])
        except KeyError as error:
            raise QuestionError(
                f"{self.function.name}: kernels need the size {error.args[0]} of an argument",
                "leave --target out",
            ) from None
        lines: list[str] = []
        for line in _of_shapes(found, {p.name: len(p.layout) for p in self.function.tensors}):
            name = line.partition(" = ")[0]
            own = around.get(name, [line])  # with the checks before and after it
            lines += [line if other.startswith(f"{name} = ") else other for other in own]
        return lines

    def _size_texts(self) -> tuple[dict[str, str], dict[str, Sequence[str]]]:
        """The text of each size, in names of arguments and of other sizes; and the lines of
        computed sizes, with their checks.
        """
        places: dict[str, tuple[str, int]] = {}
        optional = {p.name for p in self.function.tensors if p.default is not None}
        for p in sorted(self.function.tensors, key=lambda p: p.name in optional):
            for i, dim in enumerate(p.layout):
                if not dim.one:
                    places.setdefault(self.page.codes[dim.axis.name], (p.name, i))
        text = "{}.numel()" if self.page.is_pointwise else "{}.shape[{}]"
        texts = {name: text.format(tensor, i) for name, (tensor, i) in places.items()}
        texts |= {name: str(size) for name, size in self.page.program.fixed}
        around: dict[str, Sequence[str]] = {}
        for name, value in self.function.sizes:
            if name not in texts:
                around[name] = lines = size_lines(self.printer, name, value)
                start = f"{name} = "
                texts[name] = next(t.removeprefix(start) for t in lines if t.startswith(start))
        return texts | {n: t for n, t in self.page.program.derived if n not in texts}, around

    def _sizes_needed(self) -> set[str]:
        every = {*self.page.codes.values()}
        found: set[str] = set()
        for piece in self.pieces:
            if isinstance(piece, LibraryNode):
                for value in values_in(Assign(piece.name, piece.value)):
                    if isinstance(value, SizeOf):
                        found.add(self.page.codes[value.name])
                text = self.printer.step(Assign(piece.name, piece.value))
                found |= {name for name in every if speaks_of(text, name)}
            else:
                found |= {*piece.sizes}
                found |= {name for made in piece.writes for name in self.shape(made)}
                for number in piece.computed:
                    found |= {*number.takes}
        for line in (*self.number_lines(), *self.refusals()):
            found |= {name for name in every if speaks_of(line, name)}
        return found & every


def speaks_of(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}\b", text) is not None


def _of_shapes(lines: Sequence[str], ranks: Mapping[str, int]) -> list[str]:
    """The lines, with all the sizes of one tensor on one line."""
    found: dict[str, dict[int, str]] = {}
    others: list[str] = []
    for line in lines:
        read = re.fullmatch(r"(\w+) = (\w+)\.shape\[(\d+)\]", line)
        if read is None:
            others.append(line)
        else:
            found.setdefault(read[2], {})[int(read[3])] = read[1]
    shown: list[str] = []
    for tensor, names in found.items():
        if len(names) == ranks.get(tensor):
            own = ", ".join(names[i] for i in sorted(names))
            shown.append(f"{own}{',' * (len(names) == 1)} = {tensor}.shape")
        else:
            shown += [f"{name} = {tensor}.shape[{i}]" for i, name in names.items()]
    return [*shown, *others]
