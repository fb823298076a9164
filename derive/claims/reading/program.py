"""Run a backward of several lines symbolically; the result is what its names hold at the end.

Names are bound as in Python, and tensors are written into as in torch (``memory.py``). A line whose
shapes do not fit breaks only the names it assigns.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace

from sympy import Expr, Integer

from derive.claims.reading.blocks import OWN_BLOCK, Named, pieces_of, range_of
from derive.claims.reading.expressions import BINARY, ExpressionReader
from derive.claims.reading.lines import (
    TextLine,
    assigned_in,
    check_annotation,
    written_by,
    written_in,
)
from derive.claims.reading.loops import ADDS, WHOLE, LoopContext
from derive.claims.reading.memory import Cell, Memory, Version, as_if_right, stored_in
from derive.claims.reading.names import TextNames
from derive.claims.reading.operations.dtypes import in_place
from derive.claims.reading.operations.entries import Extremes, same_shape
from derive.claims.reading.operations.functions import plus, subtracted
from derive.claims.reading.parts import EntryIndex, taken
from derive.claims.reading.refusals import Mismatch, Refusal, Unplaced, printable
from derive.claims.reading.source import Source
from derive.claims.reading.stores import Store, stored, stored_in_blocks, stored_in_loop
from derive.claims.reading.unsupported import STATEMENTS
from derive.claims.reading.unwritten import check_written
from derive.claims.reading.values import INT, MASK, NUMBER, Space, TextValue, entries
from derive.claims.reading.views import put_back, viewed
from derive.language.symbols import Tensor, is_number_or_size

ROUNDS = f"write dx += ..., or {WHOLE}"
MOST_PARTS = 16  # targets of one assignment


class TextProgram:
    """Runs the lines of a text symbolically. ``finals`` are the final versions of gradients, where
    known: a line that reads one is given the true gradient, times its factor in ``names.scales``.
    """

    def __init__(
        self,
        source: Source,
        space: Space,
        names: TextNames,
        of: Tensor,
        finals: Mapping[str, Version] | None = None,
    ):
        self.source, self.space, self.names, self.of = source, space, names, of
        self.finals = finals or {}
        space.numpy = source.is_numpy
        self.memory = Memory(source, space, names)
        self.cells, self.bound = self.memory.cells, self.memory.bound
        self.upstream: Expr | None = None
        self.reads_upstream = False
        self.expressions = ExpressionReader(source, space, names, self.lookup, self.write_into)
        self.loops = LoopContext(space)
        self.assigned: dict[str, int] = {}
        self.typed: dict[str, str] = {}  # the text's own spelling of names
        self.written: list[tuple[Version, TextLine]] = []  # every version of every name

    # Names

    def lookup(self, name: str):
        """The text's value of a name; None if it assigned none."""
        own = self.names.ours(name)
        self.reads_upstream |= own in self.names.upstreams
        cell = self.cells.get(own)
        self.loops.check_read(own, cell.loops if cell else ())
        if cell is None:
            self._check_order(own)
            return None
        of = self.names.adjoint(own)
        if cell.broken is not None:
            if of is None:
                raise self._inherited(cell, name)
            return self.names.gradient(of, self.space)
        others = (name for name in self.finals if name != own)
        for other in (own, *others):  # two names may alias: prefer the version that is right
            if self.finals.get(other) == cell.version and self.cells.get(other) is cell:
                return as_if_right(self.names, self.space, self.names.adjoints[other], cell.value)
        return stored_in(cell)

    def _check_order(self, name: str) -> None:
        line = self.assigned.get(name)
        if line is None or name not in self.names.adjoints:
            return
        if name == f"d{self.of.name}" and len(self.assigned) == 1:
            raise Refusal(
                f"{name} is the gradient that is checked", "write it in terms of other values"
            )
        raise Refusal(
            f"{name} is used here but assigned only on line {line}",
            "move that line up; a gradient that no line assigns is taken to be correct",
        )

    def _inherited(self, cell: Cell, name: str) -> Mismatch:
        return Mismatch(
            f"{printable(name)} is misaligned since line {cell.node.lineno}", "fix that line first"
        )

    # Statements

    def run(self, statements: list[ast.stmt]) -> None:
        """Run every statement in order. Raises `Refusal`."""
        self.assigned = assigned_in(statements, self.names, self.of)
        self.last = statements[-1]
        self.run_all(statements)
        for own, cell in self.cells.items() if self.space.unwritten else ():
            if own in self.names.adjoints and isinstance(cell.value, TextValue):
                try:
                    check_written(cell.value.expression)
                except Refusal as error:
                    raise Refusal(
                        f"{own} is only partly written", error.remedy, cell.node
                    ) from None

    def run_all(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self.statement = statement
            self.space.line = statement.lineno
            try:
                RUNNERS.get(type(statement), TextProgram._refuse)(self, statement)
            except Refusal as error:
                error.node = error.node or statement
                raise
            except Mismatch as error:  # the line assigns nothing that could be marked broken
                raise Refusal(error.problem, error.remedy, error.node or statement) from None
            self._note(statement)

    def _note(self, statement: ast.stmt) -> None:
        """Record the new versions of names that this line assigned or wrote into."""
        known = {version for version, _ in self.written}
        for own, cell in self.cells.items():
            is_new = cell.version not in known and not self.space.blocks
            if is_new and isinstance(cell.value, TextValue):
                name = self.typed.get(own, own)
                source = self.source.line_of(statement)
                line = TextLine(name, statement.lineno, source, cell.value.expression)
                self.written.append((cell.version, line))

    def _refuse(self, node: ast.stmt) -> None:
        problem, remedy = STATEMENTS.get(
            type(node), ("this is not supported", "write lines of the form dx = expression")
        )
        raise Refusal(problem, remedy, node)

    def _assign(self, node: ast.Assign | ast.AnnAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if node.value is None:
            raise Refusal("nothing is assigned here", "write dx = expression", node)
        if isinstance(node, ast.AnnAssign):
            check_annotation(node.annotation)
        tuples = [target for target in targets if isinstance(target, (ast.Tuple, ast.List))]
        if not tuples:
            cell = self._evaluated(node.value, node)
            for target in targets:
                self._bind(target, cell, node)
            return
        for target in targets:
            if target not in tuples:
                raise Refusal("a tuple is assigned to a name", "write the names out", target)
            for name, cell in zip(target.elts, self._parts(node, target), strict=True):
                self._bind(name, cell, node)

    def _parts(self, node: ast.Assign, target: ast.Tuple | ast.List) -> list[Cell]:
        count = len(target.elts)
        if isinstance(node.value, (ast.Tuple, ast.List)):
            if len(node.value.elts) == count:
                return [self._evaluated(part, node) for part in node.value.elts]
            found = len(node.value.elts)
        else:
            value = self.expressions.read(node.value)
            if isinstance(value, Extremes):
                value = (value.values, value.indices)
            if isinstance(value, TextValue) and value.kind != NUMBER and value.dims:
                value = _along_first(self.space, value)
            if isinstance(value, tuple) and len(value) == count:
                return [self.memory.new(part, node) for part in value]
            found = len(value) if isinstance(value, tuple) else 1
        raise Refusal(f"{count} names, but {found} values", "write one name for each value", target)

    def _evaluated(self, node: ast.AST, statement: ast.stmt) -> Cell:
        """The cell that an expression yields: a new one, or one already bound."""
        if isinstance(node, ast.Name):
            cell = self.cells.get(self.names.ours(node.id))
            if cell is not None and not is_number(cell.value):
                return cell
        try:
            return self.memory.new(self.expressions.read(node), statement)
        except Mismatch as error:
            return self.memory.new(None, statement, self.memory.misaligned(error))

    def _bind(self, target: ast.AST, cell: Cell, node: ast.stmt) -> None:
        if isinstance(target, ast.Subscript):
            self.store(target, node, lambda: _readable(cell))
            return
        if not isinstance(target, ast.Name):
            remedy = "the gradient of x is called dx"
            raise Refusal("the left side of = must be a name", remedy, target)
        own = self.names.ours(target.id)
        if own in self.names.upstreams:
            self._assign_upstream(own, cell, target)
        if own in self.names.adjoints and not isinstance(cell.value, TextValue) and not cell.broken:
            raise Refusal(f"{own} is a tensor, but this is not", "assign an expression", node)
        if self.loops.axes:
            before = self.cells.get(own)
            if before is not None and self.loops.outside(before.loops):
                raise Refusal(f"{own} changes in every iteration of the loop", WHOLE, node)
            if self.loops.guards and before is not None:
                raise Refusal("this is assigned only in some iterations of the loop", WHOLE, node)
        self.cells[own] = cell
        self.bound[own] = node
        self.typed[own] = target.id

    def _assign_upstream(self, own: str, cell: Cell, target: ast.Name) -> None:
        value, several = cell.value, len(self.names.upstreams) > 1
        is_number = isinstance(value, TextValue) and is_number_or_size(value.expression)
        if several or not is_number:
            raise Refusal(
                f"{own} is the upstream gradient: it is given, not computed",
                "leave the line out" if several else "leave the line out, or assign a number",
                target,
            )
        self.upstream = value.expression

    def _expression(self, node: ast.Expr | ast.Return) -> None:
        """An expression statement: the formula itself if last, otherwise an in-place write."""
        value = node.value
        if value is None or (isinstance(value, ast.Constant) and isinstance(value.value, str)):
            return
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        if all(isinstance(p, ast.Name) and self._is_claimed(p.id) for p in parts):
            return
        if isinstance(value, ast.Tuple):
            raise Refusal("several values, not all of which are gradients", "name them: dx = ...")
        if self._appends(value):
            return
        if written_by(value) is not None:
            self.run_method(value)
            return
        if isinstance(value, ast.Compare) and isinstance(value.left, ast.Name):
            raise Refusal("== compares", f"to assign a gradient: {value.left.id} = ...", value)
        if node is not self.last:
            raise Refusal("the value of this line is unused", "assign it to a name", value)
        own = f"d{self.of.name}"
        self.cells[own] = self._evaluated(value, node)
        self.bound[own] = node
        if not isinstance(self.cells[own].value, TextValue) and not self.cells[own].broken:
            raise Refusal("this is not a tensor", "write one expression", value)

    def _appends(self, node: ast.expr) -> bool:
        """Handle ``parts.append(x)`` on a list the text created."""
        func = node.func if isinstance(node, ast.Call) and len(node.args) == 1 else None
        if not isinstance(func, ast.Attribute) or func.attr != "append" or node.keywords:
            return False
        name = func.value.id if isinstance(func.value, ast.Name) else ""
        cell = self.cells.get(self.names.ours(name))
        if cell is None or not isinstance(cell.value, tuple):
            return False
        value = self.expressions.value(node.args[0])
        if not self.loops.outside(cell.loops):
            cell.value = (*cell.value, value)
        elif cell.value or self.loops.guards or not self.space.blocks:
            raise Refusal("a list that this loop fills", WHOLE, node)
        else:
            cell.value = pieces_of(self.space, value)
        cell.writes += 1
        return True

    def _is_claimed(self, name: str) -> bool:
        own = self.names.ours(name)
        return own in self.cells and own in self.names.adjoints

    # Loops, branches and writes

    def loop(self, node: ast.For) -> None:
        if node.orelse or not isinstance(node.target, ast.Name):
            raise Refusal(*STATEMENTS[ast.For], node)
        names = {self.names.ours(name) for name in written_in(node.body)}
        ends = range_of(node)
        if ends is None:
            place = self.loops.enter(self.expressions.read(node.iter), names)
            inside, name, body = place.expression.axes, node.target.id, node.body
        else:
            named, stop = self._blocks(node, ends)
            body, name = named.lines(node.body), named.block
            place = self.loops.enter_blocks(stop, names)
            inside = place.axes
        self.memory.cells[self.names.ours(name)] = self.memory.new(place, node)
        guards = len(self.loops.guards)
        self.run_all(body)
        del self.loops.guards[guards:]
        self.loops.leave()
        for name in [n for n, cell in self.memory.cells.items() if {*inside} & {*cell.loops}]:
            del self.memory.cells[name]  # left over from the last round

    def _blocks(self, node: ast.For, ends: list[ast.expr]) -> tuple[Named, TextValue]:
        """The names in a loop over ``range(0, N, C)``, and N."""
        start, stop, step = map(self.expressions.value, ends)
        sizes = all(v.kind == NUMBER and v.dtype == INT for v in (start, stop, step))
        if not sizes or start.expression != 0 or not step.expression.is_positive:
            raise Refusal("blocks begin at 0, and are as long as the step", OWN_BLOCK, node.iter)

        def means(known: TextValue) -> Callable[[ast.expr], bool]:
            def is_it(part: ast.expr) -> bool:
                try:
                    found = self.expressions.read(part)
                except Unplaced:
                    return False
                return isinstance(found, TextValue) and found.expression == known.expression

            return is_it

        return Named(node.target.id, means(step), means(stop)), stop

    def branch(self, node: ast.If) -> None:
        """Run both branches of an ``if`` in a loop, each guarded by its condition."""
        test = self.expressions.value(node.test) if self.loops.axes else None
        if test is None or test.kind != MASK or test.dims:
            raise Refusal(*STATEMENTS[ast.If], node)
        guards = self.loops.guards
        for condition, lines in ((test.expression, node.body), (1 - test.expression, node.orelse)):
            skips = isinstance(lines[-1], ast.Continue) if lines else False
            guards.append(condition)
            self.run_all(lines[:-1] if skips else lines)
            guards.pop()
            if skips:  # the rest runs only if this branch is not taken
                guards.append(1 - condition)
                if lines is node.body:
                    self.run_all(node.orelse)
                return

    def augment(self, node: ast.AugAssign) -> None:
        operate = BINARY.get(type(node.op))
        if operate is None:
            raise Refusal("this operator is not supported", "write dx += expression", node)

        def combined(before: TextValue) -> TextValue:
            return in_place(before, operate(self.space, before, self.expressions.value(node.value)))

        def with_all_rounds(before: TextValue) -> TextValue:
            more = self._added(cell, operate, self.expressions.value(node.value))
            return in_place(before, operate(self.space, before, more))

        if isinstance(node.target, ast.Subscript):
            self.store(
                node.target, node, lambda: self.expressions.value(node.value), operate, combined
            )
            return
        if not isinstance(node.target, ast.Name):
            raise Refusal(
                "the left side of += must be a name", "the gradient of x is called dx", node.target
            )
        cell = self.memory.own_cell(node.target)
        if is_number(cell.value) and not cell.broken:
            more = self._added(cell, operate, self.expressions.value(node.value))
            new = operate(self.space, cell.value, more)
            made = replace(self.memory.new(new, node), loops=cell.loops)
            self.memory.cells[self.names.ours(node.target.id)] = made
            self.memory.bound[self.names.ours(node.target.id)] = node
        else:
            self.memory.write(cell, node.target, node, with_all_rounds)

    def _added(self, cell: Cell, operate: Callable, value: TextValue) -> TextValue:
        """The total that all rounds of the enclosing loops add to a tensor."""
        if not self.loops.guards and not self.loops.outside(cell.loops):
            return value
        if operate not in (plus, subtracted):
            raise Refusal("every iteration of the loop changes what the others wrote", WHOLE)
        if self.loops.outside(cell.loops):
            self.loops.note(cell.serial, ADDS)
        return self.loops.total(value, cell.loops)

    def store(
        self,
        target: ast.Subscript,
        node: ast.stmt,
        value: Callable[[], TextValue],
        operate: Callable | None = None,
        combined: Callable | None = None,
    ) -> None:
        """``x[index] = value``, or ``x[index] += value`` with an operator."""
        if not isinstance(target.value, ast.Name):
            part = self.expressions.value(target.value)
            how = Store(operate, combined)
            self.write_into(
                target.value, part, stored(self.expressions, target.slice, part, value, how)
            )
            return
        cell = self.memory.own_cell(target.value)

        def change(x: TextValue) -> TextValue:
            if self.space.blocks and self.loops.outside(cell.loops):
                return stored_in_blocks(
                    self.expressions, self.loops, target.slice, x, value(), operate, cell
                )
            if self.loops.axes and not self.space.blocks:
                return stored_in_loop(
                    self.expressions, self.loops, target.slice, x, value(), operate, cell
                )
            return stored(self.expressions, target.slice, x, value, Store(operate, combined))

        self.memory.write(cell, target, node, change)

    def write_into(self, target: ast.expr, x: TextValue, new: TextValue) -> TextValue:
        """``x.add_(y)`` into a named tensor or a temporary; a write into a view reaches
        its base.
        """
        if not isinstance(new, TextValue):
            raise Refusal(
                "this does not write into a tensor", "write dx.add_(...), dx.mul_(...)", target
            )
        new = entries(in_place(x, new), x.dtype)
        same_shape(self.space, x, new, "an in-place write cannot change the shape")
        if x.storage is None:
            return new
        name = viewed(target)
        cell = self.memory.own_cell(name)
        if self.loops.guards or self.loops.outside(cell.loops):
            raise Refusal("an in-place method in a loop is not supported here", ROUNDS, target)
        self.memory.write(
            cell,
            name,
            self.statement,
            lambda before: put_back(self.expressions, target, new, before),
        )
        return replace(new, storage=cell)

    def run_method(self, call: ast.Call) -> None:
        try:
            self.expressions.read(call)
        except Mismatch as error:
            cell = self.memory.own_cell(viewed(written_by(call)))
            cell.broken, cell.node = self.memory.misaligned(error), self.statement


def _along_first(space: Space, x: TextValue) -> TextValue | tuple[TextValue, ...]:
    """Unpack a tensor along its first dimension, if its length is known."""
    count = space.fixed_size(x.dims[0])
    if count is None or count > MOST_PARTS:
        return x
    return tuple(taken(space, x, [EntryIndex(Integer(k))]) for k in range(count))


def _readable(cell: Cell) -> TextValue:
    if cell.broken is not None:
        raise Mismatch(cell.broken.problem, cell.broken.remedy)
    if not isinstance(cell.value, TextValue):
        raise Refusal("this is neither a tensor nor a number", "write one expression")
    return cell.value


def is_number(value) -> bool:
    return not isinstance(value, TextValue) or value.kind == NUMBER


RUNNERS: Mapping[type, Callable] = {
    ast.Assign: TextProgram._assign,
    ast.AnnAssign: TextProgram._assign,
    ast.AugAssign: TextProgram.augment,
    ast.Expr: TextProgram._expression,
    ast.Return: TextProgram._expression,
    ast.For: TextProgram.loop,
    ast.If: TextProgram.branch,
}
