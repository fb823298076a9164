"""The sweeps of a plan as the lines of a C++ function.

Sums run in the format of the data over a block of a row, or of rows, and in double precision over
the blocks; the parts of threads are added in the order of the threads. So a result depends on the
number of threads and on nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager

from codegen.schedule.elements import Axes, Element, axes_in, is_number
from codegen.schedule.flattening import Node
from codegen.schedule.planning import Nest, Sweep
from codegen.targets.cpp.expressions import Expressions, named

BLOCK = 1024  # entries of a row that are added up in the format of the data
ROWS = 64  # rows that are, entry by entry
TILE, LONG_TILE = 32, 2048  # entries of the last axis in a row that has other axes, and that has none


class Loops:
    """Prints one sweep after another. ``memory`` are the axes of every array that has its place in
    memory, by its name.
    """

    def __init__(self, sizes: Mapping[str, str], memory: Mapping[str, Axes]):
        self.print = Expressions(sizes)
        self.memory = dict(memory)
        self.lines: list[str] = []
        self.depth = 1
        self.numbers: list[str] = []
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
        """What is made of numbers alone has a name before all loops."""
        for part in self.largest(e, is_number):
            if part.kind == "number" or (part.kind == "size") or part in self.print.at_hand:
                continue
            name = f"number_{len(self.numbers) + 1}"
            text = self.print.double(part)
            whole = part.kind in ("compare", "and", "or", "not")
            kind = "bool" if whole else "Real"
            self.numbers.append(f"const {kind} {name} = {text if whole else f'Real({text})'};")
            self.print.at_hand[part] = name

    def largest(self, e: Element, holds) -> list[Element]:
        if holds(e):
            return [e]
        return [part for arg in e.args for part in self.largest(arg, holds)]

    # -- a sweep --------------------------------------------------------------

    def sweep(self, sweep: Sweep) -> None:
        for nest in sweep.nests:
            for node in nest.nodes:
                self.with_numbers(node.value)
        self.current = sweep
        self.of = {node.name: node for nest in sweep.nests for node in nest.nodes}
        self.tile = sweep.parallel[-1] if sweep.tiles else None
        self.line(f"// {', '.join(n for n in sweep.stored)}")
        places, at_hand = dict(self.print.places), dict(self.print.at_hand)
        with self.block(""):
            self.rows_counted()
            self.totals_declared()
            with self.block(f"parallel(rows, work, threads, [=](int thread, {I64} begin, {I64} end)"):
                self.thread()
            self.lines[-1] += ");"
            self.totals_added()
        self.print.places, self.print.at_hand = places, at_hand

    def rows_counted(self) -> None:
        rows = self.current.parallel
        counts = [self.print.size(axis) for axis in rows]
        longest = LONG_TILE if not self.inner_axes() - {self.tile} else TILE
        if self.tile:
            self.line(f"const {I64} tile = {longest};")
            counts[-1] = f"(({counts[-1]} + tile - 1) / tile)"
        self.line(f"const {I64} rows = {self.product(counts)};")
        every = {axis for node in self.of.values() for axis in node.space}
        work = self.product([self.print.size(axis) for axis in sorted(every)])
        self.line(f"const {I64} work = {work};")

    def inner_axes(self) -> set[str]:
        outer = self.current.parallel[: -1 if self.tile else None]
        return {a for node in self.of.values() for a in node.space} - {*outer}

    @property
    def partial(self) -> list[Node]:
        return [self.of[name] for name in self.current.partial]

    def totals_declared(self) -> None:
        """Each thread adds up in a place of its own."""
        for node in self.partial:
            count = self.product([self.print.size(axis) for axis in node.axes])
            kind, first = ("double", "0") if node.kind == "sum" else ("Real", "-infinity")
            self.array(kind, f"{node.name}_parts", f"threads * {count}", first)

    def totals_added(self) -> None:
        for node in self.partial:
            count = self.product([self.print.size(axis) for axis in node.axes])
            parts, result = f"{node.name}_parts", named(node.name)
            self.line(f"{node.kind}_of_parts({parts}, threads, {count}, {result});")

    def thread(self) -> None:
        for node in self.partial:
            kind = "double" if node.kind == "sum" else "Real"
            count = self.product([self.print.size(axis) for axis in node.axes])
            part = f"{node.name}_parts + thread * {count}"
            self.line(f"{kind}* __restrict {node.name}_part = {part};")
        blocks = [node for node in self.partial if self.is_added_by_entry(node)]
        for node in blocks:
            count = self.product([self.print.size(axis) for axis in node.axes])
            self.array("Real", f"{node.name}_block", count)
        self.scratch_declared()
        with self.block(f"for ({I64} row = begin; row < end; ++row)"):
            self.row_indices()
            for nest in self.current.nests:
                if nest.axes:
                    self.nest(nest)
                else:
                    self.of_row(nest)
            if blocks:
                with self.block(f"if ((row - begin) % {ROWS} == {ROWS - 1} || row == end - 1)"):
                    for node in blocks:
                        self.line(f"add_block({node.name}_block_memory, {node.name}_part);")

    def is_added_by_entry(self, node: Node) -> bool:
        """Whether a reduction over the rows has an entry for each entry of a row, and for nothing
        else: parts of it are added up in the format of the data.
        """
        nest = next(nest for nest in self.current.nests if node in nest.nodes)
        own = [axis for axis in nest.axes if axis in node.axes]
        return (
            node.kind == "sum" and bool(own) and tuple(own) == nest.axes and {*node.axes} == {*own}
            and self.tile is None
        )

    def row_indices(self) -> None:
        rows = self.current.parallel
        if not rows:
            return
        rest = "row"
        for i in range(len(rows) - 1, -1, -1):
            axis, size = rows[i], self.print.size(rows[i])
            if axis == self.tile:
                size = f"(({size} + tile - 1) / tile)"
            value = rest if i == 0 else f"{rest} % {size}"
            if axis == self.tile:
                self.line(f"const {I64} first_{axis} = ({value}) * tile;")
                self.line(
                    f"const {I64} last_{axis} = smaller_size(first_{axis} + tile, "
                    f"{self.print.size(axis)});"
                )
            else:
                self.line(f"const {I64} i_{axis} = {value};")
            rest = f"({rest} / {size})"

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
                    self.array("Real", node.name, count)
                    self.print.places[node.name] = self.in_row(node, axes)
                if node.kind == "sum":
                    self.array("Real", f"{node.name}_block", count)
                    self.array("double", f"{node.name}_total", count)

    def in_row(self, node: Node, axes: Axes, name: str = ""):
        """An entry of what belongs to the row; from indices of all its axes, or of the row's."""
        places = [node.axes.index(axis) for axis in axes]

        def text(indices):
            own = [
                f"({indices[i]} - first_{axis})" if axis == self.tile else indices[i]
                for i, axis in zip(places, axes, strict=True)
            ]
            return f"{name or node.name}[{self.offset(axes, own, self.row_sizes(axes))}]"

        return text

    def here(self, node: Node) -> list[str]:
        return [f"i_{axis}" for axis in node.axes]

    def of_row(self, nest: Nest) -> None:
        """Values that the row has one of."""
        for node in nest.nodes:
            if node.kind:
                self.added(node, self.print.real(node.value))
            else:
                self.line(f"const Real {node.name}_here = {self.print.real(node.value)};")
                self.known_in_row(node)

    def known_in_row(self, node: Node) -> None:
        self.store(node, f"{node.name}_here")
        self.print.places[node.name] = lambda indices: f"{node.name}_here"

    def store(self, node: Node, text: str) -> None:
        if node.name in self.current.stored and node.name not in self.current.partial:
            place = self.in_memory(node.name, self.memory[node.name])
            self.line(f"{place(self.here(node))} = {text};")

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
            self.line(f"Real {node.name}_inner = {'0' if node.kind == 'sum' else '-infinity'};")
            if node.kind == "max":
                self.line(f"int {node.name}_unordered = 0;")
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
            self.added(node, self.settled(node, f"{node.name}_inner"))

    def settled(self, node: Node, text: str) -> str:
        """A maximum with what was no number among the entries."""
        return f"unless({node.name}_unordered, {text})" if node.kind == "max" else text

    # Where the value of a reduction goes while loops run, from the inside out: a variable of the
    # innermost loop, the part of a block, the total.

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
                *(f"{n.name}_inner" for n in local if n.kind == kind),
                *(f"{n.name}_now" for n in scalars if n.kind == kind),
            ]
            text += f" reduction({sign}:{', '.join(names)})" if names else ""
        flags = [f"{n.name}_unordered" for n in (*local, *scalars) if n.kind == "max"]
        return text + (f" reduction(|:{', '.join(flags)})" if flags else "")

    def begun(self, nest: Nest) -> None:
        for node in nest.nodes:
            if not node.kind:
                continue
            if self.is_scalar(node, nest):
                if node.kind == "sum":
                    self.line(f"double {node.name}_sum = 0;")
                else:
                    self.line(f"Real {node.name}_now = -infinity;")
                    self.line(f"int {node.name}_unordered = 0;")
            elif node.name not in self.current.partial:
                if node.kind == "sum":
                    self.line(f"{node.name}_total_memory.fill(0);")
                else:
                    self.filled(node)

    def filled(self, node: Node) -> None:
        axes = self.row_axes(node)
        if node.name in self.current.kept:
            self.line(f"{node.name}_memory.fill(-infinity);")
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
                self.line(f"Real {node.name}_now = 0;")
            elif node.name not in self.current.partial:
                self.line(f"{node.name}_block_memory.fill(0);")

    def parts_ended(self, nest: Nest) -> None:
        for node in nest.nodes:
            if node.kind != "sum":
                continue
            if self.is_scalar(node, nest):
                self.line(f"{node.name}_sum += {node.name}_now;")
            elif node.name not in self.current.partial:
                self.line(f"add_block({node.name}_block_memory, {node.name}_total);")

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
            name = f"{node.name}_{'block' if block else 'part'}"
            return f"{name}[{self.offset(node.axes, here)}]", node.kind == "sum" and not block
        if node.kind == "max":
            return self.place_of(node)(here), False
        axes = self.row_axes(node)
        return self.in_row(node, axes, f"{node.name}_block")(here), False

    def ended(self, nest: Nest) -> None:
        """What the row knows from here on."""
        for node in nest.nodes:
            if not node.kind:
                continue
            scalar, partial = self.is_scalar(node, nest), node.name in self.current.partial
            if scalar and not partial:
                value = f"Real({node.name}_sum)"
                if node.kind == "max":
                    value = self.settled(node, f"{node.name}_now")
                self.line(f"const Real {node.name}_here = {value};")
                self.known_in_row(node)
            elif scalar:
                place = f"{node.name}_part[{self.offset(node.axes, self.here(node))}]"
                if node.kind == "sum":
                    self.line(f"{place} += {node.name}_sum;")
                else:
                    value = self.settled(node, f"{node.name}_now")
                    self.line(f"{place} = larger({place}, {value});")
            elif not partial and node.kind == "sum":
                axes = self.row_axes(node)
                total = self.in_row(node, axes, f"{node.name}_total")
                with self.block(""):
                    self.over_row(
                        node, axes, lambda place, t=total, n=node: f"{place} = Real({t(self.here(n))});"
                    )
            if not partial and not scalar:
                self.print.places[node.name] = self.place_of(node)

    # -- the innermost loop ---------------------------------------------------

    def body(self, nest: Nest, local: Sequence[Node]) -> None:
        for node in nest.nodes:
            if not node.kind:
                self.line(f"const Real {node.name}_now = {self.print.real(node.value)};")
                self.store(node, f"{node.name}_now")
                if node.name in self.current.kept:
                    place = self.in_row(node, self.row_axes(node))
                    self.line(f"{place(self.here(node))} = {node.name}_now;")
                self.print.places[node.name] = lambda indices, n=node: f"{n.name}_now"
                continue
            value = self.print.real(node.value)
            if node in local:
                name = f"{node.name}_inner"
            elif self.is_scalar(node, nest):
                name = f"{node.name}_now"
            else:
                self.added(node, value)
                continue
            if node.kind == "sum":
                self.line(f"{name} += {value};")
            else:
                self.line(f"const Real {node.name}_value = {value};")
                self.line(f"{name} = {node.name}_value > {name} ? {node.name}_value : {name};")
                self.line(f"{node.name}_unordered |= {node.name}_value != {node.name}_value;")

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


I64 = "int64_t"
