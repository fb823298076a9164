"""The sweeps of a plan as the lines of a C++ function.

Sums run in the format of the data over a block of a row, or of rows, and in double precision over
the blocks; the parts of threads are added in the order of the threads. So a result depends on the
number of threads and on nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from codegen.schedule.nodes import Node
from codegen.schedule.plan import Sweep
from codegen.targets.cpp.expressions import named
from codegen.targets.cpp.lines import I64
from codegen.targets.cpp.passes import ROWS, Passes

# Entries of the last axis that a row has, beside other axes and alone.
TILE, LONG_TILE = 32, 2048


class Loops(Passes):
    """Writes one sweep after another."""

    # -- a sweep --------------------------------------------------------------

    def sweep(self, sweep: Sweep) -> None:
        self.current = sweep
        self.of = {node.name: node for nest in sweep.nests for node in nest.nodes}
        self.tile = sweep.parallel[-1] if sweep.tiles else None
        self.line(f"// {', '.join(n for n in sweep.stored)}")
        places, at_hand = dict(self.print.places), dict(self.print.at_hand)
        with self.block(""):
            self.rows_counted()
            self.totals_declared()
            self.in_threads()
            self.totals_added()
        self.print.places, self.print.at_hand = places, at_hand

    def in_threads(self) -> None:
        """What a thread throws, it has to catch."""
        self.line("const int used = threads_for(rows, work, threads);")
        self.line("bool failed = false;")
        self.line("")
        place = len(self.lines) - 1
        with self.block(""):
            self.line("try {")
            self.threads_begun()
            self.thread()
            self.line("} FAILED(failed)")
        self.lines[place] = self.region(self.lines[place:])
        self.line("if (failed) return NO_MEMORY;")

    def threads_begun(self) -> None:
        self.line(f"const {I64} thread = omp_get_thread_num();")
        self.line(f"const {I64} count = omp_get_num_threads();")
        self.line(f"const {I64} begin = rows * thread / count;")
        self.line(f"const {I64} end = rows * (thread + 1) / count;")

    def region(self, lines: Sequence[str]) -> str:
        """The pragma of a parallel region: each thread has copies of what is read in it, for a
        compiler loads what it reads through a pointer to others again in each round of a loop.
        """
        read = {*re.findall(r"[A-Za-z_]\w*", "\n".join(lines))}
        own = ["rows", *(f"{named(node.name)}_parts" for node in self.partial)]
        own += ["tile"] * (self.tile is not None)
        copies = [name for name in (*self.given, *own) if name in read]
        return f"        #pragma omp parallel num_threads(used) firstprivate({', '.join(copies)})"

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
            self.array(kind, f"{named(node.name)}_parts", f"threads * {count}", first)

    def totals_added(self) -> None:
        for node in self.partial:
            count = self.product([self.print.size(axis) for axis in node.axes])
            parts, result = f"{named(node.name)}_parts", named(node.name)
            self.line(f"{node.kind}_of_parts({parts}, threads, {count}, {result});")

    def thread(self) -> None:
        for node in self.of.values():
            self.with_numbers(node.value)
        for node in self.partial:
            kind = "double" if node.kind == "sum" else "Real"
            count = self.product([self.print.size(axis) for axis in node.axes])
            part = f"{named(node.name)}_parts + thread * {count}"
            self.line(f"{kind}* __restrict {named(node.name)}_part = {part};")
        blocks = [node for node in self.partial if self.is_added_by_entry(node)]
        for node in blocks:
            count = self.product([self.print.size(axis) for axis in node.axes])
            self.array("Real", f"{named(node.name)}_block", count)
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
                        self.line(
                            f"add_block({named(node.name)}_block_memory, {named(node.name)}_part);"
                        )

    def is_added_by_entry(self, node: Node) -> bool:
        """Whether a reduction over the rows has an entry for each entry of a row, and for nothing
        else: parts of it are added up in the format of the data.
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
