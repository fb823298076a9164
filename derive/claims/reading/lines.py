"""The lines of a text and the names they assign."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sympy import Expr

from derive.claims.reading.names import TextNames
from derive.claims.reading.refusals import Refusal
from derive.language.symbols import Tensor


@dataclass(frozen=True)
class TextLine:
    """A line that binds ``name`` to ``value``."""

    name: str
    number: int
    source: str
    value: Expr


def check_annotation(annotation: ast.AST | None) -> None:
    """Accept a name as annotation, such as ``torch.Tensor``; it is not looked up."""
    if not isinstance(annotation, (ast.Name, ast.Attribute, ast.Constant, type(None))):
        raise Refusal("this annotation is not supported", "leave it out", annotation)


def assigned_in(statements: list[ast.stmt], names: TextNames, of: Tensor) -> dict[str, int]:
    """The names that a text assigns, each with the first line that assigns it."""
    found: dict[str, int] = {}
    for statement in statements:
        for name in written_in([statement]):
            found.setdefault(names.ours(name), statement.lineno)
    last = statements[-1]
    if isinstance(last, (ast.Expr, ast.Return)) and written_by(last.value) is None:
        found.setdefault(f"d{of.name}", last.lineno)
    return found


def written_by(node: ast.AST | None) -> ast.expr | None:
    """The target that a call writes into: ``dx.add_(y)``, ``torch.add(x, y, out=dx)``."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    out = (keyword.value for keyword in node.keywords if keyword.arg == "out")
    return next(out, node.func.value if node.func.attr.endswith("_") else None)


def root_of(node: ast.AST) -> ast.AST:
    """The name at the root of ``x[1:].T[0]``, if there is one."""
    while isinstance(node, (ast.Subscript, ast.Attribute, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


def written_in(lines: Iterable[ast.stmt]) -> set[str]:
    """The names that lines write into or assign again, in loops and branches too."""
    nodes = (node for line in lines for node in ast.walk(line) if isinstance(node, ast.stmt))
    return {name for node in nodes for name in _targets(node)}


def _targets(node: ast.stmt) -> Iterator[str]:
    targets = {
        ast.Assign: lambda n: n.targets,
        ast.AnnAssign: lambda n: [n.target],
        ast.AugAssign: lambda n: [n.target],
    }.get(type(node), lambda n: [])(node)
    while targets:
        target, *targets = targets
        if isinstance(target, (ast.Tuple, ast.List)):
            targets = [*target.elts, *targets]
        elif isinstance(target, ast.Subscript):
            targets = [root_of(target), *targets]
        elif isinstance(target, ast.Name):
            yield target.id
