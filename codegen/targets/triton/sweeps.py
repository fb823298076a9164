"""One sweep of a plan as the body of a Triton kernel.

All of a row lies in registers, where the loops over it need no text; or programs walk along rows
that are too long for that, and each pass is a loop over chunks. What is added up over rows is added
entry by entry, by programs that each walk over some of them, and reduced when these have ended: the
parts are added by another kernel, in one order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain

from codegen.schedule.elements import index
from codegen.schedule.nodes import Node
from codegen.schedule.plan import Nest
from codegen.targets.triton.places import REDUCED, Places, factor
from codegen.targets.triton.scopes import INDENT
from codegen.targets.triton.values import own

MOST_ALONE = 3  # see `Places.apart`
NONE = {"sum": "0.0", "max": 'float("-inf")'}  # what nothing adds up to


class Sweeps(Places):
    """Writes a sweep; ``open`` are results that may be left out."""

    def __init__(self, *of: object, open: Collection[str]):
        super().__init__(*of)
        self.open = open
        self.sums = [self.values.nodes[name] for name in self.sweep.partial]

    # -- the kernel -------------------------------------------------------------

    def lines(self) -> list[str]:
        shape, scopes = self.shape, self.scopes
        walked = (shape.rows or (shape.tile,)) if shape.looped else ()
        chunked = shape.inner if shape.chunked else ()
        scopes.scopes[0].axes = frozenset(
            {*shape.rows, *shape.kept, *shape.inner} - {*walked, *chunked}
        )
        if not shape.looped:
            if chunked and shape.rows:
                self.row()  # before what begins as nothing
            self.body()
            return scopes.scopes[0].lines
        scopes.line(f"program = tl.program_id({self.along_grid}).to(tl.int64)")
        for node in self.sums:
            self.begun(node)
        with scopes.loop(self.walk(), walked):
            self.body()
        for node in self.sums:
            self.ended(node)
        return scopes.scopes[0].lines

    @property
    def along_grid(self) -> int:
        """The dimension of the grid whose programs share rows."""
        return 2 if self.shape.kept else 0

    def walk(self) -> str:
        """The loop of a program over its share of the rows, or of the entries."""
        programs = f"tl.num_programs({self.along_grid})"
        if self.shape.chunked:
            return f"for {self.row_name()} in range(program, {self.count()}, {programs}):"
        rows, tile = self.shape.rows, self.shape.tile
        block, stop = ("ROWS", self.count()) if rows else (self.shape.block(tile), self.size(tile))
        return f"for start in range(program * {block}, {stop}, {programs} * {block}):"

    def body(self) -> None:
        if not self.shape.chunked:
            for node in self.sweep.nodes:
                self.settled(node)
            return
        for nest in self.sweep.nests:
            if nest.axes:
                self.chunks(nest.axes[0], nest)
            else:
                for node in nest.nodes:
                    self.settled(node)

    def chunks(self, axis: str, nest: Nest) -> None:
        """A pass over the row."""
        sums_of: dict[str, list[Node]] = {}  # those that go with a maximum
        for peak, name in nest.online:
            sums_of.setdefault(peak, []).append(self.values.nodes[name])
        apart = self.sums if self.shape.looped else []
        along = [node for node in nest.nodes if node.kind and node not in apart]
        alone = [node for node in along if node not in chain(*sums_of.values())]
        for node in along:
            self.begun(node)
        self.moving = {*sums_of}
        head = f"for start in range(0, {self.size(axis)}, BLOCK):"
        with self.values.in_pass(nest.nodes), self.scopes.loop(head, [axis]):
            for node in nest.nodes:
                if node.name in sums_of:
                    self.followed(node, sums_of[node.name])
                elif node in alone:
                    self.added(node)
                elif node not in along:
                    self.settled(node)
        self.moving = set()
        for node in alone:
            name, sums = self.name(node), sums_of.get(node.name, [])
            if sums:
                self.scopes.line(f"before = {name}")
            self.finished(node, name)
            for each in sums:
                self.finished(each, f"{self.name(each)} * rescaled(before, {name})")

    def finished(self, node: Node, text: str) -> None:
        """What was added up along a row becomes a number."""
        self.scopes.line(f"{self.name(node)} = {self.whole(node, text)}")
        self.scopes.scopes[-1].known.add(own(node))
        self.settled(node)

    def followed(self, peak: Node, sums: Sequence[Node]) -> None:
        """The largest so far, and sums of what is shifted by it."""
        name = self.name(peak)
        self.scopes.line(f"before = {name}")
        self.added(peak)
        self.scopes.scopes[-1].known.add(own(peak))
        for node in sums:
            self.scopes.line(f"{self.name(node)} *= rescaled(before, {name})")
            self.added(node)

    # -- nodes ------------------------------------------------------------------

    def settled(self, node: Node) -> None:
        """A node is computed if nobody who reads it would do so."""
        if node in self.sums:
            if self.shape.looped:
                self.added(node)
            else:
                is_made = self.scopes.has(own(node))
                value, test = self.name(node) if is_made else self.reduced(node), self.once(node)
                value = f"tl.where({test}, {value}, {NONE[node.kind]})" if test else value
                self.store(node, self.part_place(node), value, (*self.shape.rows, *node.axes))
        elif node.name in self.sweep.stored:
            once = self.is_once(node.axes)
            depth = self.scopes.depth(node.axes) if once else len(self.scopes.scopes)
            with self.scopes.outside(depth):
                self.store(node, self.place(node.name, own(node).args), None, node.axes, once)

    def begun(self, node: Node) -> None:
        """What is added up entry by entry begins as nothing."""
        shape = self.shape
        lengths = ["ROWS" if {*node.space} & {*shape.rows} else "1"] * shape.several
        lengths += [
            shape.block(a) if a in {*node.space} - {*self.within(node)} else "1"
            for a in shape.inner
        ]
        lengths = [length for length in lengths if length != "1" or not shape.chunked]
        none = f"tl.zeros([{', '.join(lengths)}], REAL)"
        if node.kind != "sum":
            none = f"tl.full([{', '.join(lengths)}], {NONE[node.kind]}, REAL)"
        self.scopes.line(f"{self.name(node)} = {none}")

    def within(self, node: Node) -> Sequence[str]:
        """The axes of a row along which it is reduced in each row: one number is left to add."""
        if self.shape.chunked or not {*node.axes} & {*self.shape.inner}:
            return ()
        return [axis for axis in self.shape.inner if axis in node.along]

    def added(self, node: Node) -> None:
        """One entry more."""
        name, value = self.name(node), self.values.of[node.name]

        def text() -> str:
            mask = self.once(node, self.mask(node.space))
            now = self.text(value)
            for axis in reversed(self.within(node)):
                now = f"{REDUCED[node.kind]}({now}, {mask or True}, {self.shape.dim(axis)})"
                mask = "True"
            if mask and mask != "True":
                now = f"tl.where({mask}, {now}, {NONE[node.kind]})"
            return f"{name} += {now}" if node.kind == "sum" else f"{name} = larger({name}, {now})"

        self.fitting(text)

    def once(self, node: Node, mask: str = "") -> str:
        """With a mask, whether a program is that one, of those for the tiles of a row, which counts
        what is the same in all.
        """
        if not self.shape.tile or not self.shape.rows or self.shape.tile in node.space:
            return mask
        first = "tl.program_id(1) == 0"
        return f"({mask}) & ({first})" if mask else first

    def ended(self, node: Node) -> None:
        """Of what a program has added up over its rows, one part is stored."""
        total = self.whole(node, self.name(node))
        self.store(node, self.part_place(node), total, node.axes)

    def whole(self, node: Node, text: str) -> str:
        """A value that was added up entry by entry, reduced along its dimensions."""
        if self.shape.chunked and not {*node.space} & {*self.shape.inner}:
            return text  # a number of one row after another
        if self.shape.chunked or not {*node.axes} & {*self.shape.inner}:
            return f"tl.sum({text})" if node.kind == "sum" else f"largest({text}, True)"
        for dim in sorted({self.shape.dim(a) for a in node.along if a not in self.within(node)}):
            of_sum = f"tl.sum({text}, axis={dim}, keep_dims=True)"
            text = of_sum if node.kind == "sum" else f"largest({text}, True, {dim})"
        return text

    # -- what is stored -------------------------------------------------------------

    def part_place(self, node: Node) -> str:
        """Where the part of a program, or of a row, lies of what is added up over rows: one part
        after the other, each as the result lies in memory.
        """
        shape = self.shape
        over = [axis for axis in shape.rows if axis not in node.axes]
        found = "program" if shape.looped else self.row() if over == [*shape.rows] else ""
        for axis in () if found else over:
            at = self.text(index(axis))
            found = f"{factor(found)} * {self.size(axis)} + {at}" if found else at
        if shape.tile and shape.rows and shape.tile not in node.axes:
            found = f"{factor(found)} * " if found else ""
            found = f"{found}tl.num_programs(1) + tl.program_id(1)" if found else "tl.program_id(1)"
        place = self.place(node.name, own(node).args)
        sizes = "".join(f" * {self.size(axis)}" for axis in node.axes)
        found = f"{factor(found) if sizes else found}{sizes}" if found else ""
        return " + ".join(text for text in (found, place) if text)

    def is_once(self, axes: Iterable[str]) -> str:
        """Whether a program is that one which stores what is the same for all rows."""
        shape = self.shape
        if not shape.rows or {*axes} & {*shape.rows}:
            return ""
        program = "program" if shape.looped else "tl.program_id(0)"
        tile = shape.tile and shape.tile not in axes
        return f"({program} == 0)" + " & (tl.program_id(1) == 0)" * bool(tile)

    def store(
        self, node: Node, place: str, value: str | None, axes: Iterable[str], once: str = ""
    ) -> None:
        """A line for what is ``value``, or what the node computes; ``once`` asks who stores it."""
        pointer, mask = f"{self.names.of(node.name)}_ptr", self.mask(axes)
        where = f"{pointer} + {place}" if place else pointer
        mask = f"({mask}) & {once}" if mask and once else mask or once
        masked = f", mask={mask}" if mask else ""

        def text() -> str:
            made = value if value is not None else self.text(own(node))
            line = f"tl.store({where}, {made}{masked})"
            return f"if {pointer} is not None:\n{INDENT}{line}" if node.name in self.open else line

        self.fitting(text)

    def fitting(self, text: Callable[[], str]) -> None:
        """A line; what is read once has none of its own if that leaves all short enough."""
        beyond: list[int] = []
        for self.alone in range(MOST_ALONE + 1):
            with self.scopes.tried():
                self.scopes.line(text())
                beyond.append(self.scopes.beyond)
            self.names.taken |= {*self.numbers.values()}
        self.alone = beyond.index(min(beyond))
        self.scopes.line(text())
        self.alone = 0
