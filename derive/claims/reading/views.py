"""Writes through a view of a tensor: ``x[1:].copy_(y)``, ``x.T[0].mul_(2)``.

The new entries are written back through each view to the named tensor.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from sympy import Integer

from derive.claims.reading.expressions import ExpressionReader
from derive.claims.reading.lines import written_by
from derive.claims.reading.operations.entries import position
from derive.claims.reading.operations.reshaping import reshaped
from derive.claims.reading.operations.vocabulary import ATTRIBUTES
from derive.claims.reading.parts import EntryIndex, WrittenSlice, put
from derive.claims.reading.refusals import Refusal
from derive.claims.reading.stores import Store, stored
from derive.claims.reading.values import TextValue
from derive.language.symbols import Axis

SAME = ("data", "detach")
MOVED = ("T", "mT", "t", "transpose", "swapaxes", "swapdims", "permute", "movedim", "moveaxis")
LAID = ("view", "view_as", "unsqueeze", "squeeze", "unflatten")
PARTS = ("narrow", "select")
KNOWN = {*SAME, *MOVED, *LAID, *PARTS}
REMEDY = "write into the tensor itself: dx[:, 1:] = ..., dx[:, 1:].add_(...)"


def viewed(node: ast.expr) -> ast.Name:
    """The name at the base of a view: ``x`` of ``x[1:].T``."""
    while not isinstance(node := _itself(node), ast.Name):
        inner = _inner(node)
        if inner is None or not (isinstance(node, ast.Subscript) or _word(node) in KNOWN):
            raise Refusal("this writes into a view that is not followed", REMEDY, node)
        node = inner
    return node


def _itself(node: ast.expr) -> ast.expr:
    """The target of a write, which is also its value."""
    while (into := written_by(node)) is not None:
        node = into
    return node


def _inner(node: ast.expr) -> ast.expr | None:
    """The base of ``x[i]``, ``x.T`` or ``x.view(n)``."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.value if isinstance(node, (ast.Subscript, ast.Attribute)) else None


def _word(node: ast.expr) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else ""


def put_back(
    expressions: ExpressionReader, node: ast.expr, new: TextValue, root: TextValue
) -> TextValue:
    """The base tensor ``root`` after ``new`` was written into its view."""
    node = _itself(node)
    if isinstance(node, ast.Name):
        return new
    inner = _itself(_inner(node))
    before = root if isinstance(inner, ast.Name) else expressions.value(inner)
    if isinstance(node, ast.Subscript):
        whole = stored(expressions, node.slice, before, lambda: new, Store())
    elif _word(node) in SAME:
        whole = new
    elif _word(node) in MOVED:
        whole = _moved_back(expressions, node, new)
    elif _word(node) in LAID:
        sizes = [expressions.space.size(axis) for axis in before.dims]
        whole = reshaped(expressions.space, new, sizes, _word(node))
    else:
        whole = _in_part(expressions, node, before, new)
    return put_back(expressions, inner, whole, root)


def _moved_back(expressions: ExpressionReader, node: ast.expr, new: TextValue) -> TextValue:
    """Undo a permutation of dimensions, found by permuting their numbers."""
    places = TextValue(Integer(0), tuple(Axis(f"D{i}") for i in range(len(new.dims))))
    if isinstance(node, ast.Call):
        moved = expressions.method(node, places)
    else:
        moved = ATTRIBUTES[node.attr](expressions.space, places)
    order = [int(axis.name[1:]) for axis in moved.dims]
    return replace(new, dims=tuple(new.dims[order.index(i)] for i in range(len(order))))


def _in_part(
    expressions: ExpressionReader, node: ast.Call, before: TextValue, new: TextValue
) -> TextValue:
    """Write through ``x.narrow(0, 1, 2)`` or ``x.select(0, 1)``."""
    space = expressions.space
    numbers = [expressions.value(argument) for argument in node.args]
    wanted = 3 if _word(node) == "narrow" else 2
    if len(numbers) != wanted or node.keywords:
        raise Refusal(f"{_word(node)} takes {wanted} numbers", REMEDY, node)
    place = position(space, before, numbers[0])
    start, *length = (x.expression for x in numbers[1:])
    item = WrittenSlice(start, start + length[0], None) if length else EntryIndex(start)
    return put(space, before, [*[":"] * place, item], new, False)
