"""Statements that write into a tensor, and the loops and branches around them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from derive.claims.reading.blocks import OWN_BLOCK, Named, range_of
from derive.claims.reading.expressions import BINARY, ExpressionReader
from derive.claims.reading.lines import written_by, written_in
from derive.claims.reading.loops import ADDS, WHOLE, LoopContext
from derive.claims.reading.memory import Cell, Memory
from derive.claims.reading.names import TextNames
from derive.claims.reading.operations.dtypes import in_place
from derive.claims.reading.operations.entries import same_shape
from derive.claims.reading.operations.functions import plus, subtracted
from derive.claims.reading.refusals import Mismatch, Refusal, Unplaced
from derive.claims.reading.stores import Store, stored, stored_in_blocks, stored_in_loop
from derive.claims.reading.unsupported import STATEMENTS
from derive.claims.reading.values import INT, MASK, NUMBER, Space, TextValue, entries
from derive.claims.reading.views import put_back, viewed

ROUNDS = f"write dx += ..., or {WHOLE}"


class Writes:
    """The part of a `Program` that runs such statements; ``run_all`` runs nested ones."""

    space: Space
    names: TextNames
    memory: Memory
    loops: LoopContext
    expressions: ExpressionReader
    statement: ast.stmt

    def run_all(self, statements: list[ast.stmt]) -> None:
        raise NotImplementedError

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


def is_number(value) -> bool:
    return not isinstance(value, TextValue) or value.kind == NUMBER
