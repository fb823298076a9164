"""A class body while it runs: each line is checked before it runs, with the current values."""

from __future__ import annotations

import ast
import linecache
import math
from collections.abc import Mapping
from types import FrameType

from sympy import Expr

from derive.language.errors import NotationError, Place
from derive.language.extremes import SYMPYS
from derive.language.float_range import IN_LOGARITHMS
from derive.language.source.class_source import (
    MISSING,
    ClassScope,
    assigned_in,
    class_tree,
    decides_in_python,
    loops_in,
    nodes_in,
    statements_by_line,
    written_out,
)
from derive.language.source.line_reader import COMPREHENSIONS, BodySoFar, LineReader
from derive.language.source.lost_domain import TypedLine
from derive.language.source.python_on_tensors import check_line
from derive.language.source.unknown_names import unknown_name
from derive.language.source.written import NamesWritten, written_in
from derive.language.symbols import Axis, Tensor, ordered


class ClassReading:
    """The lines of a class body that runs in ``frame`` with the names in ``body``.

    Without its source, a class body may not compare or branch, as nothing can be checked.
    """

    def __init__(self, frame: FrameType, body: dict):
        self.code, self.file = frame.f_code, frame.f_code.co_filename
        self.scope = ClassScope(frame, body)
        self.tree = class_tree(self.code, frame.f_globals)
        if self.tree is None and decides_in_python(self.code):
            raise NotationError(
                f"the source of {self.code.co_name} cannot be read, and it compares or branches "
                "in Python, perhaps on a tensor",
                "define it in a file or a notebook",
                Place(self.file, frame.f_lineno),
            )
        self.by_line = {} if self.tree is None else statements_by_line(self.tree)
        self.assigned = assigned_in(self.tree)
        self.loops = loops_in(self.tree)
        inside = frozenset(line for loop in self.loops for line in loop.lines)
        self.body = BodySoFar(self.file, body.tensors, body.statements, self.assigned, inside)
        self.line = 0
        self.read: set[str] = set()  # the names that were looked up

    def reach(self, line: int, tensors: Mapping[str, Tensor]) -> None:
        """Check the statements of ``line`` before its next name is looked up; ``tensors`` are those
        defined so far. Raises `NotationError`.
        """
        statements = self.by_line.get(line, ())
        if line == self.line and len(statements) < 2:
            return
        self.line = line
        named = {axis.name: axis for tensor in tensors.values() for axis in tensor.axes}
        for statement in statements:
            try:
                check_line(statement, self.scope.__getitem__, self.body)
                self._check_names(statement, named)
            except RecursionError:
                raise NotationError(
                    "the line is nested too deeply", "give its parts names", Place(self.file, line)
                ) from None

    def _check_names(self, statement: ast.stmt, named: Mapping[str, Axis]) -> None:
        """Check that the name of an axis refers to that axis, unless the class body assigns it to a
        tensor, and that a comprehension can see its names.
        """
        for node in nodes_in(statement):
            if isinstance(node, COMPREHENSIONS):
                self._check_seen(node)
            if isinstance(node, ast.Constant) and isinstance(node.value, float):
                self._check_literal(node)
            if not (isinstance(node, ast.Name) and node.id in named) or node.id in self.scope.body:
                continue
            value = self.scope[node.id]
            if isinstance(node.ctx, ast.Load) and value is not MISSING and value != named[node.id]:
                raise NotationError(
                    f"{node.id} is {_what(value)} here, but an axis is called {node.id} too",
                    f"give one of them another name, such as {node.id}_size or "
                    f'{node.id} = Axis("{node.id}2")',
                    Place(self.file, node.lineno),
                )

    def _check_literal(self, node: ast.Constant) -> None:
        """Refuse a literal that overflows or underflows in Python's float64."""
        if 0 < abs(node.value) < math.inf:
            return
        line = linecache.getline(self.file, node.lineno).encode()
        text = line[node.col_offset : node.end_col_offset].decode(errors="replace")
        if math.isinf(node.value) or set(text.lower().partition("e")[0]) & set("123456789"):
            raise NotationError(
                f"{text or 'a number'} is {node.value} to Python: float64 holds no such number",
                IN_LOGARITHMS,
                Place(self.file, node.lineno),
            )

    def _check_seen(self, comprehension: ast.AST) -> None:
        """Refuse names of the class body in a comprehension, where Python does not find them."""
        first = {id(node) for node in ast.walk(comprehension.generators[0].iter)}
        names = [n for n in ast.walk(comprehension) if isinstance(n, ast.Name)]
        own = {n.id for n in names if isinstance(n.ctx, ast.Store)}
        for node in names:
            hidden = node.id in self.assigned and self.scope.outside(node.id) is MISSING
            if hidden and node.id not in own and id(node) not in first:
                raise NotationError(
                    f"{node.id} is not seen by a function or a comprehension inside of a class "
                    "body",
                    "write the statement out, or pass the tensor as an argument",
                    Place(self.file, node.lineno),
                )

    def is_in_a_loop(self, line: int) -> bool:
        """Whether the statement on ``line`` may run more than once."""
        return line in self.body.looped

    def goes_through(self, name: str, line: int) -> bool:
        """Whether ``name`` is the target of a loop that begins on ``line``."""
        return any(line in loop.head and name in loop.names for loop in self.loops)

    def is_read_before(self, name: str, line: int) -> bool:
        """Whether ``line`` reads ``name``, which it or a line below assigns, by `Previous`."""
        if self.assigned.get(name, 0) < line or self.scope.outside(name) is not MISSING:
            return False
        calls = [n for s in self.by_line.get(line, ()) for n in ast.walk(s)]
        calls = [n for n in calls if isinstance(n, ast.Call) and n.args]
        read = [n for n in calls if isinstance(n.args[0], ast.Name) and n.args[0].id == name]
        return any(getattr(n.func, "attr", getattr(n.func, "id", "")) == "Previous" for n in read)

    def axes_below(self, name: str, around: frozenset[str] = frozenset()) -> frozenset[Axis]:
        """Axes that a later statement certainly has; ``around`` are those being asked for."""
        statement = self._statement(name, self.assigned[name])

        def value_of(other: str) -> object:
            found = self.scope[other]
            below = found is MISSING and other in self.assigned
            if not below or other in around | {name}:
                return found
            return Tensor(other, ordered(self.axes_below(other, around | {name})))

        return (
            frozenset()
            if statement is None
            else written_in(statement, LineReader(value_of, self.body)).axes
        )

    def outside(self, name: str, line: int) -> type | None:
        """The notation's own class for a SymPy name that the class body does not define, else None.
        Raises `NotationError` where nothing has the name.
        """
        unknown = self._unknown(name, line)
        if unknown is not None:
            raise unknown
        found = self.scope.outside(name)
        return found if isinstance(found, type) and found in SYMPYS.values() else None

    def _unknown(self, name: str, line: int) -> NotationError | None:
        """The error for a name that nothing defines; None where something does."""
        if self.scope.outside(name) is not MISSING or name in self.code.co_freevars:
            return None
        module = self.scope.module.items()
        known = [n for n, v in module if isinstance(v, (type, Axis)) and not n.startswith("_")]
        return unknown_name(name, Place(self.file, line), self.assigned, known)

    def written(self, name: str, line: int) -> NamesWritten:
        """The tensors and axes in the statement of ``name`` on ``line``."""
        statement = self._statement(name, line)
        if statement is None:
            return NamesWritten()
        return written_in(statement, LineReader(self.scope.__getitem__, self.body))

    def lost(self, name: str, line: int, value: Expr) -> list[str]:
        """The conditions under which the typed statement of ``name`` equals ``value``, if ``value``
        is defined elsewhere too.
        """
        statement = self._statement(name, line)
        if statement is None:
            return []
        return TypedLine(statement, value, LineReader(self.scope.__getitem__, self.body)).lost()

    def _statement(self, name: str, line: int) -> ast.expr | None:
        """The right-hand side of the statement of ``name`` on ``line``, or None."""
        for statement in map(written_out, self.by_line.get(line, ())):
            annotated = [statement.target] if isinstance(statement, ast.AnnAssign) else []
            targets = getattr(statement, "targets", annotated)
            if any(isinstance(t, ast.Name) and t.id == name for t in targets):
                return statement.value
        return None


def _what(value: object) -> str:
    module = getattr(value, "__module__", None) or ""
    if module.startswith("sympy") and not hasattr(value, "free_symbols"):
        return "a function of SymPy's"
    return str(value)
