"""Tensors and axes in a statement as typed.

SymPy simplifies immediately: ``x*0`` is 0, and a choice between equal branches is the branch.
Because the value no longer shows the axes of ``x``, they are read from the source line.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType

from sympy import Basic

from derive.language.errors import NOTATION
from derive.language.kept_labels import kept_tensor
from derive.language.lexicon import WORDS
from derive.language.nodes import Max, Min
from derive.language.reading_at import At
from derive.language.segments import SEGMENTS, Gather
from derive.language.source.class_source import MISSING, children
from derive.language.source.line_reader import LineReader, makes_formulas, package_of
from derive.language.symbols import Axis, Tensor, axes_of, tensors_in
from derive.language.windows import Flip, Shift


@dataclass(frozen=True)
class NamesWritten:
    """Tensor names and axes that a formula certainly has."""

    names: frozenset[str] = frozenset()
    axes: frozenset[Axis] = frozenset()

    def __or__(self, other: NamesWritten) -> NamesWritten:
        return NamesWritten(self.names | other.names, self.axes | other.axes)


def is_all_known(node: ast.AST, reader: LineReader) -> bool:
    """Whether the axes of a part of a line can be determined: it consists of tensors, numbers, the
    notation and SymPy functions.
    """
    if isinstance(node, (ast.Name, ast.Attribute)):
        return isinstance(reader.value(node), (Basic, int, float))
    if isinstance(node, ast.Call):
        function = reader.value(node.func)
        ours = isinstance(function, type) and function in rules and function is not At
        sympys = package_of(function) == "sympy" and makes_formulas(function, reader.body.file)
        parts = node.args[:1] if ours and function not in SEVERAL else node.args
        return (ours or sympys) and all(is_all_known(part, reader) for part in parts)
    if isinstance(node, PLAIN) and not isinstance(getattr(node, "op", None), ast.MatMult):
        parts = [part for part in children(node) if isinstance(part, ast.expr)]
        return all(is_all_known(part, reader) for part in parts)
    return isinstance(node, ast.Constant)


def written_in(node: ast.AST, reader: LineReader) -> NamesWritten:
    """Tensors and axes in a part of a line; unknown effects, such as those of a user's function on
    its arguments, are left out.
    """
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _of_value(reader.value(node))
    if isinstance(node, ast.Call):
        return _of_call(node, reader)
    if isinstance(node, PLAIN):
        return _all(children(node), reader)
    return NamesWritten()


PLAIN = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Tuple, ast.List)


def _all(nodes, reader: LineReader) -> NamesWritten:
    result = NamesWritten()
    for node in nodes:
        result |= written_in(node, reader)
    return result


def _of_value(value: object) -> NamesWritten:
    if not isinstance(value, Basic):
        return NamesWritten()
    return NamesWritten(frozenset(t.name for t in tensors_in(value)), axes_of(value))


def _of_call(call: ast.Call, reader: LineReader) -> NamesWritten:
    function = reader.value(call.func)
    if function is MISSING:
        return NamesWritten()
    if function in SEGMENTS.values():
        return _by_label(call, reader, function is Gather)
    rule = rules.get(function) if isinstance(function, type) or callable(function) else None
    if rule is not None:
        named = call.args[1:2] if rule is _read else call.args[2 if rule in OF_TWO else 1 :]
        axes = [_axis(a, reader) for a in named]
        if function in SEVERAL and not any(axes):
            return _all(call.args, reader)
        into = next((k.value for k in call.keywords if k.arg == "into"), None)
        new = [_axis(a, reader) for a in getattr(into, "elts", [into] if into else [])]
        given = axes if rule is not _joined else []
        return rule(call, reader, axes, new) if None not in (*given, *new) else NamesWritten()
    if isinstance(function, type) and hasattr(function, "definition"):
        names = _all([*call.args, *(k.value for k in call.keywords)], reader).names
        return NamesWritten(names)
    if isinstance(function, FunctionType) and package_of(function) not in ("sympy", NOTATION):
        return NamesWritten()  # may reduce them
    if makes_formulas(function, reader.body.file):
        return _all(call.args, reader)
    return NamesWritten()


def _axis(node: ast.AST, reader: LineReader) -> Axis | None:
    value = reader.value(node)
    return value if isinstance(value, Axis) else None


def _reduced(call, reader, axes, new) -> NamesWritten:
    operand = _all(call.args[:1], reader)
    return NamesWritten(operand.names, operand.axes - set(axes))


def _brought(call, reader, axes, new) -> NamesWritten:
    operand = _all(call.args[:1], reader)
    return NamesWritten(operand.names, operand.axes | set(axes))


def _reshaped(call, reader, axes, new) -> NamesWritten:
    operand = _all(call.args[:1], reader)
    return NamesWritten(operand.names, (operand.axes - set(axes)) | set(new))


def _renamed(call, reader, axes, new) -> NamesWritten:
    operand = _all(call.args[:1], reader)
    if len(axes) != 2 or axes[0] not in operand.axes:
        return NamesWritten(operand.names)
    return NamesWritten(operand.names, (operand.axes - {axes[0]}) | {axes[1]})


def _on_diagonal(call, reader, axes, new) -> NamesWritten:
    operand = _all(call.args[:1], reader)
    return NamesWritten(operand.names, operand.axes - {*axes[1:]})


def _index(call, reader, axes, new) -> NamesWritten:
    return NamesWritten(frozenset(), frozenset(filter(None, (_axis(a, reader) for a in call.args))))


def _by_label(call: ast.Call, reader: LineReader, picks: bool) -> NamesWritten:
    """Axes of a row read at labels, or of a sum by label."""
    if len(call.args) != 3 or (axis := _axis(call.args[2], reader)) is None:
        return NamesWritten()
    operand, labels = (_all([arg], reader) for arg in call.args[:2])
    gone, come = ({axis}, labels.axes) if picks else (labels.axes, {axis})
    return NamesWritten(operand.names, (operand.axes - gone) | come)


def _carried(call, reader, axes, new) -> NamesWritten:
    return _all(call.args[:1], reader)


def _scanned(call, reader, axes, new) -> NamesWritten:
    operands = _all(call.args[:2], reader)
    return NamesWritten(operands.names, operands.axes | set(axes))


def _solved(call, reader, axes, new) -> NamesWritten:
    operands = _all(call.args[:2], reader)
    return NamesWritten(operands.names, operands.axes - set(axes[:1]) | set(axes[1:]))


def _read(call, reader, axes, new) -> NamesWritten:
    """Axes of a tensor read at an index: those of the index replace the axis, unless it is read in
    place.
    """
    operand, index = (_all(args, reader) for args in (call.args[:1], call.args[2:3]))
    if reader.value(call.func) in (Flip, Shift):
        return operand
    return NamesWritten(operand.names, operand.axes - {*axes} | index.axes | {*new})


def _joined(call, reader, axes, new) -> NamesWritten:
    """Axes of concatenated parts, without the axis along which each part lies."""
    found = NamesWritten(frozenset(), frozenset(new))
    for part in call.args:
        x, *along = getattr(part, "elts", [part])
        of = _all([x], reader)
        ends = {_axis(a, reader) for a in along}
        found |= NamesWritten(of.names, of.axes - ends if along else frozenset())
    return found


def _gradient(call, reader, axes, new) -> NamesWritten:
    of, by = (_all([arg], reader) for arg in call.args[:2])
    return NamesWritten(of.names | by.names, by.axes)


def _kept(call, reader, axes, new) -> NamesWritten:
    label = reader.value(call.args[0]) if call.args else None
    return _of_value(kept_tensor(label)) if isinstance(label, Tensor) else NamesWritten()


# The axes of a word from its operands; a rule receives the call, the axes named in it, and the
# axes it creates.
AXES: dict[str, Callable[..., NamesWritten]] = {
    "reduced": _reduced,
    "brought": _brought,
    "index": _index,
    "on_diagonal": _on_diagonal,
    "renamed": _renamed,
    "reshaped": _reshaped,
    "kept": _kept,
    "carried": _carried,
    "scanned": _scanned,
    "solved": _solved,
    "joined": _joined,
    "gradient": _gradient,
    "read": _read,
}
rules = {word.make: AXES[word.axes] for word in WORDS.values() if word.axes}
SEVERAL = (Max, Min)  # all arguments are operands unless one is an axis
OF_TWO = (_scanned, _solved, _gradient)  # nodes with two operands; all others have one
