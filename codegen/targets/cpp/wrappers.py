"""The functions of the torch target with kernels in the place of their lines, as Python text.

What is asked of options stays a line of torch, and so does what a library does between kernels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from codegen.program import NUMBERS, Function, Program
from codegen.program.parts import values_in
from codegen.program.steps import AddAt, Assign, Step
from codegen.program.values import Load
from codegen.schedule.elements import Axes
from codegen.schedule.nodes import Flat, Whole
from codegen.targets.cpp.kernels import Kernel
from codegen.targets.torch.lines import broken
from codegen.targets.torch.page import Page
from codegen.targets.torch.wrapping import in_tuple, wrapped
from derive.language.errors import QuestionError
from derive.notation.layout import Dim, Layout


@dataclass(frozen=True)
class Wrapper:
    """A function as text: the ``name`` of what it stands for, its signature and what follows."""

    name: str
    signature: str
    usable: str
    instead: str
    lines: tuple[str, ...]
    returned: str


class Wrappers:
    """Writes the wrappers of one pair of forward and backward."""

    def __init__(self, page: Page, program: Program):
        self.page, self.program = page, program
        self.codes = dict(program.sizes)

    def wrapper(
        self,
        function: Function,
        name: str,
        flat: Flat,
        pieces: Sequence[Kernel | Whole],
        returned: Sequence[str] = (),
    ) -> Wrapper:
        """``returned`` as a plain tuple, if it is given."""
        guards = [self.page.needs] * self.page.guards_in(function)
        core = self.page.core(function, name, guards, returned)
        arguments = [*(p.name for p in function.parameters), *guards]
        made = dict(flat.results)
        results = [made.get(r, r) for r in (returned or function.results)]
        kind = "" if returned else function.result_class
        instead = wrapped(f"_of.{name}", arguments, indent=15)
        body = _Body(self, function, flat, f"_of.{name}(*_given)", arguments)
        return Wrapper(
            name,
            core.signature,
            self._usable(function, guards),
            instead,
            tuple(body.lines(pieces, results)),
            wrapped(f"return {kind}", results, indent=4)
            if kind
            else f"return ({', '.join(results)},)",
        )

    def _usable(self, function: Function, guards: Sequence[str]) -> str:
        tensors = ", ".join(p.name for p in function.tensors)
        places = self.page.places(function)
        places = sorted(places[name] for name in function.results if name in places)
        wanted = [f"{name}[{i}]" for name in guards for i in places]
        return " and ".join([*wanted, f"_usable({tensors})"])


class _Body:
    """``instead`` is what is called where a kernel refuses its arguments."""

    def __init__(self, wrappers: Wrappers, function: Function, flat: Flat, instead: str, arguments):
        self.instead, self.arguments = instead, arguments
        self.page, self.codes, self.function, self.flat = (
            wrappers.page,
            wrappers.codes,
            function,
            flat,
        )
        self.printer = self.page.printer(function)
        self.fixed = dict(wrappers.program.fixed)
        self.like = self.printer.like
        self.made: set[str] = set()  # by kernels, one entry after the other
        self.shapes = {**flat.layouts}
        for name, node in flat.results:
            if name in flat.layouts:
                self.shapes.setdefault(node, flat.layouts[name])

    def lines(self, pieces: Sequence[Kernel | Whole], results: Sequence[str]) -> list[str]:
        for piece in pieces:
            if isinstance(piece, Whole):
                for value in values_in(Assign(piece.name, piece.value)):
                    if isinstance(value, Load):
                        self.shapes.setdefault(value.name, value.dims)
        needed = {size for piece in pieces if isinstance(piece, Kernel) for size in piece.sizes}
        found = [broken(f"_given = {in_tuple(self.arguments)}"), *self.sizes(needed)]
        found += map(self.printer.step, self.before())
        for piece in pieces:
            found += self.called(piece) if isinstance(piece, Kernel) else self.whole(piece)
        return _used(found, {*self.codes.values()})

    def before(self) -> list[Step]:
        """What is asked, and filled in, before anything is computed."""
        return [step for step in self.function.steps if not isinstance(step, Assign | AddAt)]

    def sizes(self, needed: set[str]) -> list[str]:
        """Every size that a kernel is called with, from the shape of an argument."""
        lines = [line for pair in self.function.sizes for line in self.printer.size_lines(*pair)]
        known = {name for name, _ in self.function.sizes}
        known |= {p.name for p in self.function.parameters if p.role in NUMBERS}
        needed = needed | self.sizes_of_results()
        required = [p for p in self.function.tensors if p.default is None]
        for size in sorted(needed - known):
            place = next(
                (
                    f"{p.name}.shape[{i}]"
                    for p in required
                    for i, dim in enumerate(p.layout)
                    if not dim.one and self.codes[dim.axis.name] == size
                ),
                str(self.fixed[size]) if size in self.fixed else None,
            )
            if place is None:
                place = self.flattened(size, required)
            lines.append(f"{size} = {place}")
        return lines

    def flattened(self, size: str, required) -> str:
        raise QuestionError(
            f"{self.function.name}: no argument has the size {size}", "the C++ target needs it"
        )

    def sizes_of_results(self) -> set[str]:
        stored = {node for _, node in self.flat.results}
        layouts = [self.shapes[name] for name in stored if name in self.shapes]
        return {self.codes[dim.axis.name] for layout in layouts for dim in layout if not dim.one}

    def called(self, kernel: Kernel) -> list[str]:
        lines = []
        for name in kernel.writes:
            shape = self.printer.shape(self.layout(name))
            lines.append(f"{name} = {self.like}.new_empty({shape or '()'})")
            self.made.add(name)
        tensors = [name if name in self.made else f"{name}.contiguous()" for name in kernel.reads]
        tensors += kernel.writes
        numbers = [*kernel.sizes, *kernel.scalars]
        arguments = f'"{kernel.name}", {in_tuple(tensors)}, {in_tuple(numbers)}'
        lines += [broken(f"_done = _run({arguments})")]
        lines += ["if not _done:", f"    return {self.instead}"]
        return lines

    def layout(self, name: str) -> Layout:
        if name in self.shapes:
            return self.shapes[name]
        node = next(node for node in self.flat.nodes if node.name == name)
        return self.dims(node.axes)

    def dims(self, axes: Axes) -> Layout:
        known = {d.axis.name: d.axis for layout in self.shapes.values() for d in layout}
        return tuple(Dim(known[axis]) for axis in axes)

    def whole(self, piece: Whole) -> list[str]:
        return [self.printer.step(Assign(piece.name, piece.value))]


def _used(lines: Sequence[str], sizes: set[str]) -> list[str]:
    """``lines`` without those that name a size which no later one reads."""
    found: list[str] = []
    for line in reversed(lines):
        name = line.partition(" = ")[0]
        if name not in sizes or any(re.search(rf"\b{name}\b", later) for later in found):
            found.append(line)
    return found[::-1]
