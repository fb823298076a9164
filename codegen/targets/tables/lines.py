"""The lines of a function on kernels: sizes and numbers, then what is launched or left to torch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codegen.program import NUMBERS, Function
from codegen.program.parts import is_number, values_in
from codegen.program.steps import Assign, NotZero, Refuse
from codegen.program.values import Load, SizeOf
from codegen.schedule.nodes import Flat, Whole
from codegen.targets.tables.kernel import Kernel
from codegen.targets.tables.sizes import Sizes
from codegen.targets.torch.lines import STEP, broken
from codegen.targets.torch.wrapping import not_asked
from derive.language.errors import QuestionError

if TYPE_CHECKING:
    from codegen.targets.tables.page import KernelPage


@dataclass(frozen=True)
class Loops:
    """A function, and what computes it."""

    function: Function
    flat: Flat
    pieces: tuple[Kernel | Whole, ...]

    @property
    def kernels(self) -> list[Kernel]:
        return [piece for piece in self.pieces if isinstance(piece, Kernel)]


class KernelLines:
    """The lines of one function."""

    def __init__(self, page: KernelPage, loops: Loops, margin: str):
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
            memory = self.page.memory_for(self.loops, piece, name, self.shape(name))
            line = f"{self.name(name)} = {memory}"
            wanted = self._wanted_for(piece, name)
            if self.is_left_out(piece, name) and wanted != by:
                asked = self.page.asks_for(self._results(wanted), self.function)
                line += f" {asked.removesuffix(':')} else None"
            yield broken(line, self.margin)
        yield from self.page.launched(piece, self.name, len(self.margin))

    def is_left_out(self, kernel: Kernel, name: str) -> bool:
        """Whether a kernel writes it only where it is asked for."""
        return self._wanted_for(kernel, name) <= self.asked and name not in kernel.left

    def _wanted_for(self, kernel: Kernel, name: str) -> frozenset[str]:
        """The results for which a kernel writes it."""
        return self.wanted[name] if kernel.flags else self.every

    def name(self, node: str) -> str:
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

    def shape(self, name: str) -> list[str]:
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
            found = ["1" if d.one else self.page.codes[d.axis.name] for d in layouts[name]]
        else:
            own = {n.name: [self.page.codes[axis] for axis in n.axes] for n in self.flat.nodes}
            for piece in self.loops.kernels:  # what its language has beside the nodes
                own |= {made: [*sizes] for made, sizes in piece.shapes.items()}
            found = own[name]
        is_whole = found and self.page.is_pointwise  # in the shape of its arguments
        return [f"{self.printer.like}.shape"] if is_whole else found

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

    def number_lines(self) -> list[str]:
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

    def sizes(self) -> list[str]:
        """The sizes that the lines speak of: of shapes of arguments, or made of others."""
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
            """For a size, after those that it is made of."""
            said = " ".join([texts.get(name, ""), *around.get(name, ())])
            for other in sorted(every - {name}):
                if speaks_of(said, other):
                    ask(other)
            if name not in wanted:
                wanted.append(name)

        for name in sorted(needed - given):
            ask(name)
        try:
            found = Sizes(texts, given, parts).lines([n for n in wanted if n not in given])
        except KeyError as error:
            raise QuestionError(
                f"{self.function.name}: kernels need the size {error.args[0]} of an argument",
                "leave --target out",
            ) from None
        lines: list[str] = []
        for line in _of_shapes(found, {p.name: len(p.layout) for p in self.function.tensors}):
            name = line.partition(" = ")[0]
            own = around.get(name, [line])  # what is refused before it is known, and after
            lines += [line if other.startswith(f"{name} = ") else other for other in own]
        return lines

    def _size_texts(self) -> tuple[dict[str, str], dict[str, Sequence[str]]]:
        """What each size is, in names of arguments and of other sizes; and the lines of those that
        are computed, with what they refuse.
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
                around[name] = lines = self.printer.size_lines(name, value)
                start = f"{name} = "
                texts[name] = next(t.removeprefix(start) for t in lines if t.startswith(start))
        return texts | {n: t for n, t in self.page.program.derived if n not in texts}, around

    def _sizes_needed(self) -> set[str]:
        every = {*self.page.codes.values()}
        found: set[str] = set()
        for piece in self.pieces:
            if isinstance(piece, Whole):
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
