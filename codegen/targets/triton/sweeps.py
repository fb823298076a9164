"""One sweep of a plan as the body of a Triton kernel.

All of a row lies in registers, where the loops over it need no text; or programs walk along rows
that are too long for that, and each pass is a loop over chunks. What is added up over rows is added
entry by entry, by programs that each walk over some of them, and reduced when these have ended: the
parts are added by another kernel, in one order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from codegen.schedule.elements import Axes, Element, index
from codegen.schedule.nodes import Node
from codegen.schedule.plan import Nest, Sweep
from codegen.targets.triton.expressions import Expressions, is_known_before, named
from codegen.targets.triton.names import Names
from codegen.targets.triton.scopes import INDENT, WIDTH, Scopes
from codegen.targets.triton.shape import Shape
from codegen.targets.triton.values import Values, own

MOST_ALONE = 2  # reductions have a line of their own before all has one
NONE = {"sum": "0.0", "max": 'float("-inf")'}  # what nothing adds up to


class Sweeps(Expressions):
    """Writes a sweep. ``memory`` are the axes of every array; ``numbers`` are those that are known
    before the kernel is called, by their names; ``open`` are results that may be left out.
    """

    def __init__(
        self,
        sweep: Sweep,
        shape: Shape,
        names: Names,
        memory: Mapping[str, Axes],
        inlined: Mapping[Element, str],
        open: Collection[str],
    ):
        """Long: what a sweep is, and where it stands."""
        super().__init__(names)
        self.sweep, self.shape, self.memory, self.open = sweep, shape, memory, open
        self.values = Values(sweep, inlined)
        self.scopes = Scopes(names)
        self.numbers: dict[Element, str] = {}
        self.sums = [self.values.nodes[name] for name in sweep.partial]
        self.alone = 0  # how much of what is read once has a line of its own

    # -- the kernel -------------------------------------------------------------

    def lines(self) -> list[str]:
        shape, scopes = self.shape, self.scopes
        walked = (shape.rows or (shape.tile,)) if shape.looped else ()
        chunked = shape.inner if shape.chunked else ()
        scopes.scopes[0].axes = frozenset({*shape.rows, *shape.inner} - {*walked, *chunked})
        if not shape.looped:
            self.body()
            return scopes.scopes[0].lines
        for node in self.sums:
            self.begun(node)
        with scopes.loop(self.walk(), walked):
            self.body()
        for node in self.sums:
            self.ended(node)
        return scopes.scopes[0].lines

    def walk(self) -> str:
        """The loop of a program over its share of the rows, or of the entries."""
        block = "ROWS" if self.shape.rows else "BLOCK"
        stop = self.count() if self.shape.rows else self.size(self.shape.tile)
        start = f"tl.program_id(0).to(tl.int64) * {block}"
        return f"for first in range({start}, {stop}, tl.num_programs(0) * {block}):"

    def body(self) -> None:
        if not self.shape.chunked:
            for node in self.sweep.nodes:
                self.settled(node)
            return
        (axis,) = self.shape.inner
        for nest in self.sweep.nests:
            if axis in nest.axes:
                self.chunks(axis, nest)
            else:
                for node in nest.nodes:
                    self.settled(node)

    def chunks(self, axis: str, nest: Nest) -> None:
        """A pass over the row."""
        along = [n for n in nest.nodes if n.kind and n not in self.sums]
        for node in along:
            self.begun(node)
        with self.scopes.loop(f"for start in range(0, {self.size(axis)}, BLOCK):", [axis]):
            for node in nest.nodes:
                if node in along:
                    self.added(node)
                else:
                    self.settled(node)
        for node in along:
            name = self.name(node)
            self.scopes.line(f"{name} = {self.whole(node, name)}")
            self.scopes.scopes[-1].known.add(own(node))

    # -- nodes ------------------------------------------------------------------

    def settled(self, node: Node) -> None:
        """A node is computed if nobody who reads it would do so."""
        if node in self.sums:
            if self.shape.looped:
                self.added(node)
            else:
                self.store(node, self.row_place(node), self.reduced(node), self.part_axes(node))
        elif node.name in self.sweep.stored:
            self.store(node, self.place(node.name, own(node).args), None, node.axes)

    def begun(self, node: Node) -> None:
        """What is added up entry by entry begins as nothing."""
        shape = self.shape
        lengths = ["ROWS" if {*node.space} & {*shape.rows} else "1"] * bool(shape.rows)
        lengths += [shape.block(a) if a in node.space else "1" for a in shape.inner]
        none = f"tl.zeros([{', '.join(lengths)}], REAL)"
        if node.kind != "sum":
            none = f"tl.full([{', '.join(lengths)}], {NONE[node.kind]}, REAL)"
        self.scopes.line(f"{self.name(node)} = {none}")

    def added(self, node: Node) -> None:
        name, value = self.name(node), self.values.of[node.name]

        def text() -> str:
            now = f"tl.where({self.mask(node.space)}, {self.text(value)}, {NONE[node.kind]})"
            return f"{name} += {now}" if node.kind == "sum" else f"{name} = larger({name}, {now})"

        self.fitting(text)

    def ended(self, node: Node) -> None:
        """Of what a program has added up over its rows, one part is stored."""
        name = self.name(node)
        dims = [self.shape.dim(a) for a in node.along]
        total = self.whole(node, name, sorted({*dims}) if node.axes else None)
        place = "tl.program_id(0)"
        tile = self.shape.tile
        if tile and self.shape.rows and tile not in node.axes:
            place += " * tl.num_programs(1) + tl.program_id(1)"
        elif node.axes:
            place = "tl.program_id(0).to(tl.int64)"
        for axis in node.axes:
            place = f"{_factor(place)} * {self.size(axis)} + {self.text(index(axis))}"
        self.store(node, place, total, node.axes)

    def whole(self, node: Node, name: str, dims: Sequence[int] | None = None) -> str:
        """A value that was added up entry by entry, reduced along its dimensions."""
        if dims is None and (node in self.sums or not node.axes):
            return f"tl.sum({name})" if node.kind == "sum" else f"largest({name}, True)"
        for dim in dims or [self.shape.dim(a) for a in node.along]:
            of_sum = f"tl.sum({name}, axis={dim}, keep_dims=True)"
            name = of_sum if node.kind == "sum" else f"largest({name}, True, {dim})"
        return name

    def reduced(self, node: Node) -> str:
        """A reduction along a row that lies in registers."""
        function = {"sum": "total", "max": "largest"}[node.kind]
        dims = [self.shape.dim(a) for a in node.along if a in self.shape.inner]
        value, mask = self.values.of[node.name], self.mask(node.space)
        text = self.text(value)
        if not node.axes and not self.shape.rows:
            return f"{function}({text}, {mask})"
        for dim in reversed(dims):
            text, mask = f"{function}({text}, {mask}, {dim})", self.mask(node.axes) or "True"
        return text

    # -- where things lie ---------------------------------------------------------

    def place(self, name: str, args: Sequence[Element]) -> str:
        """How far an entry is from the first one of its array."""
        axes, rows = self.memory[name], self.shape.rows
        found, args = "", [*args]
        if len(rows) > 1 and axes[: len(rows)] == rows and args[: len(rows)] == [*map(index, rows)]:
            found, axes, args = self.row(), axes[len(rows) :], args[len(rows) :]
        for axis, arg in zip(axes, args, strict=True):
            sizes = f"{_factor(found)} * {self.size(axis)} + " if found else ""
            found = f"{sizes}{self.text(arg, self.LEVELS['add'])}"
        return found

    def row_place(self, node: Node) -> str:
        """Where the part of a row lies of what is added up over rows."""
        found, tile = self.row(), self.shape.tile
        if tile and tile not in node.axes:
            found = f"{found} * tl.num_programs(1) + tl.program_id(1)"
        for axis in node.axes:
            if axis not in self.shape.rows:
                found = f"{_factor(found)} * {self.size(axis)} + {self.text(index(axis))}"
        return found

    def part_axes(self, node: Node) -> Axes:
        return (*self.shape.rows, *(a for a in node.axes if a in self.shape.inner))

    def store(self, node: Node, place: str, value: str | None, axes: Iterable[str]) -> None:
        """A line for what is ``value``, or what the node computes."""
        pointer, mask = f"{named(node.name)}_ptr", self.mask(axes)
        where = f"{pointer} + {place}" if place else pointer
        masked = f", mask={mask}" if mask else ""

        def text() -> str:
            made = value if value is not None else self.text(own(node))
            line = f"tl.store({where}, {made}{masked})"
            return f"if {pointer} is not None:\n{INDENT}{line}" if node.name in self.open else line

        self.fitting(text)

    def fitting(self, text: Callable[[], str]) -> None:
        """A line; what is read once has none of its own if that leaves it short enough."""
        scopes, names = self.scopes, self.names
        for self.alone in range(MOST_ALONE + 1):
            before = [(scope, [*scope.lines], {*scope.known}) for scope in scopes.scopes]
            called, taken = dict(scopes.called), {*names.taken}
            line = text()
            longest = max(map(len, line.split("\n")))
            if len(INDENT * len(scopes.scopes)) + longest <= WIDTH or self.alone == MOST_ALONE:
                break
            scopes.called, names.taken = called, taken
            for scope, scope.lines, scope.known in before:
                pass
        self.alone = 0
        scopes.line(line)

    # -- indices and masks ----------------------------------------------------------

    def count(self) -> str:
        """How many rows there are."""
        return self.size(self.shape.rows[0]) if len(self.shape.rows) == 1 else "rows"

    def spread(self, text: str, dim: int) -> str:
        if self.shape.rank == 1:
            return text
        places = [":" if d == dim else "None" for d in range(self.shape.rank)]
        return f"{text}[{', '.join(places)}]"

    def row(self) -> str:
        """The variable of the rows that are computed at once."""
        shape = self.shape
        name = self.names.index(shape.rows[0]) if len(shape.rows) == 1 else "row"
        first = "first" if shape.looped else "tl.program_id(0).to(tl.int64) * ROWS"
        at = f"{first} + {self.spread('tl.arange(0, ROWS)', 0)}"
        return self.scopes.variable(name, name, shape.rows, lambda: at)

    def _index(self, e: Element) -> str:
        axis, shape = e.name, self.shape
        if shape.rows == (axis,):
            return self.row()
        name = self.names.index(axis)
        if axis in shape.rows:
            return self.scopes.variable(name, name, shape.rows, lambda: self.part_of_row(axis))
        block, first = shape.block(axis), ""
        if axis == shape.tile:
            walked = shape.looped and not shape.rows
            program = f"tl.program_id({int(bool(shape.rows))}).to(tl.int64)"
            first = "first + " if walked else f"{program} * {block} + "
        elif shape.chunked:
            first = "start + "
        at = first + self.spread(f"tl.arange(0, {block})", shape.dim(axis))
        return self.scopes.variable(name, name, [axis], lambda: at)

    def part_of_row(self, axis: str) -> str:
        rows = self.shape.rows
        place, sizes = rows.index(axis), [self.size(a) for a in rows[rows.index(axis) + 1 :]]
        text = self.row()
        if sizes:
            text = f"{text} // {sizes[0] if len(sizes) == 1 else '(' + ' * '.join(sizes) + ')'}"
        return f"{text} % {self.size(axis)}" if place else text

    def mask(self, axes: Iterable[str]) -> str:
        """Whether the entries lie inside of these axes."""
        shape, tests = self.shape, []
        if {*axes} & {*shape.rows}:
            tests.append(f"{self.row()} < {self.count()}")
        for axis in (a for a in shape.inner if a in axes):
            tests.append(f"{self.text(index(axis))} < {self.size(axis)}")
        if len(tests) < 2:
            return "".join(tests)
        text = " & ".join(f"({test})" for test in tests)
        if len(tests) < shape.rank:
            return text
        return self.scopes.variable("inside", "inside", [*shape.rows, *shape.inner], lambda: text)

    # -- values -------------------------------------------------------------------

    def name(self, node: Node) -> str:
        return self.scopes.named(own(node), named(node.name))

    def text(self, e: Element, level: int = 0) -> str:
        return self.known(e, level) or super().text(e, level)

    def known(self, e: Element, level: int = 0) -> str:
        """The variable that a value has, if it has one."""
        if is_known_before(e):
            return self.number(e)
        values, scopes = self.values, self.scopes
        if e.kind in ("entry", "label", "guard") and not values.is_own(e):
            return self.loaded(e)
        if e not in values.inlined and not values.is_own(e):
            return ""
        axes = values.axes([e])
        reduced = values.is_own(e) and bool(values.nodes[e.name].kind)
        several = values.uses[e] > 1 or self.alone > (not reduced) or self.level_of(e) < level
        if several or scopes.has(e) or scopes.depth(axes) < len(scopes.scopes):
            name = named(values.inlined.get(e, e.name))
            return scopes.variable(e, name, axes, lambda: self.value(e))
        return ""

    def value(self, e: Element) -> str:
        """What is computed for a variable."""
        if not self.values.is_own(e):
            return super().text(e)
        node = self.values.nodes[e.name]
        return self.reduced(node) if node.kind else self.text(self.values.of[node.name])

    def _entry(self, e: Element) -> str:
        """One of the sweep, which is read once."""
        return self.value(e)

    def level_of(self, e: Element) -> int:
        if self.values.is_own(e) and not self.values.nodes[e.name].kind:
            return super().level_of(self.values.of[e.name])
        return super().level_of(e)

    def number(self, e: Element) -> str:
        if e.kind == "scalar":
            return named(e.name)
        if e not in self.numbers:
            self.numbers[e] = self.named(e, "number")
        return self.numbers[e]

    def loaded(self, e: Element) -> str:
        test, entry = e.args if e.kind == "guard" else (None, e)
        places = zip(self.memory[entry.name], entry.args, strict=True)
        picked = [(axis, arg) for axis, arg in places if _is_picked(arg)]
        axes = self.values.axes(entry.args)
        labels = [part.name for _, arg in picked for part in arg.entries]
        name = "_at_".join([named(entry.name), *labels])

        def text() -> str:
            place = self.place(entry.name, entry.args)
            masks = [self.mask(axes), *([self.text(test, self.LEVELS["and"])] if test else [])]
            masks = [mask for mask in masks if mask]
            mask = masks[0] if len(masks) == 1 else " & ".join(f"({m})" for m in masks)
            where = f"{named(entry.name)}_ptr" + (f" + {place}" if place else "")
            given = ", ".join([where, *([mask or "True"] if mask or picked else [])])
            if picked:
                tests = [f"within({self.text(a)}, {self.size(x)})" for x, a in picked]
                return f"picked({given}, {' & '.join(tests)})"
            return f"load({given})"

        every = axes | (self.values.axes([test]) if test else frozenset())
        return self.scopes.variable(e, name, every, text)


def _is_picked(arg: Element) -> bool:
    """Whether an index is one that a label says, which may be out of range."""
    return arg.kind != "remainder" and any(part.kind == "label" for part in arg.parts())


def _factor(text: str) -> str:
    """A text as a factor."""
    depth = 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign == " " and not depth:
            return f"({text})"
    return text
