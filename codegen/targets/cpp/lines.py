"""The lines of a C++ function, and where values lie in memory and in a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager

from codegen.schedule.elements import Axes, Element, is_number
from codegen.schedule.nodes import Node
from codegen.schedule.plan import Nest, Sweep
from codegen.targets.cpp.expressions import Expressions, named

I64 = "int64_t"


class Lines:
    """Writes lines. ``memory`` are the axes of every array that has its place in memory, by its
    name; ``current`` is the sweep that is written, ``of`` are its nodes, ``tile`` the axis that is
    cut into pieces, ``given`` are the names of the function's variables.
    """

    current: Sweep
    of: Mapping[str, Node]
    tile: str | None

    def __init__(self, sizes: Mapping[str, str], memory: Mapping[str, Axes]):
        self.print = Expressions(sizes)
        self.memory = dict(memory)
        self.lines: list[str] = []
        self.depth = 1
        self.given: tuple[str, ...] = ()
        self.numbers = 0
        for name, axes in memory.items():
            self.print.places[name] = self.in_memory(name, axes)

    # -- text -----------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text if text else "")

    @contextmanager
    def block(self, head: str):
        self.line(f"{head} {{".lstrip())
        self.depth += 1
        yield
        self.depth -= 1
        self.line("}")

    def offset(self, axes: Axes, indices: Sequence[str], sizes: Sequence[str] = ()) -> str:
        """Where an entry lies, of an array that has these axes."""
        if not axes:
            return "0"
        sizes = sizes or [self.print.size(axis) for axis in axes]
        text = indices[0]
        for index, size in zip(indices[1:], sizes[1:], strict=True):
            text = f"({text}) * {size} + {index}"
        return text

    def in_memory(self, name: str, axes: Axes):
        return lambda indices: f"{named(name)}[{self.offset(axes, indices)}]"

    def product(self, sizes: Sequence[str]) -> str:
        return " * ".join(sizes) if sizes else "1"

    def array(self, kind: str, name: str, count: str, first: str = "0") -> None:
        """Memory of its own, and a pointer to it: a compiler keeps that in a register."""
        self.line(f"Scratch<{kind}> {name}_memory({count}, {first});")
        self.line(f"{kind}* __restrict {name} = {name}_memory.entries;")

    # -- numbers --------------------------------------------------------------

    def with_numbers(self, e: Element) -> None:
        """What is made of numbers alone has a name before all loops: a variable of its thread, for
        a compiler does not fill a vector with one that it has to read through a closure.
        """
        for part in self.largest(e, is_number):
            if part.kind == "number" or (part.kind == "size") or part in self.print.at_hand:
                continue
            self.numbers += 1
            name = f"number_{self.numbers}"
            text = self.print.double(part)
            whole = part.kind in ("compare", "and", "or", "not")
            kind = "bool" if whole else "Real"
            self.line(f"const {kind} {name} = {text if whole else f'Real({text})'};")
            self.print.at_hand[part] = name

    def largest(self, e: Element, holds) -> list[Element]:
        if holds(e):
            return [e]
        return [part for arg in e.args for part in self.largest(arg, holds)]

    # -- what a row keeps -----------------------------------------------------

    def row_axes(self, node: Node) -> Axes:
        """The axes of a row's own array."""
        outer = self.current.parallel[: -1 if self.tile else None]
        return tuple(axis for axis in node.axes if axis not in outer)

    def row_sizes(self, axes: Axes) -> list[str]:
        return ["tile" if axis == self.tile else self.print.size(axis) for axis in axes]

    def scratch_declared(self) -> None:
        for nest in self.current.nests:
            for node in nest.nodes:
                axes = self.row_axes(node)
                if not axes or node.name in self.current.partial:
                    continue
                count = self.product(self.row_sizes(axes))
                if node.name in self.current.kept:
                    self.array("Real", named(node.name), count)
                    self.print.places[node.name] = self.in_row(node, axes)
                if node.kind == "sum":
                    self.array("Real", f"{named(node.name)}_block", count)
                    self.array("double", f"{named(node.name)}_total", count)

    def in_row(self, node: Node, axes: Axes, name: str = ""):
        """An entry of what belongs to the row; from indices of all its axes, or of the row's."""
        places = [node.axes.index(axis) for axis in axes]

        def text(indices):
            own = [
                f"({indices[i]} - first_{axis})" if axis == self.tile else indices[i]
                for i, axis in zip(places, axes, strict=True)
            ]
            return f"{name or named(node.name)}[{self.offset(axes, own, self.row_sizes(axes))}]"

        return text

    def here(self, node: Node) -> list[str]:
        return [f"i_{axis}" for axis in node.axes]

    def of_row(self, nest: Nest) -> None:
        """Values that the row has one of."""
        for node in nest.nodes:
            if node.kind:
                self.added(node, self.print.real(node.value))
            else:
                self.line(f"const Real {named(node.name)}_here = {self.print.real(node.value)};")
                self.known_in_row(node)

    def known_in_row(self, node: Node) -> None:
        self.store(node, f"{named(node.name)}_here")
        self.print.places[node.name] = lambda indices: f"{named(node.name)}_here"

    def store(self, node: Node, text: str) -> None:
        if node.name in self.current.stored and node.name not in self.current.partial:
            place = self.in_memory(node.name, self.memory[node.name])
            self.line(f"{place(self.here(node))} = {text};")
