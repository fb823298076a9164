"""One sweep of a plan as the body of a Triton kernel.

A row lies in registers, where the loops over it need no text; or programs walk along rows that are
too long for that, and each pass is a loop over chunks. Sums over rows are accumulated entry by
entry, by programs that each walk over some of them, and reduced when these have ended: the parts
are added by another kernel, in one order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from codegen.schedule.elements import ZERO, Axes, Element, index, is_number
from codegen.schedule.merging import short
from codegen.schedule.nodes import Node, own
from codegen.schedule.plan import Nest, Sweep
from codegen.schedule.shape import Shape
from codegen.targets.triton.expressions import TritonExpressions, is_known_before, named
from codegen.targets.triton.names import TritonNames, block_of
from codegen.targets.triton.scopes import INDENT, Scopes
from codegen.targets.triton.values import Values

REDUCED = {"sum": "total", "max": "largest"}  # functions that reduce a block along an axis
MOST_ALONE = 3  # see `Sweeps.apart`
NONE = {"sum": "0.0", "max": 'float("-inf")'}  # the neutral elements


class Sweeps(TritonExpressions):
    """Writes a sweep. ``memory`` are the axes of every array; ``numbers`` are those computed before
    the launch, by their names; ``open`` are results that may be left out.
    """

    def __init__(
        self,
        sweep: Sweep,
        shape: Shape,
        names: TritonNames,
        memory: Mapping[str, Axes],
        values: Values,
        numbers: dict[Element, str],
        open: Collection[str],
    ):
        """Long: a sweep, and all that there is around it."""
        super().__init__(names)
        self.sweep, self.shape, self.memory = sweep, shape, memory
        self.values, self.scopes = values, Scopes(names)
        self.numbers = numbers
        names.taken |= {*numbers.values()}
        self.moving: set[str] = set()  # maxima that are not known yet
        self.alone = 0  # how many values that are read once get lines
        self.open = open
        self.sums = [values.nodes[name] for name in sweep.partial]

    # -- indices and masks ----------------------------------------------------------

    def count(self) -> str:
        """The number of rows."""
        return self.size(self.shape.rows[0]) if len(self.shape.rows) == 1 else "rows"

    def spread(self, text: str, dim: int) -> str:
        if self.shape.rank == 1:
            return text
        places = [":" if d == dim else "None" for d in range(self.shape.rank)]
        return f"{text}[{', '.join(places)}]"

    def row(self) -> str:
        """The variable of the rows that are computed at once, or of the single row."""
        shape, name = self.shape, self.row_name()
        if shape.several:
            first = "start" if shape.looped else "tl.program_id(0).to(tl.int64) * ROWS"
            at = f"{first} + {self.spread('tl.arange(0, ROWS)', 0)}"
        elif shape.looped:
            return name
        else:
            at = "tl.program_id(0).to(tl.int64)"
        return self.scopes.variable(name, name, shape.rows, lambda: at)

    def row_name(self) -> str:
        rows = self.shape.rows
        return self.names.index(rows[0]) if len(rows) == 1 else "row"

    def _index(self, e: Element) -> str:
        axis, shape = e.name, self.shape
        if shape.rows == (axis,):
            return self.row()
        name = self.names.index(axis)
        if axis in shape.kept:
            return self.scopes.variable(name, name, [axis], lambda: self.part_of_kept(axis))
        if axis in shape.rows:
            return self.scopes.variable(name, name, shape.rows, lambda: self.part_of_row(axis))
        block, first = block_of(shape, axis), ""
        if axis == shape.tile:
            walked = shape.looped and not shape.rows
            program = f"tl.program_id({int(bool(shape.rows))}).to(tl.int64)"
            first = "start + " if walked else f"{program} * {block} + "
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

    def part_of_kept(self, axis: str) -> str:
        """The index along one of the axes that the grid keeps apart."""
        kept, text = self.shape.kept, "tl.program_id(0).to(tl.int64)"
        if after := kept[kept.index(axis) + 1 :]:
            text = f"{text} // ({self.names.product(after)})"
        return f"{text} % {self.size(axis)}" if axis != kept[0] else text

    def mask(self, axes: Iterable[str]) -> str:
        """A mask of the entries that lie inside these axes."""
        shape, tests = self.shape, []
        tested = [a for a in shape.inner if a in axes]
        for axis in tested:
            tests.append(f"{self.text(index(axis))} < {self.size(axis)}")
        if shape.several and {*axes} & {*shape.rows}:
            tests.insert(0, f"{self.row()} < {self.count()}")
            tested = [*shape.rows, *tested]
        if len(tests) < 2:
            return "".join(tests)
        text = " & ".join(f"({test})" for test in tests)
        name = "inside" if len(tests) == shape.rank else "inside_" + "".join(map(short, tested))
        return self.scopes.variable(("inside", *tested), name, tested, lambda: text)

    def place(self, name: str, args: Sequence[Element]) -> str:
        """The offset of an entry from the first of its array."""
        axes, rows = self.memory[name], self.shape.rows
        found, args = "", [*args]
        if len(rows) > 1 and axes[: len(rows)] == rows and args[: len(rows)] == [*map(index, rows)]:
            found, axes, args = self.row(), axes[len(rows) :], args[len(rows) :]
        for axis, arg in zip(axes, args, strict=True):
            rows = f"{factor(found)} * {self.size(axis)}".removeprefix("1 * ") if found else ""
            at = self.text(arg, self.LEVELS["add"])
            found = " + ".join(part for part in (rows, at) if part not in ("", "0"))
        return found

    # -- values -------------------------------------------------------------------

    def name(self, node: Node) -> str:
        return self.scopes.named(own(node), self.names.of(node.name))

    def text(self, e: Element, level: int = 0) -> str:
        return self.known(e, level) or super().text(e, level)

    def known(self, e: Element, level: int = 0) -> str:
        """The variable of a value, if it has one."""
        if is_known_before(e):
            return self.number(e)
        values, scopes = self.values, self.scopes
        if e.kind in ("entry", "label", "guard") and not values.is_own(e):
            return self.loaded(e)
        if e not in values.inlined and not values.is_own(e):
            return ""
        axes = values.axes([e])
        if self.moving and values.reads(e, self.moving):
            axes |= {*self.shape.inner}
        several = values.uses[e] > 1 or self.apart(e) or self.level_of(e) < level
        if several or scopes.has(e) or scopes.depth(axes) < len(scopes.scopes):
            name = self.names.of(values.inlined.get(e, e.name))
            return scopes.variable(e, name, axes, lambda: self.value(e))
        return ""

    def apart(self, e: Element) -> bool:
        """True if a value that is read once has a line of its own: reductions first, then values of
        nodes, then others, except those with the name of a node that goes on with them.
        """
        if e not in self.values.inlined:
            return self.alone > (not self.values.nodes[e.name].kind)
        name = self.names.of(self.values.inlined[e])
        return self.alone > 2 and name not in map(self.names.of, self.values.nodes)

    def value(self, e: Element) -> str:
        """The text assigned to a variable."""
        if not self.values.is_own(e):
            return super().text(e)
        node = self.values.nodes[e.name]
        return self.reduced(node) if node.kind else self.text(self.values.of[node.name])

    def reduced(self, node: Node) -> str:
        """A reduction along a row that lies in registers."""
        function = REDUCED[node.kind]
        dims = [self.shape.dim(a) for a in node.along if a in self.shape.inner]
        value, mask = self.values.of[node.name], self.mask(node.space)
        text = self.text(value)
        if not node.axes and not self.shape.rows:
            return f"{function}({text}, {mask})"
        for dim in reversed(dims):
            text = f"{function}({text}, {mask}, {dim})"
            mask = "True" if dim == dims[0] else self.mask(node.axes) or "True"
        return text

    def _choose(self, e: Element) -> str:
        """A choice; one by a label out of range gives NaN, because kernels cannot raise."""
        test, yes, no = e.args
        label = _label_of(test)
        if label is not None and no == ZERO:
            at, own = (self.text(arg) for arg in label)
            return f"placed({self.with_dtype(yes)}, {at}, {own}, {self.size(label[0].name)})"
        if label is not None:
            within = f"within({self.text(label[1])}, {self.size(label[0].name)})"
            return f"known({super()._choose(e)}, {within})"
        if yes.kind == "choose" and yes.args[2] == no and yes not in self.values.inlined:
            tests = (test, yes.args[0])
            if not any(_label_of(each) or is_number(each) for each in tests):
                return self._choose(replace(e, args=(Element("and", tests), yes.args[1], no)))
        return super()._choose(e)

    def _entry(self, e: Element) -> str:
        """An entry of the sweep, which is read once."""
        return self.value(e)

    def level_of(self, e: Element) -> int:
        if self.values.is_own(e) and not self.values.nodes[e.name].kind:
            return super().level_of(self.values.of[e.name])
        return super().level_of(e)

    def number(self, e: Element) -> str:
        if e.kind == "scalar":
            return named(e.name)
        if e not in self.numbers:
            taken = {*self.names.taken}
            self.names.taken |= {*map(named, self.memory)}  # beside which it stands in the table
            self.numbers[e] = self.named(e, "number")
            self.names.taken = taken | {self.numbers[e]}
        return self.numbers[e]

    def loaded(self, e: Element) -> str:
        test, entry = e.args if e.kind == "guard" else (None, e)
        places = zip(self.memory[entry.name], entry.args, strict=True)
        picked = [(axis, arg) for axis, arg in places if _is_picked(arg)]
        axes = self.values.axes(entry.args)
        labels = [part.name for _, arg in picked for part in arg.entries]
        name = "_at_".join([self.names.of(entry.name), *labels])
        of_parts = next((node for node in self.sweep.parts if node.name == entry.name), None)

        def text() -> str:
            place = self.place(entry.name, entry.args)
            if of_parts:
                mask, size = self.mask(axes) or "True", self.names.product(of_parts.axes) or "1"
                pointer = f"{self.names.of(entry.name)}_ptr"
                count = f"{self.names.of(entry.name)}_count"
                return f"added({pointer}, {place or 0}, {count}, {size}, {mask}, REAL)"
            masks = [self.mask(axes), *([self.text(test)] if test else [])]
            masks = [mask for mask in masks if mask]
            mask = masks[0] if len(masks) == 1 else " & ".join(f"({m})" for m in masks)
            where = f"{self.names.of(entry.name)}_ptr" + (f" + {place}" if place else "")
            tests = [f"within({self.text(a)}, {self.size(x)})" for x, a in picked]
            given = [where, *([" & ".join(tests)] if tests else []), *([mask] if mask else [])]
            return f"{'load_at' if picked else 'load'}({', '.join(given)})"

        every = axes | (self.values.axes([test]) if test else frozenset())
        return self.scopes.variable(e, name, every, text)

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
                self.row()  # before the accumulators
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
        block, stop = "ROWS", self.count()
        if not rows:
            block, stop = block_of(self.shape, tile), self.size(tile)
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
        """Write a pass over the row, in chunks."""
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
        """Reduce an accumulator along a row to a number."""
        self.scopes.line(f"{self.name(node)} = {self.whole(node, text)}")
        self.scopes.scopes[-1].known.add(own(node))
        self.settled(node)

    def followed(self, peak: Node, sums: Sequence[Node]) -> None:
        """Update the largest so far, and rescale the sums that it shifts."""
        name = self.name(peak)
        self.scopes.line(f"before = {name}")
        self.added(peak)
        self.scopes.scopes[-1].known.add(own(peak))
        for node in sums:
            self.scopes.line(f"{self.name(node)} *= rescaled(before, {name})")
            self.added(node)

    # -- nodes ------------------------------------------------------------------

    def settled(self, node: Node) -> None:
        """Compute a node, unless its readers would."""
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
        """Initialize an accumulator that is added to entry by entry."""
        shape = self.shape
        lengths = ["ROWS" if {*node.space} & {*shape.rows} else "1"] * shape.several
        lengths += [
            block_of(shape, a) if a in {*node.space} - {*self.within(node)} else "1"
            for a in shape.inner
        ]
        lengths = [length for length in lengths if length != "1" or not shape.chunked]
        none = f"tl.zeros([{', '.join(lengths)}], REAL)"
        if node.kind != "sum":
            none = f"tl.full([{', '.join(lengths)}], {NONE[node.kind]}, REAL)"
        self.scopes.line(f"{self.name(node)} = {none}")

    def within(self, node: Node) -> Sequence[str]:
        """The axes of a row that each row is reduced along at once: one number is left to add."""
        if self.shape.chunked or not {*node.axes} & {*self.shape.inner}:
            return ()
        return [axis for axis in self.shape.inner if axis in node.along]

    def added(self, node: Node) -> None:
        """Accumulate one more entry."""
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
        """``mask``, and the test for the one program, among those for the tiles of a row, that
        counts values common to all.
        """
        if not self.shape.tile or not self.shape.rows or self.shape.tile in node.space:
            return mask
        first = "tl.program_id(1) == 0"
        return f"({mask}) & ({first})" if mask else first

    def ended(self, node: Node) -> None:
        """Store a program's partial sum over its rows."""
        total = self.whole(node, self.name(node))
        self.store(node, self.part_place(node), total, node.axes)

    def whole(self, node: Node, text: str) -> str:
        """An accumulator, reduced along its dimensions."""
        if self.shape.chunked and not {*node.space} & {*self.shape.inner}:
            return text  # a number of one row after another
        if self.shape.chunked or not {*node.axes} & {*self.shape.inner}:
            return f"tl.sum({text})" if node.kind == "sum" else f"largest({text}, True)"
        for dim in sorted({self.shape.dim(a) for a in node.along if a not in self.within(node)}):
            of_sum = f"tl.sum({text}, axis={dim}, keep_dims=True)"
            text = of_sum if node.kind == "sum" else f"largest({text}, True, {dim})"
        return text

    # -- stores ---------------------------------------------------------------------

    def part_place(self, node: Node) -> str:
        """The offset of a partial sum, of a program or of a row: one part after the other, each
        laid out as the result.
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
        """The test for the one program that stores values common to all rows."""
        shape = self.shape
        if not shape.rows or {*axes} & {*shape.rows}:
            return ""
        program = "program" if shape.looped else "tl.program_id(0)"
        tile = shape.tile and shape.tile not in axes
        return f"({program} == 0)" + " & (tl.program_id(1) == 0)" * bool(tile)

    def store(
        self, node: Node, place: str, value: str | None, axes: Iterable[str], once: str = ""
    ) -> None:
        """Store ``value``, or the node's; ``once`` asks for the one program that stores it."""
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
        """Write a line. If it is too long, values that are read once get lines of their own: as few
        as make it shortest.
        """
        before, tries = self.scopes.state(), []
        for self.alone in range(MOST_ALONE + 1):
            self.scopes.line(text())
            tries.append(self.scopes.state())
            if tries[-1].beyond == before.beyond:
                break
            self.scopes.restore(before)
            self.names.taken |= {*self.numbers.values()}
        self.scopes.restore(min(tries, key=lambda state: state.beyond))
        self.names.taken |= {*self.numbers.values()}
        self.alone = 0


def _label_of(test: Element) -> tuple[Element, Element] | None:
    """The index and the label of a comparison."""
    if test.kind == "compare" and test.name == "==":
        for place, label in (test.args, test.args[::-1]):
            if place.kind == "index" and label.kind in ("label", "counted"):
                return place, label
    return None


def _is_picked(arg: Element) -> bool:
    """True if an index comes from a label, and may be out of range."""
    return arg.kind != "remainder" and any(part.kind == "label" for part in arg.parts())


def factor(text: str) -> str:
    """A text as the first factor, in parentheses if needed."""
    depth = 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign in "+-" and not depth:
            return f"({text})"
    return text
