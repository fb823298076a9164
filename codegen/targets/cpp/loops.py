"""The sweeps of a plan as the lines of a C++ function: calls of the loops in ``loops.h``.

Sums run in the dtype of the data over a block of a row, or of rows, and in float64 over the blocks;
the parts of threads are added in the order of the threads. So a result depends on the number of
threads and on nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from codegen.schedule.elements import CHEAP_CALLS, Axes, Element, axes_in, cost, is_number
from codegen.schedule.inlining import CHEAP
from codegen.schedule.nodes import Node
from codegen.schedule.plan import Nest, Sweep
from codegen.targets.cpp.choices import Choices
from codegen.targets.cpp.expressions import CppExpressions, inverted
from codegen.targets.cpp.folding import WIDTH
from codegen.targets.cpp.names import CppNames, named
from codegen.targets.cpp.vocabulary import I64

ALWAYS = Choices()
CONDITIONS = ("compare", "and", "or", "not")  # int: a loop with a captured bool fills no vector
TILE = 32  # entries of the last axis that a row has beside other axes


@dataclass(frozen=True)
class ThreadPart:
    """A thread's own variable for a row, and its initializer."""

    kind: str
    name: str
    made: str


class Loops:
    """Writes one sweep after another.

    ``memory`` are the axes of every array in memory, by its name; ``current`` is the current sweep,
    ``of`` are its nodes, ``tile`` the axis that is cut into pieces; ``keeps`` is True if memory is
    kept outside of all sweeps, ``inside`` are values of which one is needed where lines run.
    """

    current: Sweep
    of: Mapping[str, Node]
    tile: str | None
    inside: tuple[str, ...]

    def __init__(self, names: CppNames, memory: Mapping[str, Axes], choices: Choices = ALWAYS):
        self.names, self.print, self.choices = names, CppExpressions(names), choices
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
        """Lines in braces, or on one line if it is short and single."""
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
        """A scope: names and values known inside are forgotten after it."""
        at_hand, places = dict(self.print.at_hand), dict(self.print.places)
        with self.names.block():
            yield
        self.print.at_hand, self.print.places = at_hand, places

    def offset(self, axes: Axes, indices: Sequence[str], sizes: Sequence[str] = ()) -> str:
        """The offset of an entry, in an array with these axes."""
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
        """Name constant expressions before all loops."""
        for part in self.numbers(e):
            if part.kind in ("number", "size", "scalar") or part in self.print.at_hand:
                continue
            text = self.print.double(part)
            kind = "int" if part.kind in CONDITIONS else "Real"
            name = self.print.named(part, "number_constant")
            self.line(f"const {kind} {name} = {text};")
            self.print.at_hand[part] = name

    def numbers(self, e: Element) -> list[Element]:
        """The largest parts made of numbers alone. Indices are integers, and so no part."""
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

    # -- buffers of a row -----------------------------------------------------

    def row_axes(self, node: Node) -> Axes:
        """The axes of an array in a row."""
        outer = self.current.parallel[: -1 if self.tile else None]
        return tuple(axis for axis in node.axes if axis not in outer)

    def row_sizes(self, axes: Axes) -> list[str]:
        return [self.piece if axis == self.tile else self.print.size(axis) for axis in axes]

    def in_row(self, node: Node, axes: Axes, name: str = ""):
        """The text of an entry in a row's array; from indices of all its axes, or of the row's."""
        places = [node.axes.index(axis) for axis in axes]

        def text(indices):
            own = [
                f"{indices[i]} - {self.bounds(axis)[0]}" if axis == self.tile else indices[i]
                for i, axis in zip(places, axes, strict=True)
            ]
            return f"{name or named(node.name)}[{self.offset(axes, own, self.row_sizes(axes))}]"

        return text

    def bounds(self, axis: str) -> tuple[str, str]:
        """Lower and upper bound of the loop over an axis."""
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
        """The prefix of a line whose value is not always needed where it runs."""
        found = self.needed([node])
        return f"if constexpr ({found}) " if found else ""

    def needed(self, nodes: Sequence[Node]) -> str:
        """The condition under which one of these nodes is needed."""
        return self.choices.condition([node.name for node in nodes], self.inside)

    def if_needed(self, nodes: Sequence[Node], count: object, otherwise: object = 0) -> str:
        """``count`` if one of these nodes is needed, else ``otherwise``."""
        found = self.needed(nodes)
        if not found:
            return str(count)
        return f"{f'({found})' if ' ' in found else found} ? {count} : {otherwise}"

    def is_scalar(self, node: Node, nest: Nest) -> bool:
        return not {*node.axes} & {*nest.axes}

    def is_partial(self, node: Node) -> bool:
        return node.name in self.current.partial

    def added_inside(self, nest: Nest) -> list[Node]:
        """The reductions in the innermost loop, sums first."""
        last = nest.axes[-1]
        found = [n for n in nest.nodes if n.kind and last not in n.axes]
        return sorted(found, key=lambda node: node.kind != "sum")

    def added_in_blocks(self, nest: Nest) -> list[Node]:
        """The sums with several entries in a row."""
        return [
            n
            for n in nest.nodes
            if n.kind == "sum" and not self.is_scalar(n, nest) and not self.is_partial(n)
        ]

    def added_up(self, nest: Nest) -> list[Node]:
        """The reductions with one value in a row that several loops add to."""
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
        """A line for every entry of an array in the row, wherever it is stored."""
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
        """The place of a reduction's value that has several entries in a row."""
        if node.name in self.current.stored:
            return self.in_memory(node.name, self.memory[node.name])
        return self.in_row(node, self.row_axes(node))

    def added(self, node: Node, text: str) -> None:
        """Accumulate a value at the current entry."""
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
        """Store the value of a loop over the last axis."""
        if node in self.added_up(nest):
            total = f"{named(node.name)}_total"
            now = f"+= {text}" if node.kind == "sum" else f"= larger({total}, {text})"
            self.line(f"{total} {now};")
        elif self.is_scalar(node, nest) and not self.is_partial(node):
            self.of_row(node, text)
        else:
            self.added(node, text)

    def of_row(self, node: Node, text: str) -> None:
        """A value of which the row has one; it is named if it is read."""
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
        """Make the results of this nest available to the rest of the row."""
        for node in self.added_up(nest):
            self.of_row(node, f"{named(node.name)}_total")
        for node in self.added_in_blocks(nest):
            total = self.in_row(node, self.row_axes(node), f"{named(node.name)}_total")
            self.over_row(node, lambda place, n, t=total: f"{place} = Real({t(self.here(n))});")
        for node in nest.nodes:
            if node.kind and not self.is_scalar(node, nest) and not self.is_partial(node):
                self.print.places[node.name] = self.place_of(node)

    def blocks(self, nodes: Sequence[Node]) -> list[str]:
        """The blocks in which sums with several entries in a row are added up."""
        return [
            "cleared({0}_block, {0}_total, {1})".format(
                named(node.name), self.product(self.row_sizes(self.row_axes(node)))
            )
            for node in nodes
        ]

    def nest(self, nest: Nest) -> None:
        self.begun(nest)
        places = dict(self.print.places)
        self.loop(nest, 0, {*self.current.parallel} - {self.tile})
        self.print.places = places | {
            n.name: self.print.places[n.name] for n in self.found_in_row(nest)
        }
        self.ended(nest)

    def found_in_row(self, nest: Nest) -> list[Node]:
        """The reductions that `settled` has named: those with one value in the row."""
        return [
            n
            for n in nest.nodes
            if n.kind and self.is_scalar(n, nest) and n.name in self.print.places
        ]

    def loop(self, nest: Nest, depth: int, known: set[str]) -> None:
        """Write the loops from ``depth`` on."""
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
        """The innermost loop; unneeded values get an empty range, or no sum of their own."""
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
        """The helper that computes these reductions in one pass."""
        kinds = [node.kind for node in found]
        if not found:
            return "each"
        if len(found) == 1 and not self.needed(found):
            return "sum" if kinds == ["sum"] else "largest"
        sums = self.if_needed(found, kinds.count("sum"))
        most = (self.needed(found) or "true") if "max" in kinds else "false"
        return f"reduced<Real, {sums}, {most}>"

    def put(self, nest: Nest, found: Sequence[Node], text: str) -> None:
        """Store the results of a loop."""
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
        """Name costly calls that several values share: after a store, a compiler would load their
        operands again.
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
        """Write an entry; it gets a name if the loop reads it again."""
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

    # -- loop invariants ------------------------------------------------------

    def lifted(self, nest: Nest, known: set[str]) -> None:
        """Name values that the inner loops do not change, before these loops."""
        for node, part in self.steady(nest, known):
            self.known(part, f"{node.name.rstrip('_')}_constant")
        for divisor in self.divisors(nest, known):
            self.divides(divisor)

    def divisors(self, nest: Nest, known: set[str]) -> Iterator[Element]:
        """Loop-invariant divisors of the innermost loop, other than numbers of the caller: a
        quotient of such a number and itself is 1.
        """
        outer = {*self.current.parallel, *nest.axes[:-1]} - {self.tile, nest.axes[-1]}
        for part in (part for node in nest.nodes for part in node.value.parts()):
            if part.kind == "divide" and not self.is_steady(part, nest, outer):
                _, divisor = part.args
                given = is_number(divisor) and divisor.kind != "size"
                if not given and self.is_steady(divisor, nest, known):
                    yield divisor

    def divides(self, divisor: Element) -> None:
        """Compute the inverse of a divisor here."""
        if inverted(divisor) not in self.print.at_hand:
            name = f"by_{self.print.said(divisor)}"
            name = self.names.free(name if name.isidentifier() else "by_divisor")
            self.line(f"const Divisor {name} = {self.print.real(divisor)};")
            self.print.at_hand[inverted(divisor)] = name

    def known(self, part: Element, otherwise: str) -> None:
        """Name an element from here on, ``otherwise`` if it has no name of its own."""
        if part not in self.print.at_hand:
            text = self.print.text(part)
            name = self.print.named(part, otherwise)
            kind = "int" if part.kind in CONDITIONS else "auto"
            self.line(f"const {kind} {name} = {text};")
            self.print.at_hand[part] = name

    def steady(self, nest: Nest, known: set[str]) -> Iterator[tuple[Node, Element]]:
        """Loop-invariant parts of the values of a pass, unless they have a name."""
        for node in nest.nodes:
            for part in self.largest(node.value, lambda e: self.is_steady(e, nest, known)):
                plain = is_number(part) or part.kind == "index" or part in self.print.at_hand
                if not plain and not self.print.text(part).isidentifier():
                    yield node, part

    def is_steady(self, e: Element, nest: Nest, known: set[str]) -> bool:
        """True if loops over axes that are not ``known`` do not change it."""
        inside = {node.name for node in nest.nodes}
        return axes_in(e) <= known and not {entry.name for entry in e.entries} & inside

    def sweep(self, sweep: Sweep) -> None:
        self.current = sweep
        self.of = {node.name: node for nest in sweep.nests for node in nest.nodes}
        self.tile = sweep.parallel[-1] if sweep.tiles else None
        for node in self.of.values():
            self.with_numbers(node.value)
        places = dict(self.print.places)
        self.inside = ()
        condition = self.needed([*self.of.values()])
        self.inside = tuple(self.of) if condition else ()
        if condition:
            with self.block(f"if constexpr ({condition})"), self.scope():
                self.whole_sweep()
        else:
            self.whole_sweep()
        self.print.places = places

    def whole_sweep(self) -> None:
        if not self.current.parallel:
            self.alone()
            return
        self.lifted_out()
        condition, at_hand = self.dear_choice(), dict(self.print.at_hand)
        if condition is None:
            self.loops()
        else:
            name = self.print.text(condition)
            with self.block(f"either({name}, [=](auto {name}) INLINE", "});"):
                self.loops()
        self.print.at_hand = at_hand

    def loops(self) -> None:
        if not self.entries():
            self.shared()

    def dear_choice(self) -> Element | None:
        """The loop-invariant condition that chooses between the most costly sides, unless both are
        cheap to compute: then every loop is written for each of them.
        """
        found = Counter()
        for node in self.of.values():
            for part in node.value.parts():
                if part.kind == "choose" and is_number(part.args[0]):
                    condition, *sides = part.args
                    found[condition] += min(cost(side, frozenset(node.space)) for side in sides)
        (most, wasted), *_ = found.most_common(1) or [(None, 0)]
        return most if wasted > CHEAP else None

    def lifted_out(self) -> None:
        """Read a sweep's numbers from memory before it, and invert sizes."""

        def is_there(e: Element) -> bool:
            return not any(read.args or read.name in self.of for read in e.entries)

        for nest in (nest for nest in self.current.nests if nest.axes):
            for node, part in [*self.steady(nest, set())]:
                if is_there(part):
                    self.known(part, f"{node.name.rstrip('_')}_constant")
            for divisor in filter(is_there, self.divisors(nest, set())):
                self.divides(divisor)

    def alone(self) -> None:
        """Without parallel axes there is nothing to share."""
        for part in self.parts():
            kind = part.kind.removesuffix("*")
            count = part.made.partition("(")[2].removesuffix(")")
            self.line(f"{part.kind} {part.name} = scratch.of<{kind}>({count});")
            self.keeps = True
        self.nests()

    def nests(self) -> None:
        for node in self.of.values():
            if node.name in self.current.kept:
                self.print.places[node.name] = self.in_row(node, self.row_axes(node))
        for nest in self.current.nests:
            if nest.axes:
                self.nest(nest)
                continue
            for node in nest.nodes:
                text = self.print.real(node.value)
                self.added(node, text) if node.kind else self.of_row(node, text)

    # -- rows and threads -----------------------------------------------------

    def entries(self) -> bool:
        """True if the sweep is one loop over entries, which is then printed."""
        (nest, *others), rows = self.current.nests, self.current.parallel
        axes = nest.axes if self.tile else (*rows, *nest.axes)
        plain = not others and not self.parts() and not any(node.kind for node in nest.nodes)
        fits = len(rows) == 1 and len(nest.axes) == 1 and set(axes) == {*self.space()}
        if not plain or not fits or [*self.steady(nest, {*rows} - {self.tile})]:
            return False
        sizes = ", ".join(map(self.print.size, axes))
        given = ", ".join(f"{I64} {self.names.index(axis)}" for axis in axes)
        with self.block(f"entries({sizes}, threads, [=]({given}) INLINE", "});"), self.scope():
            self.body(nest, [])
        return True

    def space(self) -> list[str]:
        return sorted({axis for node in self.of.values() for axis in node.space})

    def shared(self) -> None:
        """Write the rows of a sweep, shared among threads."""
        rows, parts = self.current.parallel, self.parts()
        whole = self.tile is not None and self.is_whole()
        counts = [self.print.size(axis) for axis in rows]
        if self.tile and not whole:
            counts[-1] = f"(({counts[-1]} + {TILE - 1}) / {TILE})"
        index = self.names.index(rows[0]) if len(rows) == 1 and not self.tile else "row"
        given = [f"{I64} first", f"{I64} last"] if whole else [f"{I64} {index}"]
        given += [f"{part.kind} {part.name}" for part in parts]
        count, work = self.product(counts), self.count(self.space())
        call = "tiles" if whole else "rows"
        head = f"{call}({count}, {work}, threads, [=]({', '.join(given)}) INLINE"
        tail = ", ".join(["}", *(part.made for part in parts)]) + ");"
        with self.block(head, tail), self.scope():
            if not whole:
                self.row_indices()
            self.nests()

    def is_whole(self) -> bool:
        """True if the axis that is cut into pieces is the only one."""
        return self.space() == [self.tile] == [*self.current.parallel]

    @property
    def piece(self) -> str:
        """The number of entries of the last axis in a row, where it is cut into pieces."""
        return "TILE" if self.is_whole() else str(TILE)

    def parts(self) -> list[ThreadPart]:
        """Variables that each thread has of its own."""
        found = []
        for node in (self.of[name] for name in self.current.partial):
            name, count = named(node.name), self.if_needed([node], self.count(node.axes))
            kind = "Most" if node.kind == "max" else "Total"
            kind = "Columns" if self.is_added_by_entry(node) else kind
            found.append(
                ThreadPart(
                    "double*" if kind == "Total" else "Real*", name, f"{kind}({name}, {count})"
                )
            )
        for nest in self.current.nests:
            for node in nest.nodes:
                found += self.kept(nest, node)
        return found

    def kept(self, nest: Nest, node: Node) -> list[ThreadPart]:
        """Buffers that a row keeps for a node."""
        name, axes = named(node.name), self.row_axes(node)
        count, found = self.product(self.row_sizes(axes)), []
        if axes and node.name in self.current.kept:
            found.append(ThreadPart("Real*", name, f"Kept<Real>({count})"))
        if node in self.added_in_blocks(nest):
            found.append(ThreadPart("Real*", f"{name}_block", f"Kept<Real>({count})"))
            found.append(ThreadPart("double*", f"{name}_total", f"Kept<double>({count})"))
        return found

    def is_added_by_entry(self, node: Node) -> bool:
        """True if a reduction over the rows has an entry for each entry of a row, and no others:
        its partial sums have the dtype of the data.
        """
        nest = next(nest for nest in self.current.nests if node in nest.nodes)
        own = [axis for axis in nest.axes if axis in node.axes]
        return (
            node.kind == "sum"
            and bool(own)
            and tuple(own) == nest.axes
            and {*node.axes} == {*own}
            and self.tile is None
        )

    def row_indices(self) -> None:
        """Recover the indices along several axes from the row."""
        rows = self.current.parallel
        if len(rows) == 1 and not self.tile:
            return
        rest = "row"
        for i in range(len(rows) - 1, -1, -1):
            axis, size = rows[i], self.print.size(rows[i])
            pieces = f"(({size} + {TILE - 1}) / {TILE})" if axis == self.tile else size
            value = rest if i == 0 else f"{rest} % {pieces}"
            if axis == self.tile:
                self.line(f"const {I64} first = {value if i == 0 else f'({value})'} * {TILE};")
                self.line(f"const {I64} last = smaller_size(first + {TILE}, {size});")
            else:
                self.line(f"const {I64} {self.names.index(axis)} = {value};")
            rest = f"{rest} / {pieces}"


def _factor(index: str) -> str:
    """An index as a factor, in parentheses if needed."""
    return f"({index})" if any(sign in index for sign in (" - ", " + ", " / ", " % ")) else index
