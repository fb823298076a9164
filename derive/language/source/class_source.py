"""The syntax tree of a running class body, and the values of its names.

Values alone do not show what was written: ``x == 0`` is False at once. The class body is therefore
read from its source wherever that is available (in a module, a notebook, an interactive session).
"""

from __future__ import annotations

import ast
import builtins
import dis
import linecache
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType

from derive.language.extremes import of_notation

MISSING = object()
# Bytecode of decisions made by Python instead of the mathematics.
DECISIONS = ("COMPARE_OP", "IS_OP", "CONTAINS_OP", "UNARY_NOT", "FOR_ITER", "TO_BOOL")

read_already: dict[str, ast.Module] = {}  # files being loaded, by name


class ClassScope:
    """Name lookup as in a class body: local, enclosing functions, module, builtins."""

    def __init__(self, frame: FrameType, body: dict):
        around = frame.f_back if frame.f_code.co_freevars else None
        self.outer = (
            {
                name: around.f_locals[name]
                for name in frame.f_code.co_freevars
                if name in around.f_locals
            }
            if around
            else {}
        )
        self.body, self.module = body, frame.f_globals

    def __getitem__(self, name: str) -> object:
        """The value of ``name``, or `MISSING`."""
        if dict.__contains__(self.body, name):
            return dict.__getitem__(self.body, name)
        return self.outside(name)

    def outside(self, name: str) -> object:
        """The value of ``name`` outside the class body, or `MISSING`."""
        for names in (self.outer, self.module):
            if name in names:
                return of_notation(names[name])
        return getattr(builtins, name, MISSING)


@dataclass(frozen=True)
class OutsideNames:
    """The code of a class body, and the values of outer names while it ran."""

    code: CodeType
    values: Mapping[str, object]

    @classmethod
    def of(cls, code: CodeType, scope: ClassScope) -> OutsideNames:
        around = {**scope.module, **scope.outer}
        return cls(code, {name: around[name] for name in names_in(code) if name in around})


def names_in(code: CodeType) -> set[str]:
    """Names that code, and functions defined in it, look up outside of it."""
    inner = (c for c in code.co_consts if isinstance(c, CodeType))
    return {*code.co_names, *code.co_freevars}.union(*map(names_in, inner))


def file_tree(code: CodeType, module: dict) -> ast.Module:
    """The file that ``code`` was compiled from; empty if it cannot be read."""
    tree = read_already.get(code.co_filename)
    if tree is None:
        linecache.checkcache(code.co_filename)
        tree = parsed("".join(linecache.getlines(code.co_filename, module)))
    return tree


def class_tree(code: CodeType, module: dict) -> ast.ClassDef | None:
    """The class whose body is ``code``; None if its source cannot be read."""
    tree = file_tree(code, module)
    found = [node for node in _classes(tree) if node.name == code.co_name and _begins(node, code)]
    known = code.co_filename in read_already  # otherwise the file may have changed since
    return found[0] if len(found) == 1 and (known or _same(found[0], code)) else None


def decides_in_python(code: CodeType) -> bool:
    """Whether a class body compares, branches or loops; asked where its source cannot be read."""
    return any(
        (i.opname in DECISIONS and not (i.opname == "COMPARE_OP" and i.argrepr[:1] in "<>"))
        or "JUMP_IF" in i.opname
        for i in dis.get_instructions(code)
    )


def statements_by_line(tree: ast.ClassDef) -> dict[int, list[ast.stmt]]:
    """The statements by line; for compound ones only the head."""
    found: dict[int, list[ast.stmt]] = {}
    for statement in statements_in(tree.body):
        inner = next(_blocks(statement), None)
        last = inner[0].lineno - 1 if inner else statement.end_lineno
        for line in range(statement.lineno, max(last, statement.lineno) + 1):
            found.setdefault(line, []).append(statement)
    return found


def statements_in(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements that a class body itself runs, in order."""
    for statement in body:
        yield statement
        for block in _blocks(statement):
            yield from statements_in(block)


def assigned_in(tree: ast.ClassDef | None) -> dict[str, int]:
    """The names that a class body assigns, with the first line of each."""
    found: dict[str, int] = {}
    for statement in statements_in(tree.body) if tree else ():
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                for node in ast.walk(target):
                    if isinstance(node, ast.Name):
                        found.setdefault(node.id, statement.lineno)
    return found


@dataclass(frozen=True)
class WrittenLoop:
    """The head and body lines of a loop, and the names that it binds."""

    head: range
    lines: range
    names: frozenset[str]


def loops_in(tree: ast.ClassDef | None) -> list[WrittenLoop]:
    """The loops that a class body runs itself."""
    found = []
    for node in statements_in(tree.body) if tree else ():
        if isinstance(node, (ast.For, ast.While)):
            head = node.iter if isinstance(node, ast.For) else node.test
            targets = ast.walk(node.target) if isinstance(node, ast.For) else ()
            names = frozenset(n.id for n in targets if isinstance(n, ast.Name))
            lines = range(node.body[0].lineno, node.body[-1].end_lineno + 1)
            found.append(WrittenLoop(range(node.lineno, head.end_lineno + 1), lines, names))
    return found


def written_out(statement: ast.stmt) -> ast.stmt:
    """``u += e`` as ``u = u + e``."""
    if not isinstance(statement, ast.AugAssign):
        return statement
    whole = ast.BinOp(statement.target, statement.op, statement.value)
    return ast.copy_location(ast.Assign([statement.target], whole), statement)


def assigned_around(tree: ast.Module, line: int) -> dict[str, int]:
    """The names that the innermost class around a line of a file assigns."""
    around = [n for n in _classes(tree) if n.lineno <= line <= (n.end_lineno or line)]
    return assigned_in(around[-1] if around else None)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return  # a scope of its own
    for part in ("body", "orelse", "finalbody"):
        if getattr(statement, part, None):
            yield getattr(statement, part)
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


@lru_cache(maxsize=8)
def parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # changed since it was compiled
        return ast.Module([], [])


@lru_cache(maxsize=8)
def _classes(tree: ast.Module) -> tuple[ast.ClassDef, ...]:
    return tuple(node for node in _statements(tree) if isinstance(node, ast.ClassDef))


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Every statement in ``node``, of functions and classes too."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, part, ()):
            yield inner
            yield from _statements(inner)


def children(node: ast.AST) -> list[ast.AST]:
    """Like `ast.iter_child_nodes`, without nodes that have no text (a Load, an Add), and several
    times as fast.
    """
    found = []
    for field in node._fields:
        part = getattr(node, field, None)
        if isinstance(part, list):
            found += [p for p in part if isinstance(p, ast.AST)]
        elif isinstance(part, ast.AST) and part._fields:
            found.append(part)
    return found


def nodes_in(node: ast.AST) -> list[ast.AST]:
    """``node`` and all nodes in it."""
    found = [node]
    for inner in found:
        found += children(inner)
    return found


def _begins(node: ast.ClassDef, code: CodeType) -> bool:
    return code.co_firstlineno in (node.lineno, *(d.lineno for d in node.decorator_list[:1]))


def _same(node: ast.ClassDef, code: CodeType) -> bool:
    """Whether the source still matches the code: every name of the code occurs in it."""
    written = {
        "__module__",
        "__qualname__",
        "__doc__",
        "__name__",
        "__annotations__",
        "__firstlineno__",
        "__static_attributes__",
    }
    for part in ast.walk(node):
        written |= {getattr(part, name, None) for name in ("id", "attr", "name", "asname")}
        if isinstance(part, ast.ImportFrom):
            written.add(part.module)
    return all(n in written or "." in n for n in code.co_names if not n.startswith("__"))
