"""One pass over a row: loops, and what is computed in the innermost one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codegen.schedule.elements import CHEAP_CALLS, Element, axes_in, is_number
from codegen.schedule.nodes import Node
from codegen.schedule.plan import Nest
from codegen.targets.cpp.expressions import inverted
from codegen.targets.cpp.lines import CONDITIONS, I64
from codegen.targets.cpp.names import named
from codegen.targets.cpp.reductions import Reductions


class Passes(Reductions):
    """Writes the passes over a row."""

    def nest(self, nest: Nest) -> None:
        self.begun(nest)
        places = dict(self.print.places)
        self.loop(nest, 0, {*self.current.parallel} - {self.tile})
        self.print.places = places | {
            n.name: self.print.places[n.name] for n in self.found_in_row(nest)
        }
        self.ended(nest)

    def found_in_row(self, nest: Nest) -> list[Node]:
        """What `settled` has named: the row has one value of it."""
        return [
            n
            for n in nest.nodes
            if n.kind and self.is_scalar(n, nest) and n.name in self.print.places
        ]

    def loop(self, nest: Nest, depth: int, known: set[str]) -> None:
        """The loops from one on."""
        axis = nest.axes[depth]
        self.lifted(nest, known)
        blocks = self.added_in_blocks(nest) if depth == 0 else []
        if depth == len(nest.axes) - 1:
            self.innermost(nest)
        elif blocks:
            own = [f"Real* {named(node.name)}_block" for node in blocks]
            totals = [f"&{named(n.name)}_total" for n in self.added_up(nest)]
            given = ", ".join([f"{I64} {self.names.index(axis)}", *own])
            head = f"[{', '.join(['=', *totals])}]({given}) INLINE"
            first, last = self.bounds(axis)
            tail = f"}}, {', '.join(self.blocks(blocks))});"
            with self.block(f"in_blocks({first}, {last}, {head}", tail), self.scope():
                self.loop(nest, depth + 1, known | {axis})
        else:
            with self.block(self.outer(axis)), self.scope():
                self.loop(nest, depth + 1, known | {axis})

    # -- the innermost loop ---------------------------------------------------

    def innermost(self, nest: Nest) -> None:
        """What is not needed runs over nothing, or is none of its sums."""
        found, before = self.added_inside(nest), self.inside
        first, last = self.bounds(nest.axes[-1])
        last = self.if_needed(nest.nodes, last, first)
        self.inside = tuple(n.name for n in nest.nodes) if self.needed(nest.nodes) else before
        outer, self.lines = self.lines, []
        limits = last if first == "0" else f"{first}, {last}"
        head = f"{self.call(found)}({limits}, {self.lambda_of(nest.axes[-1])}"
        with self.block(head, "})"):
            self.body(nest, found)
        (line, *others), self.lines = self.lines, outer
        text = "\n".join([line.lstrip(), *others])
        self.put(nest, found, text)
        self.inside = before

    def call(self, found: Sequence[Node]) -> str:
        """What computes some reductions in one pass."""
        kinds = [node.kind for node in found]
        if not found:
            return "each"
        if len(found) == 1 and not self.needed(found):
            return "sum" if kinds == ["sum"] else "largest"
        sums = self.if_needed(found, kinds.count("sum"))
        most = (self.needed(found) or "true") if "max" in kinds else "false"
        return f"reduced<Real, {sums}, {most}>"

    def put(self, nest: Nest, found: Sequence[Node], text: str) -> None:
        """The results of a loop where they belong."""
        if not found:
            self.line(f"{text};")
        elif self.call(found).startswith("reduced"):
            name = self.names.free("found")
            self.line(f"const auto {name} = {text};")
            for i, node in enumerate(found):
                value = f"{name}.of[{i}]"
                self.settled(node, nest, value if node.kind == "sum" else f"Real({value})")
        else:
            self.settled(found[0], nest, text)

    def body(self, nest: Nest, found: Sequence[Node]) -> None:
        with self.scope():
            self.shared_calls(nest)
            for node in nest.nodes:
                if not node.kind:
                    self.entry(nest, node)
                elif node not in found:
                    self.added(node, self.print.real(node.value))
            values = [self.print.real(node.value) for node in found]
            if values and not self.call(found).startswith("reduced"):
                self.line(f"return {values[0]};")
            elif values:
                kind = f"Several<Real, {len(values)}>"
                self.line(f"return {kind}{{{{{', '.join(values)}}}}};")

    def shared_calls(self, nest: Nest) -> None:
        """What is dear and several values are made of is computed once: behind a store, a compiler
        would read from memory again what it is made of.
        """
        inside, values = {n.name for n in nest.nodes}, [n.value for n in nest.nodes]
        calls = {
            part: len([*part.parts()])
            for value in values
            for part in value.parts()
            if part.kind == "call" and part.name not in CHEAP_CALLS
        }
        for call in sorted(calls, key=lambda call: -calls[call]):
            users = sum(bool(self.largest(value, call.__eq__)) for value in values)
            if users > 1 and not {e.name for e in call.entries} & inside:
                self.known(call, f"{call.name}_now")

    def entry(self, nest: Nest, node: Node) -> None:
        """It has a name where something else in the loop reads it."""
        text = self.print.real(node.value)
        places = []
        if node.name in self.current.stored:
            places.append(self.in_memory(node.name, self.memory[node.name]))
        if node.name in self.current.kept:
            places.append(self.in_row(node, self.row_axes(node)))
        if len(places) != 1 or any(node.name in n.reads for n in nest.nodes):
            name = named(node.name)
            name = self.names.free(f"{name}_now") if places else name
            self.line(f"const Real {name} = {text};")
            self.print.places[node.name] = lambda indices: name
            text = name
        for place in places:
            self.line(f"{self.when(node)}{place(self.here(node))} = {text};")

    # -- what does not change in a loop ---------------------------------------

    def lifted(self, nest: Nest, known: set[str]) -> None:
        """What does not change in the loops that are still to come has a name before them."""
        for node, part in self.steady(nest, known):
            self.known(part, f"{node.name.rstrip('_')}_constant")
        for divisor in self.divisors(nest, known):
            self.divides(divisor)

    def divisors(self, nest: Nest, known: set[str]) -> Iterator[Element]:
        """What every entry of the innermost loop is divided by and loops do not change, but for
        what the caller gives: a quotient of that and itself is 1.
        """
        outer = {*self.current.parallel, *nest.axes[:-1]} - {self.tile, nest.axes[-1]}
        for part in (part for node in nest.nodes for part in node.value.parts()):
            if part.kind == "divide" and not self.is_steady(part, nest, outer):
                _, divisor = part.args
                given = is_number(divisor) and divisor.kind != "size"
                if not given and self.is_steady(divisor, nest, known):
                    yield divisor

    def divides(self, divisor: Element) -> None:
        """It is inverted here."""
        if inverted(divisor) not in self.print.at_hand:
            name = f"by_{self.print.said(divisor)}"
            name = self.names.free(name if name.isidentifier() else "by_divisor")
            self.line(f"const Divisor {name} = {self.print.real(divisor)};")
            self.print.at_hand[inverted(divisor)] = name

    def known(self, part: Element, otherwise: str) -> None:
        """It has a name from here on, which is ``otherwise`` if the element says none."""
        if part not in self.print.at_hand:
            text = self.print.text(part)
            name = self.print.named(part, otherwise)
            kind = "int" if part.kind in CONDITIONS else "auto"
            self.line(f"const {kind} {name} = {text};")
            self.print.at_hand[part] = name

    def steady(self, nest: Nest, known: set[str]) -> Iterator[tuple[Node, Element]]:
        """Parts of what a pass computes that loops do not change, unless they have a name."""
        for node in nest.nodes:
            for part in self.largest(node.value, lambda e: self.is_steady(e, nest, known)):
                plain = is_number(part) or part.kind == "index" or part in self.print.at_hand
                if not plain and not self.print.text(part).isidentifier():
                    yield node, part

    def is_steady(self, e: Element, nest: Nest, known: set[str]) -> bool:
        """Whether the loops over axes that are not ``known`` do not change it."""
        inside = {node.name for node in nest.nodes}
        return axes_in(e) <= known and not {entry.name for entry in e.entries} & inside
