"""The notation's words for reading entries at an index: `At` and the nodes built on it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from sympy import Expr, Integer

from derive.claims.reading.lengths import with_axis
from derive.claims.reading.refusals import Refusal
from derive.claims.reading.usage import USAGE
from derive.claims.reading.values import TextValue, number, sum_of
from derive.language.errors import NotationError
from derive.language.nodes import Position
from derive.language.reading_at import At
from derive.language.symbols import MINUS_INFINITY, axes_of, is_number_or_size
from derive.language.windows import Flip, Pad, Shift, Slice, Window

# How an entry is read, and the options that may stand without their names.
READS: dict[str, tuple[Callable[..., Expr], tuple[str, ...]]] = {
    "At": (At, ("index",)),
    **{kind.__name__: (kind, ()) for kind in (Flip, Slice, Pad, Window)},
    "Shift": (Shift, ("by",)),
}


def read_along(notation, operand, axis, *more, name: str, **options) -> TextValue:
    """``Slice(x, T, into=D, start=1)``"""
    make, positional = READS[name]
    if len(more) > len(positional):
        raise Refusal(f"{name} takes other arguments", USAGE[name])
    x = notation.operand(operand)
    along = notation.axis(axis, x, name)
    found = [_option(notation, what, node) for what, node in zip(positional, more, strict=False)]
    given = {what: _option(notation, what, node) for what, node in options.items()}
    try:
        e = make(x.expression, along, *found, **given)
    except NotationError as error:
        raise Refusal(error.problem, error.remedy, operand) from None
    if isinstance(e, At):
        e = notation.space.read_at(e.operand, along, e.index, e.fill)
    return notation.value(e, axes_of(e) | ({*x.axes} - {along}), x)


def _option(notation, what: str, node: ast.AST) -> Any:
    if what == "into":
        nodes = node.elts if isinstance(node, ast.Tuple) else [node]
        axes = tuple(map(notation.axis, nodes))
        return axes if isinstance(node, ast.Tuple) else axes[0]
    if what == "index":
        return notation.operand(node).expression
    minus = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    if what == "fill" and minus and isinstance(node.operand, ast.Name) and node.operand.id == "oo":
        return MINUS_INFINITY
    e = notation.operand(node).expression
    if not is_number_or_size(e):
        raise Refusal(f"{what} is neither a number nor a size", f"write {what}=1", node)
    return e


def joined(notation, *parts, into) -> TextValue:
    """``Concat((a, N), (b, M), into=K)``"""
    if not all(isinstance(part, ast.Tuple) and len(part.elts) == 2 for part in parts) or not parts:
        raise Refusal("each tensor comes with its axis", "Concat((a, N), (b, M), into=K)")
    values = [notation.operand(part.elts[0]) for part in parts]
    axes = [notation.axis(part.elts[1], x, "Concat") for part, x in zip(parts, values, strict=True)]
    along = notation.axis(into)
    if not notation.space.same(along, sum(axes[1:], axes[0])):
        raise Refusal(f"{along} is not as long as the parts together", "name another axis", into)
    whole, before = Integer(0), Integer(0)
    for x, axis in zip(values, axes, strict=True):
        whole += notation.space.read_at(x.expression, axis, Position(along) - before)
        before += axis
    others = {a for x, axis in zip(values, axes, strict=True) for a in x.axes if a != axis}
    extent = TextValue(whole, extent=sum_of(x.extent.inside() for x in values))
    return notation.value(whole, {along, *others}, extent)


def new_axis(notation, name, length) -> TextValue:
    """``D = Axis("D", T - 1)``"""
    e = notation.operand(length).expression
    word = name.value if isinstance(name, ast.Constant) else None
    if not isinstance(word, str) or not is_number_or_size(e) or notation.known_axis_named(word):
        raise Refusal("an axis has a new name and a length", 'write D = Axis("D", T - 1)', name)
    notation.space.definition, axis = with_axis(notation.space.definition, e, word)
    return number(axis)
