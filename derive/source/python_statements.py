"""What Python's statements decide about a tensor once, or leave without a name, refused with what
to write. Every check is as those of ``python_operators.py``.
"""

from __future__ import annotations

import ast

from derive.language.errors import NotationError
from derive.source.line_reader import Reader, package_of
from derive.source.python_operators import as_condition, written

OURS = ("derive", "sympy")
ENTRIES = "nothing goes through the entries of a tensor or the indices of an axis"


def branched(node, reader: Reader) -> None:
    if reader.is_tensor(node.test):
        word = type(node).__name__.lower()
        raise NotationError(
            f"{word} {written(node.test)}: Python decides once, not for every entry",
            f"write Piecewise((a, {as_condition(node.test)}), (b, True)) on one line",
        )


def looped(node, reader: Reader) -> None:
    if reader.is_tensor(node.iter):
        raise NotationError(
            f"for {written(node.target)} in {written(node.iter)}: {ENTRIES}",
            "write Sum(x, axis) or Max(x, axis); the index is Position(axis), in comparisons",
        )


def matched(node: ast.Match, reader: Reader) -> None:
    if reader.holds(node.subject):
        raise NotationError(
            f"match {written(node.subject)}: Python decides once, not for every entry",
            "write Piecewise((a, Eq(x, 0)), (b, True)) on one line",
        )


def assigned_again(node: ast.AugAssign, reader: Reader) -> None:
    if reader.depth == 0 and reader.is_tensor(node.target):
        name = written(node.target)
        raise NotationError(
            f"{name} is defined already, and {written(node)} would define it again",
            f"give the result a name of its own: {name}_2 = "
            f"{written(ast.BinOp(node.target, node.op, node.value))}",
        )


def named_inside(node: ast.NamedExpr, reader: Reader) -> None:
    if reader.depth == 0 and reader.is_tensor(node.value):
        raise NotationError(
            f"{written(node.target)} is defined inside of another line",
            f"give it a line of its own: {written(node.target)} = {written(node.value)}",
        )


def only_annotated(node: ast.AnnAssign, reader: Reader) -> None:
    if reader.depth == 0 and node.value is None:
        raise NotationError(
            f"{written(node)} defines nothing in Python: it is an annotation",
            f"write {written(node.target)} = {written(node.annotation)}",
        )


def unnamed(node: ast.Expr, reader: Reader) -> None:
    value = node.value
    calls = isinstance(value, ast.Call) and package_of(reader.value(value.func)) in OURS
    formula = calls or isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Name))
    if reader.depth == 0 and formula and reader.is_tensor(value):
        raise NotationError(
            f"{written(value)} has no name, so that nothing is stated",
            f"give it one: h = {written(value)}",
        )


def comprehended(node, reader: Reader) -> None:
    for generator in node.generators:
        looped(generator, reader)
