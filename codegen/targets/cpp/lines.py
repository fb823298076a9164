"""The lines of a C++ function, and where values lie in memory and in a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager

from codegen.schedule.elements import Axes, Element, is_number
from codegen.schedule.nodes import Node
from codegen.schedule.plan import Sweep
from codegen.targets.cpp.choices import Choices
from codegen.targets.cpp.expressions import Expressions
from codegen.targets.cpp.folding import WIDTH
from codegen.targets.cpp.names import Names, named

I64 = "int64_t"
ALWAYS = Choices()
CONDITIONS = ("compare", "and", "or", "not")  # int: a loop with a captured bool fills no vector


class Lines:
    """Writes lines. ``memory`` are the axes of every array that has its place in memory, by its
    name; ``current`` is the sweep that is written, ``of`` are its nodes, ``tile`` the axis that is
    cut into pieces; ``keeps`` says whether something is kept outside of all sweeps, ``inside``
    are values of which one is needed where lines run.
    """

    current: Sweep
    of: Mapping[str, Node]
    tile: str | None
    inside: tuple[str, ...]

    def __init__(self, names: Names, memory: Mapping[str, Axes], choices: Choices = ALWAYS):
        self.names, self.print, self.choices = names, Expressions(names), choices
        self.memory = dict(memory)
        self.lines: list[str] = []
        self.depth = 1
        self.keeps = False
        for name, axes in memory.items():
            self.print.places[name] = self.in_memory(name, axes)

    # -- text -----------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, head: str, tail: str = "}"):
        """Lines in braces, and on one line if there is only one that is short."""
        before, self.lines = self.lines, []
        self.line(f"{head} {{")
        self.depth += 1
        yield
        self.depth -= 1
        self.line(tail)
        first, *inside, last = self.lines
        short = " ".join(map(str.strip, (first, *inside, last)))
        alone = len(inside) == 1 and "\n" not in inside[0]
        if alone and len("    " * self.depth + short) <= WIDTH:
            self.lines = ["    " * self.depth + short]
        self.lines = [*before, *self.lines]

    @contextmanager
    def scope(self):
        """What is named and known inside of it is not so behind it."""
        at_hand, places = dict(self.print.at_hand), dict(self.print.places)
        with self.names.block():
            yield
        self.print.at_hand, self.print.places = at_hand, places

    def offset(self, axes: Axes, indices: Sequence[str], sizes: Sequence[str] = ()) -> str:
        """Where an entry lies, of an array that has these axes."""
        if not axes:
            return "0"
        text, *others = map(_factor, indices)
        if not others:
            return indices[0]
        sizes = sizes or [self.print.size(axis) for axis in axes]
        for index, size in zip(others, sizes[1:], strict=True):
            text = f"{f'({text})' if ' + ' in text else text} * {size} + {index}"
        return text

    def in_memory(self, name: str, axes: Axes):
        return lambda indices: f"{named(name)}[{self.offset(axes, indices)}]"

    def product(self, sizes: Sequence[str]) -> str:
        return " * ".join(sizes) if sizes else "1"

    def count(self, axes: Sequence[str]) -> str:
        return self.product([self.print.size(axis) for axis in axes])

    # -- numbers --------------------------------------------------------------

    def with_numbers(self, e: Element) -> None:
        """What is made of numbers alone has a name before all loops."""
        for part in self.numbers(e):
            if part.kind in ("number", "size", "scalar") or part in self.print.at_hand:
                continue
            text = self.print.double(part)
            kind = "int" if part.kind in CONDITIONS else "Real"
            name = self.print.named(part, "number_constant")
            self.line(f"const {kind} {name} = {text};")
            self.print.at_hand[part] = name

    def numbers(self, e: Element) -> list[Element]:
        """The largest parts that are made of numbers alone. Where an entry lies is counted in whole
        numbers, and so no part.
        """
        if is_number(e):
            return [e]
        if e in self.print.at_hand or e.kind in ("entry", "label"):
            return []
        args = e.args[1:] if e.kind == "guard" else e.args
        return [part for arg in args for part in self.numbers(arg)]

    def largest(self, e: Element, holds) -> list[Element]:
        if holds(e):
            return [e]
        if e in self.print.at_hand:
            return []
        return [part for arg in e.args for part in self.largest(arg, holds)]

    # -- what a row keeps -----------------------------------------------------

    def row_axes(self, node: Node) -> Axes:
        """The axes of a row's own array."""
        outer = self.current.parallel[: -1 if self.tile else None]
        return tuple(axis for axis in node.axes if axis not in outer)

    def row_sizes(self, axes: Axes) -> list[str]:
        return [self.piece if axis == self.tile else self.print.size(axis) for axis in axes]

    @property
    def piece(self) -> str:
        """How many entries of the last axis a row has, where that is cut into pieces."""
        raise NotImplementedError

    def in_row(self, node: Node, axes: Axes, name: str = ""):
        """An entry of what belongs to the row; from indices of all its axes, or of the row's."""
        places = [node.axes.index(axis) for axis in axes]

        def text(indices):
            own = [
                f"{indices[i]} - {self.bounds(axis)[0]}" if axis == self.tile else indices[i]
                for i, axis in zip(places, axes, strict=True)
            ]
            return f"{name or named(node.name)}[{self.offset(axes, own, self.row_sizes(axes))}]"

        return text

    def bounds(self, axis: str) -> tuple[str, str]:
        """Where the loop over an axis begins, and where it ends."""
        if axis == self.tile:
            return "first", "last"
        return "0", self.print.size(axis)

    def here(self, node: Node) -> list[str]:
        return [self.names.index(axis) for axis in node.axes]

    def store(self, node: Node, text: str) -> None:
        if node.name in self.current.stored and node.name not in self.current.partial:
            place = self.in_memory(node.name, self.memory[node.name])
            self.line(f"{self.when(node)}{place(self.here(node))} = {text};")

    def when(self, node: Node) -> str:
        """What stands before a line for a value that is not always needed where it runs."""
        found = self.needed([node])
        return f"if constexpr ({found}) " if found else ""

    def needed(self, nodes: Sequence[Node]) -> str:
        """The condition under which one of some values is."""
        return self.choices.condition([node.name for node in nodes], self.inside)

    def if_needed(self, nodes: Sequence[Node], count: object, otherwise: object = 0) -> str:
        """``count``, where one of some values is needed."""
        found = self.needed(nodes)
        if not found:
            return str(count)
        return f"{f'({found})' if ' ' in found else found} ? {count} : {otherwise}"


def _factor(index: str) -> str:
    """An index as it stands beside others."""
    return f"({index})" if any(sign in index for sign in (" - ", " + ", " / ", " % ")) else index
