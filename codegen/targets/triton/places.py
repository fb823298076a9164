"""Where things lie in a kernel, and what is computed of them: indices, masks, loads and values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from codegen.schedule.elements import ZERO, Axes, Element, index, is_number
from codegen.schedule.nodes import Node
from codegen.schedule.plan import Sweep
from codegen.targets.tables.names import short
from codegen.targets.triton.expressions import Expressions, is_known_before, named
from codegen.targets.triton.names import Names
from codegen.targets.triton.scopes import Scopes
from codegen.targets.triton.shape import Shape
from codegen.targets.triton.values import Values, own

REDUCED = {"sum": "total", "max": "largest"}  # functions that reduce a block along an axis


class Places(Expressions):
    """Writes values of a sweep. ``memory`` are the axes of every array; ``numbers`` are those that
    are known before the kernel is called, by their names.
    """

    def __init__(
        self,
        sweep: Sweep,
        shape: Shape,
        names: Names,
        memory: Mapping[str, Axes],
        values: Values,
        numbers: dict[Element, str],
    ):
        super().__init__(names)
        self.sweep, self.shape, self.memory = sweep, shape, memory
        self.values, self.scopes = values, Scopes(names)
        self.numbers = numbers
        names.taken |= {*numbers.values()}
        self.moving: set[str] = set()  # maxima that are not known yet
        self.alone = 0  # how much of what is read once has a line of its own

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
        """The variable of the rows that are computed at once, or of the one row."""
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
        block, first = shape.block(axis), ""
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
        """The place along one of the axes that the grid keeps apart."""
        kept, text = self.shape.kept, "tl.program_id(0).to(tl.int64)"
        if after := kept[kept.index(axis) + 1 :]:
            text = f"{text} // ({self.names.product(after)})"
        return f"{text} % {self.size(axis)}" if axis != kept[0] else text

    def mask(self, axes: Iterable[str]) -> str:
        """Whether the entries lie inside of these axes."""
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
        """How far an entry is from the first one of its array."""
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
        """The variable that a value has, if it has one."""
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
        """Whether what is read once has a line of its own: reductions do first, then what nodes
        compute, then the others, but for what has the name of a node that goes on with it.
        """
        if e not in self.values.inlined:
            return self.alone > (not self.values.nodes[e.name].kind)
        name = self.names.of(self.values.inlined[e])
        return self.alone > 2 and name not in map(self.names.of, self.values.nodes)

    def value(self, e: Element) -> str:
        """What is computed for a variable."""
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
        """What is chosen by a label is NaN where that is out of range: no kernel can raise."""
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


def _label_of(test: Element) -> tuple[Element, Element] | None:
    """The index and the label that are compared."""
    if test.kind == "compare" and test.name == "==":
        for place, label in (test.args, test.args[::-1]):
            if place.kind == "index" and label.kind in ("label", "counted"):
                return place, label
    return None


def _is_picked(arg: Element) -> bool:
    """Whether an index is one that a label says, which may be out of range."""
    return arg.kind != "remainder" and any(part.kind == "label" for part in arg.parts())


def factor(text: str) -> str:
    """A text as the first factor."""
    depth = 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign in "+-" and not depth:
            return f"({text})"
    return text
