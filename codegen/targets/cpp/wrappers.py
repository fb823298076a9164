"""The functions of the torch target with kernels in the place of their lines, as Python text.

What is asked of options stays a line of torch, and so does what a library does between kernels.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codegen.program import NUMBERS, Function, Parameter, Program
from codegen.program.parts import values_in
from codegen.program.steps import AddAt, Assign, Step
from codegen.program.values import Load
from codegen.schedule.elements import Axes
from codegen.schedule.nodes import Flat, Whole
from codegen.targets.cpp.kernels import Kernel
from codegen.targets.cpp.sizes import Sizes
from codegen.targets.torch.lines import broken
from codegen.targets.torch.page import Page
from codegen.targets.torch.wrapping import in_tuple, wrapped
from derive.language.errors import QuestionError
from derive.notation.layout import Dim, Layout

INSIDE = 8  # columns before what stands below a condition


@dataclass(frozen=True)
class Wrapper:
    """A function as text: its ``name``, its signature, what it does and returns. ``wanted`` are the
    gradients that it computes, by the places of the inputs, where it computes not all.
    """

    name: str
    signature: str
    lines: tuple[str, ...]
    returned: str
    wanted: tuple[bool, ...] = ()


@dataclass(frozen=True)
class Loops:
    """A function with what computes it."""

    function: Function
    flat: Flat
    pieces: Sequence[Kernel | Whole]


class Wrappers:
    """Writes the wrappers of one pair of forward and backward. Of one that is ``chosen`` by a word
    they return None where no kernel can compute.
    """

    def __init__(self, page: Page, program: Program, chosen: bool = False):
        self.page, self.program, self.chosen = page, program, chosen
        self.codes = dict(program.sizes)

    def wrapper(
        self, loops: Loops, name: str, returned: Sequence[str], parts: Mapping[str, str]
    ) -> Wrapper:
        """In the place of the function ``name``. ``returned`` as a plain tuple, if it is given;
        ``parts`` are functions that compute some of the results, by the condition for each.
        """
        function = loops.function
        needs = [self.page.needs] * name.endswith("_backward")
        arguments = [*(p.name for p in function.parameters), *needs]
        tensors = ", ".join(p.name for p in function.tensors)
        lines = [
            f"if not _usable({tensors}):",
            f"    {wrapped(f'return _of.{name}', arguments, indent=INSIDE)}",
        ] * (not self.chosen)
        for condition, part in parts.items():
            call = wrapped(f"return {part}", arguments, indent=INSIDE)
            elsewhere = self.chosen and part.startswith("_of.")
            lines += [f"if {condition}:", f"    {'return None' if elsewhere else call}"]
        instead = self.instead(f"_of.{name}")
        lines += _Body(self, loops, instead, arguments).lines()
        core = self.page.core(function, name, needs, returned)
        last = self.returned(loops, returned or function.results, not returned)
        return Wrapper(name, core.signature, tuple(lines), last)

    def instead(self, function: str) -> str:
        """What is done where a kernel refuses its arguments."""
        return "return None" if self.chosen else f"return {function}(*_given)"

    def part(self, loops: Loops, name: str, results: Sequence[str], plain: bool) -> Wrapper:
        """Of a backward, for some of its gradients; the others of ``results`` are None."""
        function = loops.function
        arguments = [*(p.name for p in function.parameters), self.page.needs]
        whole = f"_of.{name.partition('_of_')[0]}"
        lines = _Body(self, loops, self.instead(whole), arguments).lines()
        shown = [r if r in function.results else "None" for r in results]
        signature = wrapped(f"def {name}", arguments, ":")
        return Wrapper(name, signature, tuple(lines), self.returned(loops, shown, not plain))

    def at_once(self, loops: Loops, name: str, parameters: Sequence[str], wanted) -> Wrapper:
        """The loss and its gradients; ``parameters`` are those of the differentiable function."""
        made = dict(loops.flat.results)
        lines = _Body(self, loops, "return None", parameters).lines()
        loss, *gradients = loops.function.results
        shown = [made[f"d{p}"] if f"d{p}" in gradients else "None" for p in parameters]
        signature = wrapped(f"def {name}", parameters, ":")
        last = f"return {in_tuple([made[loss], *shown])}"
        return Wrapper(name, signature, tuple(lines), last, tuple(wanted))

    def keeping_less(self, loops: Loops, name: str, parameters: Sequence[str], numbers) -> Wrapper:
        """A forward; ``parameters`` are those of the differentiable function. It returns the
        output, and the tensors and the ``numbers`` that `from_less` takes.
        """
        lines = _Body(self, loops, "return None", parameters).lines()
        made, (output, *kept) = dict(loops.flat.results), loops.function.results
        tensors = in_tuple([made.get(r, r) for r in kept if r not in numbers])
        shown = [made.get(output, output), tensors, in_tuple([r for r in kept if r in numbers])]
        signature = wrapped(f"def {name}", parameters, ":")
        return Wrapper(name, signature, tuple(lines), f"return {in_tuple(shown)}")

    def from_less(
        self, loops: Loops, name: str, inputs: Sequence[Parameter], parts: Mapping[str, str]
    ) -> Wrapper:
        """A backward that returns a gradient for each of the ``inputs``, or None; ``parts`` as in
        `wrapper`. What may have been left out has none unless it is wanted.
        """
        arguments = [*(p.name for p in loops.function.parameters), "needs"]
        lines = []
        for condition, part in parts.items():
            lines += [
                f"if {condition}:",
                f"    {wrapped(f'return {part}', arguments, indent=INSIDE)}",
            ]
        lines += _Body(self, loops, "return None", arguments).lines()
        made, results = dict(loops.flat.results), loops.function.results
        shown = [
            made[f"d{p.name}"] + f" if needs[{i}] else None" * (p.default is not None)
            if f"d{p.name}" in results
            else "None"
            for i, p in enumerate(inputs)
        ]
        signature = wrapped(f"def {name}", arguments, ":")
        last = (
            wrapped("return ", shown, indent=4) if len(shown) > 1 else f"return {in_tuple(shown)}"
        )
        return Wrapper(name, signature, tuple(lines), last)

    def returned(self, loops: Loops, names: Sequence[str], as_class: bool) -> str:
        made = dict(loops.flat.results)
        results = [made.get(name, name) for name in names]
        if as_class:
            return wrapped(f"return {loops.function.result_class}", results, indent=4)
        return f"return {in_tuple(results)}"


class _Body:
    """``instead`` is what is done where a kernel refuses its arguments."""

    def __init__(self, wrappers: Wrappers, loops: Loops, instead: str, arguments: Sequence[str]):
        self.instead, self.arguments = instead, arguments
        self.page, self.codes = wrappers.page, wrappers.codes
        self.function, self.flat, self.pieces = loops.function, loops.flat, loops.pieces
        flat = loops.flat
        self.printer = self.page.printer(self.function)
        self.fixed = dict(wrappers.program.fixed)
        self.like = self.printer.like
        self.made: set[str] = set()  # by kernels, one entry after the other
        self.shapes = {**flat.layouts}
        for name, node in flat.results:
            if name in flat.layouts:
                self.shapes.setdefault(node, flat.layouts[name])

    def lines(self) -> list[str]:
        pieces = self.pieces
        for piece in pieces:
            if isinstance(piece, Whole):
                for value in values_in(Assign(piece.name, piece.value)):
                    if isinstance(value, Load):
                        self.shapes.setdefault(value.name, value.dims)
        found = [*map(self.printer.step, self.before())]
        for piece in pieces:
            found += self.called(piece) if isinstance(piece, Kernel) else self.whole(piece)
        needed = {*re.findall(r"[A-Za-z_]\w*", "\n".join(found))} & {*self.codes.values()}
        given = [broken(f"_given = {in_tuple(self.arguments)}")] * ("_given" in self.instead)
        return _used([*given, *self.sizes(needed), *found], {*self.codes.values()})

    def before(self) -> list[Step]:
        """What is asked, and filled in, before anything is computed."""
        return [step for step in self.function.steps if not isinstance(step, Assign | AddAt)]

    def sizes(self, needed: set[str]) -> list[str]:
        """Every size that is needed, from the shape of an argument."""
        lines = [line for pair in self.function.sizes for line in self.printer.size_lines(*pair)]
        known = {name for name, _ in self.function.sizes}
        known |= {p.name for p in self.function.parameters if p.role in NUMBERS}
        places = {size: self.place(size) for size in self.codes.values()}
        parts = {
            self.codes[whole]: [self.codes[axis] for axis in axes]
            for whole, axes in self.flat.parts.items()
            if whole in self.codes
        }
        try:
            return [*lines, *Sizes(places, known, parts).lines(sorted(needed))]
        except KeyError as error:
            raise QuestionError(
                f"{self.function.name}: no argument has the size {error.args[0]}",
                "the C++ target needs it",
            ) from None

    def place(self, size: str) -> str:
        """Where a size stands; nothing where it stands nowhere."""
        for p in self.function.tensors:
            for i, dim in enumerate(p.layout if p.default is None else ()):
                if not dim.one and self.codes[dim.axis.name] == size:
                    return f"{p.name}.shape[{i}]"
        return str(self.fixed.get(size, ""))

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
        lines += ["if not _done:", f"    {self.instead}"]
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
