"""The plain functions of a lean module on kernels, as text: what is allocated and launched.

They have the arguments and results of those that they stand for; what libraries do between loops
stays a line of torch.

Long: one text for both languages; the lines, what is asked for and the numbers read each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from codegen.program import NUMBERS, Function, Parameter
from codegen.program.arrays import Contract
from codegen.program.parts import is_number, values_in
from codegen.program.reads import Convolve
from codegen.program.steps import Assign, NotZero, Refuse
from codegen.program.values import Load, SizeOf
from codegen.schedule.asked import Asked
from codegen.schedule.flattening import flat
from codegen.schedule.nodes import Flat, Whole
from codegen.targets.lean.helpers import CALLED
from codegen.targets.lean.pair import Pair
from codegen.targets.lean.plain import FunctionText, PlainFunctions
from codegen.targets.tables.kernel import Kernel
from codegen.targets.tables.sizes import Sizes
from codegen.targets.torch.lines import STEP, broken
from codegen.targets.torch.wrapping import free, not_asked, wrapped
from derive.language.errors import QuestionError

# Prints the kernels of a function: of its name, its nodes, the names of sizes by their axes, and
# what is asked of them.
Prints = Callable[[str, Flat, Mapping[str, str], Asked], Sequence[Kernel | Whole]]


def names_taken(pairs: Sequence[Pair]) -> frozenset[str]:
    """What the functions of a module call something."""
    taken: set[str] = set()
    for program in (pair.program for pair in pairs):
        taken |= {name for _, name in program.sizes} | {*program.outputs}
        for function in (program.forward, program.backward):
            taken |= {p.name for p in function.parameters} | {s.name for s in function.steps}
    return frozenset(taken)


@dataclass(frozen=True)
class Loops:
    """A function, and what computes it."""

    function: Function
    flat: Flat
    pieces: tuple[Kernel | Whole, ...]

    @property
    def kernels(self) -> list[Kernel]:
        return [piece for piece in self.pieces if isinstance(piece, Kernel)]


class KernelPage(PlainFunctions):
    """The functions that have kernels. Raises `QuestionError` for what no loop computes."""

    indices = ("label",)  # a mask is multiplied with, in the format of the others

    def __init__(self, pair: Pair, taken: frozenset[str], prints: Prints):
        program = pair.program
        super().__init__(program, pair.outside)
        self.prints, self.codes = prints, dict(program.sizes)
        self.renamed = {}  # what is made is called as the results are
        self.own = {name: free(name, taken) for name in ("kernels", "lines")}
        for name in ("forward", "backward"):
            part = "plain_" * bool(pair.is_plain)
            self.own[name] = free(f"{part}{name}", taken)
        self.loops = [
            found
            for found in (
                self._loops(self.own["forward"], program.forward, ()),
                self._loops(
                    self.own["backward"],
                    program.backward,
                    program.backward.results if self.asked() else (),
                ),
            )
            if found.kernels
        ]

    @property
    def kernels(self) -> list[Kernel]:
        return [kernel for loops in self.loops for kernel in loops.kernels]

    def written(self) -> Iterator[FunctionText]:
        """The functions, without formats that no line names."""
        for loops in self.loops:
            self.current = loops
            text = self.forward() if self._is_forward(loops) else self.backward()
            helper = rf"{self.own['lines']}._\1"
            lines = tuple(CALLED.sub(helper, line) for line in text.lines)
            for name in (self.wide, self.both):
                own = [line for line in lines if line.startswith(f"{name} = ")]
                if not any(_speaks_of(line, name) for line in lines if line not in own):
                    lines = tuple(line for line in lines if line not in own)
            yield replace(text, lines=lines)

    def _is_forward(self, loops: Loops) -> bool:
        return loops.function is self.program.forward

    def _loops(self, name: str, function: Function, left_out: Sequence[str]) -> Loops:
        program = self.program
        found = flat(program, function)
        upstreams = [p.name for p in program.upstreams if p.layout and self.outside.reductions]
        asked = Asked(
            tuple(dict.fromkeys(node for result, node in found.results if result in left_out)),
            tuple(upstreams),
            tuple(p.name for p in program.forward.tensors if p.default is not None),
            tuple(p.name for p in program.forward.parameters if _is_zero(p)),
            program.several,
        )
        return Loops(function, found, tuple(self.prints(name, found, self.codes, asked)))

    # -- lines ------------------------------------------------------------------------

    def lines(self, function: Function, margin: str = STEP) -> list[str]:
        loops = next(own for own in self.loops if own.function is function)
        return _Lines(self, loops, margin).lines()

    def memory_for(self, loops: Loops, piece: Kernel, name: str, shape: Sequence[str]) -> str:
        """The memory for what a kernel makes."""
        return f"{self.printer(loops.function).like}.new_empty({', '.join(shape) or '()'})"

    def launched(self, piece: Kernel, named: Callable[[str], str], margin: int) -> Iterator[str]:
        """The lines that call a kernel; ``named`` says what arrays are called."""
        for name in piece.repeated:
            yield f"{name}, {name}_repeated = one_number({name})"
        arrays = [*map(named, (*piece.reads, *piece.writes))]
        others = [*piece.sizes, *(f"{name}_repeated" for name in piece.repeated)]
        others += [*(f"is_one_number({name})" for name in piece.filled), *piece.scalars]
        yield wrapped(f"{self.own['kernels']}.{piece.name}", [*arrays, *others], indent=margin)

    def multiplies_matrices(self, function: Function) -> bool:
        """Whether a line of torch does."""
        loops = next(own for own in self.loops if own.function is function)
        lines = [Assign(p.name, p.value) for p in loops.pieces if isinstance(p, Whole)]
        return any(isinstance(v, (Contract, Convolve)) for line in lines for v in values_in(line))


class _Lines:
    """The lines of one function."""

    def __init__(self, page: KernelPage, loops: Loops, margin: str):
        self.page, self.loops, self.margin = page, loops, margin
        self.function, self.flat, self.pieces = loops.function, loops.flat, loops.pieces
        self.printer = page.printer(self.function)
        self.numbers = self._numbers()
        self.names = self._names()
        every = frozenset(node for _, node in self.flat.results)
        asked = [f"d{name}" for name in page.asked()] if self._is_backward else []
        always = {node for result, node in self.flat.results if result not in asked}
        self.asked = {node for result, node in self.flat.results if result in asked} - always
        self.wanted = self._wanted(every)
        self.every = every

    @property
    def _is_backward(self) -> bool:
        return self.function is self.page.program.backward

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
            name = self._name(node)
            if name == result or node in self._known_numbers:
                continue
            if node in unset and name not in results:  # where it was not asked for it is not there
                asked = self._results(frozenset([node]))
                body.append(self.page.asks_for(asked, self.function))
                body.append(f"{STEP}{result} = {name}")
            else:
                body.append(f"{result} = {name}")
        return [*self._sizes(), *self._refusals(), *self._number_lines(), *body]

    def _refusals(self) -> list[str]:
        """What the function refuses of its sizes and numbers, before anything is launched."""
        steps = [s for s in self.function.steps if isinstance(s, (NotZero, Refuse))]
        steps = [s for s in steps if not self.page.is_left_out(s, self.function)]
        return [self.printer.step(step, self.margin) for step in steps]

    # -- what is asked for -------------------------------------------------------------

    def _wanted(self, every: frozenset[str]) -> dict[str, frozenset[str]]:
        """The results that each value is computed for."""
        found = {name: frozenset([name]) for name in every}
        for piece in self.pieces[::-1]:
            made = self._made(piece)
            by = frozenset().union(*(found.get(name, frozenset()) for name in made))
            for name in piece.reads:
                found[name] = found.get(name, frozenset()) | by
        return found

    def _by(self, piece: Kernel | Whole) -> frozenset[str] | None:
        """The results that a piece is computed for, where nobody may ask for any of them."""
        wanted = (self.wanted.get(name, frozenset()) for name in self._made(piece))
        by = frozenset().union(*wanted)
        return by if by != self.every and by <= self.asked else None

    def _results(self, nodes: frozenset[str]) -> frozenset[str]:
        return frozenset(result for result, node in self.flat.results if node in nodes)

    def _made(self, piece: Kernel | Whole) -> tuple[str, ...]:
        return (piece.name,) if isinstance(piece, Whole) else piece.writes

    # -- pieces ------------------------------------------------------------------------

    def _piece(self, piece: Kernel | Whole, by: frozenset[str] | None) -> Iterator[str]:
        if isinstance(piece, Whole):
            yield self.printer.step(Assign(piece.name, piece.value), self.margin)
            return
        for name in piece.writes:
            memory = self.page.memory_for(self.loops, piece, name, self._shape(name))
            line = f"{self._name(name)} = {memory}"
            if piece.flags and self.wanted[name] != by and self.wanted[name] <= self.asked:
                asked = self.page.asks_for(self._results(self.wanted[name]), self.function)
                line += f" {asked.removesuffix(':')} else None"
            yield broken(line, self.margin)
        yield from self.page.launched(piece, self._name, len(self.margin))

    def _name(self, node: str) -> str:
        return self.names.get(node, node)

    def _names(self) -> dict[str, str]:
        """What is a result is called as that, where no line of torch speaks of it otherwise."""
        spoken = {name for p in self.pieces if isinstance(p, Whole) for name in (*p.reads, p.name)}
        made = {name for p in self.loops.kernels for name in p.writes}
        taken = {p.name for p in self.function.parameters} | made | spoken
        found: dict[str, str] = {}
        for result, node in self.flat.results:
            is_free = result not in taken and result not in found.values()
            if is_free and result != node and node in made - spoken and node not in found:
                found[node] = result
        return found

    def _shape(self, name: str) -> list[str]:
        layouts = dict(self.flat.layouts)
        for result, node in self.flat.results:
            if result in layouts:
                layouts.setdefault(node, layouts[result])
        for piece in self.pieces:
            if isinstance(piece, Whole):
                values = values_in(Assign(piece.name, piece.value))
                for value in (value for value in values if isinstance(value, Load)):
                    layouts.setdefault(value.name, value.dims)
        if name in layouts:
            return ["1" if d.one else self.page.codes[d.axis.name] for d in layouts[name]]
        node = next(node for node in self.flat.nodes if node.name == name)
        return [self.page.codes[axis] for axis in node.axes]

    # -- numbers and sizes -------------------------------------------------------------

    def _numbers(self) -> dict[str, Assign]:
        """The steps that are numbers, which lines of torch may read."""
        own = {p.name for p in self.function.parameters if p.role in NUMBERS}
        found: dict[str, Assign] = {}
        for step in self.function.steps:
            if isinstance(step, Assign) and is_number(step.value, own | found.keys()):
                found[step.name] = step
        return found

    @property
    def _known_numbers(self) -> set[str]:
        return self.numbers.keys() - {name for p in self.loops.kernels for name in p.writes}

    def _number_lines(self) -> list[str]:
        read: set[str] = {result for result, _ in self.flat.results}
        for piece in self.pieces:
            if isinstance(piece, Whole):
                values = values_in(Assign(piece.name, piece.value))
                read |= {value.name for value in values if isinstance(value, Load)}
        found: list[str] = []
        for name, step in reversed(self.numbers.items()):
            if name in read & self._known_numbers:
                found.insert(0, self.printer.step(step, self.margin))
                read |= {value.name for value in values_in(step) if isinstance(value, Load)}
        return found

    def _sizes(self) -> list[str]:
        """The sizes that the lines speak of: of shapes of arguments, or made of others.

        Long: sizes of one tensor stand on one line, the others where they are known.
        """
        needed = self._sizes_needed()
        given = {p.name for p in self.function.parameters if p.role in NUMBERS}
        places: dict[str, tuple[str, int]] = {}
        known, around = dict(self.function.sizes), {}
        optional = {p.name for p in self.function.tensors if p.default is not None}
        for p in sorted(self.function.tensors, key=lambda p: p.name in optional):
            for i, dim in enumerate(p.layout):
                if not dim.one:
                    places.setdefault(self.page.codes[dim.axis.name], (p.name, i))
        parts = {
            self.page.codes[whole]: [self.page.codes[axis] for axis in axes]
            for whole, axes in self.flat.parts.items()
            if whole in self.page.codes
        }
        texts = {name: f"{tensor}.shape[{i}]" for name, (tensor, i) in places.items()}
        texts |= {name: str(size) for name, size in self.page.program.fixed}
        for name, value in known.items():
            if name not in texts:
                lines = self.printer.size_lines(name, value)
                start = f"{name} = "
                texts[name] = next(t.removeprefix(start) for t in lines if t.startswith(start))
                around[name] = lines
        texts |= {name: text for name, text in self.page.program.derived if name not in texts}
        wanted: list[str] = []

        def ask(name: str) -> None:
            """For a size, after those that it is made of."""
            said = " ".join([texts.get(name, ""), *around.get(name, ())])
            for other in sorted(every - {name}):
                if _speaks_of(said, other):
                    ask(other)
            if name not in wanted:
                wanted.append(name)

        every = {*self.page.codes.values()}
        for name in sorted(needed - given):
            ask(name)
        try:
            found = Sizes(texts, given, parts).lines([n for n in wanted if n not in given])
        except KeyError as error:
            raise QuestionError(
                f"{self.function.name}: kernels need the size {error.args[0]} of an argument",
                "leave --target out",
            ) from None
        found = _of_shapes(found, {p.name: len(p.layout) for p in self.function.tensors})
        lines = []
        for line in found:
            name, known_by = line.partition(" = ")[0], f"{line.partition(' = ')[0]} = "
            own = around.get(name, [line])  # what is refused before it is known, and after
            lines += [line if other.startswith(known_by) else other for other in own]
        return lines

    def _sizes_needed(self) -> set[str]:
        every = {*self.page.codes.values()}
        found: set[str] = set()
        for piece in self.pieces:
            if isinstance(piece, Whole):
                for value in values_in(Assign(piece.name, piece.value)):
                    if isinstance(value, SizeOf):
                        found.add(self.page.codes[value.name])
                text = self.printer.step(Assign(piece.name, piece.value))
                found |= {name for name in every if _speaks_of(text, name)}
            else:
                found |= {*piece.sizes}
                found |= {name for made in piece.writes for name in self._shape(made)}
                for number in piece.computed:
                    found |= {*number.takes}
        for line in (*self._number_lines(), *self._refusals()):
            found |= {name for name in every if _speaks_of(line, name)}
        return found & every


def _is_zero(p: Parameter) -> bool:
    """Whether it is a number that is 0 unless it is passed."""
    return p.role == "scalar" and p.default == 0


def imports_of(
    name: str,
    lines: str,
    functions: Sequence[FunctionText],
    folder: Sequence[str],
    libraries: Sequence[str] = (),
) -> list[str]:
    """The lines that import what the functions name, the module ``name`` as ``lines`` among it;
    with those for ``libraries`` and of the ``folder``.
    """
    code = "\n".join(line for f in functions for line in (f.signature, *f.lines))
    found = [f"import {module}" for module in ("functools", "math") if f"{module}." in code]
    found += [""] * bool(found)
    found += [*["import torch"] * ("torch." in code), *libraries, "from torch import Tensor", ""]
    return [*found, f"from .. import {name} as {lines}", *folder]


def of_running(functions: Sequence[FunctionText]) -> str:
    """The line that imports what kernels in C++ need."""
    code = "\n".join(line for f in functions for line in f.lines)
    running = ["Kernels", *(n for n in ("is_one_number", "one_number") if f" {n}(" in code)]
    return f"from ._running import {', '.join(running)}"


def _speaks_of(text: str, name: str) -> bool:
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
