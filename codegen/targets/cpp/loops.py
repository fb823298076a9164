"""The sweeps of a plan as the lines of a C++ function: calls of the loops in ``loops.h``.

Sums run in the dtype of the data over a block of a row, or of rows, and in float64 over
the blocks; the parts of threads are added in the order of the threads. So a result depends on the
number of threads and on nothing else.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from codegen.schedule.elements import Element, cost, is_number
from codegen.schedule.inlining import CHEAP
from codegen.schedule.nodes import Node
from codegen.schedule.plan import Nest, Sweep
from codegen.targets.cpp.lines import I64
from codegen.targets.cpp.names import named
from codegen.targets.cpp.passes import Passes

TILE = 32  # entries of the last axis that a row has beside other axes


@dataclass(frozen=True)
class Part:
    """What each thread has of its own: a variable of a row, and what makes it."""

    kind: str
    name: str
    made: str


class Loops(Passes):
    """Writes one sweep after another."""

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
        """The condition by which sides are chosen that cost the most of those that no loop changes,
        unless both are cheap to compute: then every loop is written for each of them.
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
        """Numbers that a sweep reads from memory are read before it, and sizes inverted."""

        def is_there(e: Element) -> bool:
            return not any(read.args or read.name in self.of for read in e.entries)

        for nest in (nest for nest in self.current.nests if nest.axes):
            for node, part in [*self.steady(nest, set())]:
                if is_there(part):
                    self.known(part, f"{node.name.rstrip('_')}_constant")
            for divisor in filter(is_there, self.divisors(nest, set())):
                self.divides(divisor)

    def alone(self) -> None:
        """Where nothing is parallel there is nothing to share."""
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
        """Whether the sweep is one loop over entries, which is written then."""
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
        """The rows of a sweep, shared among threads."""
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
        """Whether the axis that is cut into pieces is the only one."""
        return self.space() == [self.tile] == [*self.current.parallel]

    @property
    def piece(self) -> str:
        return "TILE" if self.is_whole() else str(TILE)

    def parts(self) -> list[Part]:
        """What each thread has of its own."""
        found = []
        for node in (self.of[name] for name in self.current.partial):
            name, count = named(node.name), self.if_needed([node], self.count(node.axes))
            kind = "Most" if node.kind == "max" else "Total"
            kind = "Columns" if self.is_added_by_entry(node) else kind
            found.append(
                Part("double*" if kind == "Total" else "Real*", name, f"{kind}({name}, {count})")
            )
        for nest in self.current.nests:
            for node in nest.nodes:
                found += self.kept(nest, node)
        return found

    def kept(self, nest: Nest, node: Node) -> list[Part]:
        """What a row keeps of a node."""
        name, axes = named(node.name), self.row_axes(node)
        count, found = self.product(self.row_sizes(axes)), []
        if axes and node.name in self.current.kept:
            found.append(Part("Real*", name, f"Kept<Real>({count})"))
        if node in self.added_in_blocks(nest):
            found.append(Part("Real*", f"{name}_block", f"Kept<Real>({count})"))
            found.append(Part("double*", f"{name}_total", f"Kept<double>({count})"))
        return found

    def is_added_by_entry(self, node: Node) -> bool:
        """Whether a reduction over the rows has an entry for each entry of a row, and for nothing
        else: parts of it are added up in the dtype of the data.
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
        """The places along several axes that a row stands for."""
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
