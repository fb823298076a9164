"""Refuse Python statements that decide about a tensor once, or leave it without a name, and suggest
a rewrite. The checks have the contract of ``python_operators.py``.
"""

from __future__ import annotations

import ast

from derive.language.declarations import Declaration
from derive.language.errors import NOTATION, NotationError
from derive.language.source.class_source import MISSING
from derive.language.source.dimensions import axis_gone_through
from derive.language.source.entrywise import beside
from derive.language.source.line_reader import LineReader, package_of
from derive.language.source.python_operators import as_condition, written

OURS = (NOTATION, "sympy")
METHODS = ("self", "ctx", "cls")  # names of a method's receiver
TORCHS = ("forward", "backward", "__init__", "__call__", "setup_context")
SHAPES = ("shape", "ndim", "dtype", "device")
SEVERAL = (ast.Tuple, ast.List)
ROUNDS = "a loop has as many rounds as a number says: for i in range(3)"
ENTRIES = "nothing goes through the entries of a tensor or the indices of an axis"


def branched(node, reader: LineReader) -> None:
    asked = [n for n in ast.walk(node.test) if isinstance(n, ast.Attribute)]
    about_shapes = any(n.attr in SHAPES and reader.is_tensor(n.value) for n in asked)
    if isinstance(node, ast.Assert) and about_shapes:
        raise NotationError(
            f"assert {written(node.test)}: a tensor has axes here, and no {asked[0].attr}",
            "leave it out: the generated functions check the tensors that they are called with",
        )
    if reader.is_tensor(node.test):
        word = type(node).__name__.lower()
        raise NotationError(
            f"{word} {written(node.test)}: Python decides once, not for every entry",
            ROUNDS
            if isinstance(node, ast.While)
            else _as_choice(node) or f"write Piecewise((a, {as_condition(node.test)}), (b, True))",
        )


def _as_choice(node: ast.stmt) -> str:
    """``if c: y = a`` and ``else: y = b`` as one line; '' where they say more."""
    if not isinstance(node, ast.If):
        return ""
    branches = [
        block[0] if len(block) == 1 and isinstance(block[0], ast.Assign) else None
        for block in (node.body, node.orelse)
    ]
    if None in branches or len({*map(_target, branches)}) > 1:
        return ""
    (name, a), (_, b) = ((_target(each), ast.unparse(each.value)) for each in branches)
    return f"write {name} = Piecewise(({a}, {as_condition(node.test)}), ({b}, True))"


def _target(node: ast.Assign) -> str:
    return ", ".join(map(ast.unparse, node.targets))


def looped(node, reader: LineReader) -> None:
    calls = [n for n in ast.walk(node.iter) if isinstance(n, ast.Call) and n.args]
    if reader.is_tensor(node.iter) or any(reader.is_tensor(n.args[0]) for n in calls):
        axis = axis_gone_through(node.iter, reader)
        raise NotationError(
            f"for {written(node.target)} in {written(node.iter)}: {ENTRIES}",
            f"write Sum(x, {axis}) or Max(x, {axis}); the index is Position({axis}), in "
            f"comparisons; {ROUNDS}",
        )


def defined(node, reader: LineReader) -> None:
    """Refuse a method: a class body may define a function, but nobody calls a method."""
    first = next((a.arg for a in (*node.args.posonlyargs, *node.args.args)), "")
    if reader.depth or not (first in METHODS or node.decorator_list or node.name in TORCHS):
        return
    values = [n.value for n in ast.walk(node) if isinstance(n, ast.Return) and n.value]
    output = written(values[-1]) if values and not _calls(values[-1]) else "..."
    raise NotationError(
        f"def {node.name}({ast.unparse(node.args)}): a forward has no methods, its lines are those "
        "of the class",
        f"write what the method computes as lines of the class, the last one as y = {output}",
    )


def _calls(node: ast.AST) -> bool:
    """Whether ``node`` uses the receiver of a method, such as ``self``."""
    return any(isinstance(n, ast.Name) and n.id in METHODS for n in ast.walk(node))


def assigned(node: ast.Assign, reader: LineReader) -> None:
    """Refuse a tuple or list of several tensors: a statement is one tensor."""
    one = isinstance(node.targets[0], ast.Name)
    parts = getattr(node.value, "elts", ()) if isinstance(node.value, SEVERAL) else ()
    if reader.depth or not one or not parts or not all(map(reader.is_tensor, parts)):
        return
    name, texts = node.targets[0].id, [ast.unparse(part) for part in parts]
    kind = type(node.value).__name__.lower()
    if len(texts) == 1:
        raise NotationError(f"{name} is a {kind} with one tensor", f"write {name} = {texts[0]}")
    if _is_declared(parts[0], reader):
        return
    raise NotationError(
        f"{name} is a {kind} of {len(texts)} tensors, and a statement is one",
        f"{beside(parts).replace('write ', f'write {name} = ')}: side by side along a new axis; or "
        "give each a line and a name of its own",
    )


def _is_declared(node: ast.AST, reader: LineReader) -> bool:
    function = reader.value(node.func) if isinstance(node, ast.Call) else None
    return isinstance(function, type) and issubclass(function, Declaration)


def matched(node: ast.Match, reader: LineReader) -> None:
    if reader.holds(node.subject):
        raise NotationError(
            f"match {written(node.subject)}: Python decides once, not for every entry",
            "write Piecewise((a, Eq(x, 0)), (b, True)) on one line",
        )


def assigned_again(node: ast.AugAssign, reader: LineReader) -> None:
    if node.lineno not in reader.body.looped and not reader.depth and reader.is_tensor(node.target):
        name = written(node.target)
        raise NotationError(
            f"{name} is defined already, and {written(node)} would define it again",
            f"give the result a name of its own: {name}_2 = "
            f"{written(ast.BinOp(node.target, node.op, node.value))}",
        )


def named_inside(node: ast.NamedExpr, reader: LineReader) -> None:
    if reader.depth == 0 and reader.is_tensor(node.value):
        raise NotationError(
            f"{written(node.target)} is defined inside of another line",
            f"give it a line of its own: {written(node.target)} = {written(node.value)}",
        )


def only_annotated(node: ast.AnnAssign, reader: LineReader) -> None:
    if reader.depth == 0 and node.value is None:
        raise NotationError(
            f"{written(node)} defines nothing in Python: it is an annotation",
            f"write {written(node.target)} = "
            f"{written(node.annotation) if isinstance(node.annotation, ast.Call) else '...'}",
        )
    names = [n.id for n in ast.walk(node.annotation) if isinstance(n, ast.Name)]
    if reader.depth == 0 and any(reader.value_of(name) is MISSING for name in names):
        raise NotationError(
            f"{written(node.annotation)} is unknown here",
            f"leave the annotation out: write {written(node.target)} = {ast.unparse(node.value)}",
        )


def unnamed(node: ast.Expr, reader: LineReader) -> None:
    value = node.value
    calls = isinstance(value, ast.Call) and package_of(reader.value(value.func)) in OURS
    formula = calls or isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Name))
    if reader.depth == 0 and formula and reader.is_tensor(value):
        raise NotationError(
            f"{written(value)} has no name, so that nothing is stated",
            f"give it one: h = {written(value)}",
        )


def comprehended(node, reader: LineReader) -> None:
    for generator in node.generators:
        looped(generator, reader)
