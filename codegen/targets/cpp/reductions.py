"""What becomes of a reduction while loops run, from the inside out: a variable of the innermost
loop, the part of a block, the total.

A block is added up in the format of the data, and blocks in double precision.
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen.schedule.elements import Axes
from codegen.schedule.nodes import Node
from codegen.schedule.plan import Nest
from codegen.targets.cpp.expressions import named
from codegen.targets.cpp.lines import I64, Lines


class Reductions(Lines):
    """Writes what is begun, added and ended."""

    def is_scalar(self, node: Node, nest: Nest) -> bool:
        return not {*node.axes} & {*nest.axes}

    def added_inside(self, nest: Nest) -> list[Node]:
        """The reductions that the innermost loop runs over, with entries for outer ones."""
        last = nest.axes[-1]
        return [
            n for n in nest.nodes if n.kind and not self.is_scalar(n, nest) and last not in n.axes
        ]

    def reduced_inside(self, nest: Nest, local: Sequence[Node]) -> str:
        scalars = [n for n in nest.nodes if n.kind and self.is_scalar(n, nest)]
        text = ""
        for kind, sign in (("sum", "+"), ("max", "max")):
            names = [
                *(f"{named(n.name)}_inner" for n in local if n.kind == kind),
                *(f"{named(n.name)}_now" for n in scalars if n.kind == kind),
            ]
            text += f" reduction({sign}:{', '.join(names)})" if names else ""
        flags = [f"{named(n.name)}_unordered" for n in (*local, *scalars) if n.kind == "max"]
        return text + (f" reduction(|:{', '.join(flags)})" if flags else "")

    def begun(self, nest: Nest) -> None:
        for node in nest.nodes:
            if not node.kind:
                continue
            if self.is_scalar(node, nest):
                if node.kind == "sum":
                    self.line(f"double {named(node.name)}_added = 0;")
                else:
                    self.line(f"Real {named(node.name)}_now = -infinity;")
                    self.line(f"int {named(node.name)}_unordered = 0;")
            elif node.name not in self.current.partial:
                if node.kind == "sum":
                    self.line(f"{named(node.name)}_total_memory.fill(0);")
                else:
                    self.filled(node)

    def filled(self, node: Node) -> None:
        axes = self.row_axes(node)
        if node.name in self.current.kept:
            self.line(f"{named(node.name)}_memory.fill(-infinity);")
            return
        self.over_row(node, axes, lambda place: f"{place} = -infinity;")

    def over_row(self, node: Node, axes: Axes, text) -> None:
        """A line for every entry that the row has of an array, wherever that lies."""
        for axis in axes:
            first, last = self.bounds(axis)
            self.line(f"for ({I64} i_{axis} = {first}; i_{axis} < {last}; ++i_{axis})")
        self.line("    " + text(self.place_of(node)(self.here(node))))

    def place_of(self, node: Node):
        """Where the value of a reduction with several entries in a row lies."""
        if node.name in self.current.stored:
            return self.in_memory(node.name, self.memory[node.name])
        return self.in_row(node, self.row_axes(node))

    def parts_begun(self, nest: Nest) -> None:
        for node in nest.nodes:
            if node.kind != "sum":
                continue
            if self.is_scalar(node, nest):
                self.line(f"Real {named(node.name)}_now = 0;")
            elif node.name not in self.current.partial:
                self.line(f"{named(node.name)}_block_memory.fill(0);")

    def parts_ended(self, nest: Nest) -> None:
        for node in nest.nodes:
            if node.kind != "sum":
                continue
            if self.is_scalar(node, nest):
                self.line(f"{named(node.name)}_added += {named(node.name)}_now;")
            elif node.name not in self.current.partial:
                self.line(f"add_block({named(node.name)}_block_memory, {named(node.name)}_total);")

    def added(self, node: Node, text: str) -> None:
        """The value is put to what was found before, at the entry of the loops that run."""
        place, wide = self.target(node)
        value = f"double({text})" if wide else text
        if node.kind == "sum":
            self.line(f"{place} += {value};")
        else:
            self.line(f"{place} = larger({place}, {value});")

    def target(self, node: Node) -> tuple[str, bool]:
        here = self.here(node)
        if node.name in self.current.partial:
            block = self.is_added_by_entry(node)
            name = f"{named(node.name)}_{'block' if block else 'part'}"
            return f"{name}[{self.offset(node.axes, here)}]", node.kind == "sum" and not block
        if node.kind == "max":
            return self.place_of(node)(here), False
        axes = self.row_axes(node)
        return self.in_row(node, axes, f"{named(node.name)}_block")(here), False

    def ended(self, nest: Nest) -> None:
        """What the row knows from here on."""
        for node in nest.nodes:
            if not node.kind:
                continue
            scalar, partial = self.is_scalar(node, nest), node.name in self.current.partial
            if scalar and not partial:
                value = f"Real({named(node.name)}_added)"
                if node.kind == "max":
                    value = self.settled(node, f"{named(node.name)}_now")
                self.line(f"const Real {named(node.name)}_here = {value};")
                self.known_in_row(node)
            elif scalar:
                place = f"{named(node.name)}_part[{self.offset(node.axes, self.here(node))}]"
                if node.kind == "sum":
                    self.line(f"{place} += {named(node.name)}_added;")
                else:
                    value = self.settled(node, f"{named(node.name)}_now")
                    self.line(f"{place} = larger({place}, {value});")
            elif not partial and node.kind == "sum":
                axes = self.row_axes(node)
                total = self.in_row(node, axes, f"{named(node.name)}_total")
                with self.block(""):
                    self.over_row(
                        node,
                        axes,
                        lambda place, t=total, n=node: f"{place} = Real({t(self.here(n))});",
                    )
            if not partial and not scalar:
                self.print.places[node.name] = self.place_of(node)
