"""Run a backward of several lines symbolically; the result is what its names hold at the end.

Names are bound as in Python, and tensors are written into as in torch (``memory.py``). A line whose
shapes do not fit breaks only the names it assigns.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from sympy import Expr, Integer

from derive.claims.reading.blocks import pieces_of
from derive.claims.reading.expressions import ExpressionReader
from derive.claims.reading.lines import TextLine, assigned_in, check_annotation, written_by
from derive.claims.reading.loops import WHOLE, LoopContext
from derive.claims.reading.memory import Cell, Memory, Version, as_if_right, stored_in
from derive.claims.reading.names import TextNames
from derive.claims.reading.operations.entries import Extremes
from derive.claims.reading.parts import EntryIndex, taken
from derive.claims.reading.refusals import Mismatch, Refusal, printable
from derive.claims.reading.source import Source
from derive.claims.reading.unsupported import STATEMENTS
from derive.claims.reading.unwritten import check_written
from derive.claims.reading.values import NUMBER, Space, TextValue
from derive.claims.reading.writes import Writes, is_number
from derive.language.symbols import Tensor, is_number_or_size

MOST_PARTS = 16  # targets of one assignment


class TextProgram(Writes):
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


RUNNERS: Mapping[type, Callable] = {
    ast.Assign: TextProgram._assign,
    ast.AnnAssign: TextProgram._assign,
    ast.AugAssign: TextProgram.augment,
    ast.Expr: TextProgram._expression,
    ast.Return: TextProgram._expression,
    ast.For: TextProgram.loop,
    ast.If: TextProgram.branch,
}
