"""What becomes of a reduction while loops run: a result of the innermost loop, and where it is put.

A block is added up in the dtype of the data, and blocks in float64.
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen.schedule.nodes import Node
from codegen.schedule.plan import Nest
from codegen.targets.cpp.lines import I64, Lines
from codegen.targets.cpp.names import named


class Reductions(Lines):
    """Writes what is begun, added and ended."""

    def is_scalar(self, node: Node, nest: Nest) -> bool:
        return not {*node.axes} & {*nest.axes}

    def is_partial(self, node: Node) -> bool:
        return node.name in self.current.partial

    def added_inside(self, nest: Nest) -> list[Node]:
        """The reductions that the innermost loop runs over, sums first."""
        last = nest.axes[-1]
        found = [n for n in nest.nodes if n.kind and last not in n.axes]
        return sorted(found, key=lambda node: node.kind != "sum")

    def added_in_blocks(self, nest: Nest) -> list[Node]:
        """The sums that have several entries in a row."""
        return [
            n
            for n in nest.nodes
            if n.kind == "sum" and not self.is_scalar(n, nest) and not self.is_partial(n)
        ]

    def added_up(self, nest: Nest) -> list[Node]:
        """The reductions that have one value in a row, to which each of several loops adds."""
        several = len(nest.axes) > 1
        found = [n for n in nest.nodes if n.kind and self.is_scalar(n, nest)]
        return [n for n in found if several and not self.is_partial(n)]

    def begun(self, nest: Nest) -> None:
        for node in self.added_up(nest):
            start = "double {}_total = 0" if node.kind == "sum" else "Real {}_total = -infinity"
            self.line(start.format(named(node.name)) + ";")
        for node in nest.nodes:
            several = not self.is_scalar(node, nest) and not self.is_partial(node)
            if node.kind == "max" and several:
                self.over_row(node, lambda place, n: f"{place} = -infinity;")

    def over_row(self, node: Node, text) -> None:
        """A line for every entry that the row has of an array, wherever that lies."""
        axes = self.row_axes(node)
        for axis in axes[:-1]:
            self.line(self.when(node) * (axis == axes[0]) + self.outer(axis))
        head = self.when(node) * (len(axes) == 1)
        with self.block(f"{head}each({self.range(axes[-1])}, {self.lambda_of(axes[-1])}", "});"):
            self.line(text(self.place_of(node)(self.here(node)), node))

    def outer(self, axis: str) -> str:
        (first, last), index = self.bounds(axis), self.names.index(axis)
        return f"for ({I64} {index} = {first}; {index} < {last}; ++{index})"

    def range(self, axis: str) -> str:
        first, last = self.bounds(axis)
        return last if first == "0" else f"{first}, {last}"

    def lambda_of(self, axis: str) -> str:
        return f"[=]({I64} {self.names.index(axis)}) INLINE"

    def place_of(self, node: Node):
        """Where the value of a reduction with several entries in a row lies."""
        if node.name in self.current.stored:
            return self.in_memory(node.name, self.memory[node.name])
        return self.in_row(node, self.row_axes(node))

    def added(self, node: Node, text: str) -> None:
        """The value is put to what was found before, at the entry of the loops that run."""
        place = self.target(node)
        now = f"+= {text}" if node.kind == "sum" else f"= larger({place}, {text})"
        self.line(f"{self.when(node)}{place} {now};")

    def target(self, node: Node) -> str:
        here, name = self.here(node), named(node.name)
        if self.is_partial(node):
            return f"{name}[{self.offset(node.axes, here)}]"
        if node.kind == "max":
            return self.place_of(node)(here)
        return self.in_row(node, self.row_axes(node), f"{name}_block")(here)

    def settled(self, node: Node, nest: Nest, text: str) -> None:
        """The value of a loop over the last axis is put where it belongs."""
        if node in self.added_up(nest):
            total = f"{named(node.name)}_total"
            now = f"+= {text}" if node.kind == "sum" else f"= larger({total}, {text})"
            self.line(f"{total} {now};")
        elif self.is_scalar(node, nest) and not self.is_partial(node):
            self.of_row(node, text)
        else:
            self.added(node, text)

    def of_row(self, node: Node, text: str) -> None:
        """A value that the row has one of; it has a name if it is read."""
        name = named(node.name)
        stored = node.name in self.current.stored
        if stored and not any(node.name in n.reads for n in self.of.values()):
            self.store(node, text)
            return
        name = self.names.free(f"{name}_now") if stored else name
        self.line(f"const Real {name} = {text};")
        self.store(node, name)
        self.print.places[node.name] = lambda indices: name

    def ended(self, nest: Nest) -> None:
        """What the row knows from here on."""
        for node in self.added_up(nest):
            self.of_row(node, f"{named(node.name)}_total")
        for node in self.added_in_blocks(nest):
            total = self.in_row(node, self.row_axes(node), f"{named(node.name)}_total")
            self.over_row(node, lambda place, n, t=total: f"{place} = Real({t(self.here(n))});")
        for node in nest.nodes:
            if node.kind and not self.is_scalar(node, nest) and not self.is_partial(node):
                self.print.places[node.name] = self.place_of(node)

    def blocks(self, nodes: Sequence[Node]) -> list[str]:
        """What sums with several entries in a row are added up in."""
        return [
            "cleared({0}_block, {0}_total, {1})".format(
                named(node.name), self.product(self.row_sizes(self.row_axes(node)))
            )
            for node in nodes
        ]
