"""One pass over a row: loops, and what is computed in the innermost one."""

from __future__ import annotations

from collections.abc import Sequence

from codegen.schedule.elements import Element, axes_in, is_number
from codegen.schedule.nodes import Node
from codegen.schedule.plan import Nest
from codegen.targets.cpp.expressions import named
from codegen.targets.cpp.lines import I64
from codegen.targets.cpp.reductions import Reductions

BLOCK = 1024  # entries of a row that are added up in the format of the data
ROWS = 64  # rows that are, entry by entry


class Passes(Reductions):
    """Writes the passes over a row."""

    # -- a pass over the row --------------------------------------------------

    def nest(self, nest: Nest) -> None:
        at_hand = dict(self.print.at_hand)
        places = dict(self.print.places)
        self.begun(nest)
        with self.block(""):
            known = {*self.current.parallel} - {self.tile}
            self.lifted(nest, known)
            blocked = any(node.kind == "sum" for node in nest.nodes)
            self.loop(nest, 0, known, blocked)
        self.print.at_hand = at_hand
        self.print.places = places
        self.ended(nest)

    def loop(self, nest: Nest, depth: int, known: set[str], blocked: bool) -> None:
        axis = nest.axes[depth]
        first, last = self.bounds(axis)
        if blocked and depth == 0:
            size = BLOCK if len(nest.axes) == 1 else ROWS
            with self.block(f"for ({I64} block = {first}; block < {last}; block += {size})"):
                self.line(f"const {I64} stop = smaller_size(block + {size}, {last});")
                self.parts_begun(nest)
                self.one_loop(nest, depth, known, "block", "stop")
                self.parts_ended(nest)
        else:
            self.one_loop(nest, depth, known, first, last)

    def bounds(self, axis: str) -> tuple[str, str]:
        if axis == self.tile:
            return f"first_{axis}", f"last_{axis}"
        return "0", self.print.size(axis)

    def one_loop(self, nest: Nest, depth: int, known: set[str], first: str, last: str) -> None:
        axis, innermost = nest.axes[depth], depth == len(nest.axes) - 1
        local = self.added_inside(nest) if innermost and depth > 0 else []
        for node in local:
            self.line(
                f"Real {named(node.name)}_inner = {'0' if node.kind == 'sum' else '-infinity'};"
            )
            if node.kind == "max":
                self.line(f"int {named(node.name)}_unordered = 0;")
        if innermost:
            self.line(f"#pragma omp simd{self.reduced_inside(nest, local)}")
        with self.block(f"for ({I64} i_{axis} = {first}; i_{axis} < {last}; ++i_{axis})"):
            at_hand = dict(self.print.at_hand)
            known = known | {axis}
            if innermost:
                self.body(nest, local)
            else:
                self.lifted(nest, known)
                self.loop(nest, depth + 1, known, False)
            self.print.at_hand = at_hand
        for node in local:
            self.added(node, self.settled(node, f"{named(node.name)}_inner"))

    def settled(self, node: Node, text: str) -> str:
        """A maximum with what was no number among the entries."""
        return f"unless({named(node.name)}_unordered, {text})" if node.kind == "max" else text

    # -- the innermost loop ---------------------------------------------------

    def body(self, nest: Nest, local: Sequence[Node]) -> None:
        for node in nest.nodes:
            if not node.kind:
                self.line(f"const Real {named(node.name)}_now = {self.print.real(node.value)};")
                self.store(node, f"{named(node.name)}_now")
                if node.name in self.current.kept:
                    place = self.in_row(node, self.row_axes(node))
                    self.line(f"{place(self.here(node))} = {named(node.name)}_now;")
                self.print.places[node.name] = lambda indices, n=node: f"{named(n.name)}_now"
                continue
            value = self.print.real(node.value)
            if node in local:
                name = f"{named(node.name)}_inner"
            elif self.is_scalar(node, nest):
                name = f"{named(node.name)}_now"
            else:
                self.added(node, value)
                continue
            if node.kind == "sum":
                self.line(f"{name} += {value};")
            else:
                now = f"{named(node.name)}_value"
                self.line(f"const Real {now} = {value};")
                self.line(f"{name} = {now} > {name} ? {now} : {name};")
                self.line(f"{named(node.name)}_unordered |= {now} != {now};")

    def lifted(self, nest: Nest, known: set[str]) -> None:
        """What does not change in the loops that are still to come has a name before them."""
        inside = {n.name for n in nest.nodes}

        def holds(e: Element) -> bool:
            own = {entry.name for entry in e.entries}
            return axes_in(e) <= known and not own & inside

        for node in nest.nodes:
            for part in self.largest(node.value, holds):
                if is_number(part) or part.kind == "index" or part in self.print.at_hand:
                    continue
                name = f"steady_{len(self.print.at_hand) + 1}"
                self.line(f"const auto {name} = {self.print.text(part)};")
                self.print.at_hand[part] = name
