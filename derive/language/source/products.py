"""Positional products of torch and numpy, rewritten as sums along a named axis.

``x @ w`` contracts the last dimension of x with the last but one of w: the axis is named if both
have it. An axis that occurs twice, as in ``x @ x.T``, is renamed once.
"""

from __future__ import annotations

import ast

from derive.language.axes_meant import declared
from derive.language.source.dimensions import View, unmoved, views_of
from derive.language.source.line_reader import LineReader
from derive.language.source.shown import Unclear
from derive.language.symbols import Axis

MATRIX = ("matmul", "mm", "bmm", "mv", "dot", "vdot")
GENERAL = "a matrix product is Sum(a * b, K), with the axis K that both have"


def product(name: str, operands: list[ast.AST], reader: LineReader) -> str:
    """The rewrite of a matrix product or a similar call; '' for any other call."""
    makers = {"einsum": _einsum, "outer": _outer, "inner": _inner, "linear": _linear}
    make = _matrix if name in MATRIX else makers.get(name)
    if make is None or len(operands) < 2:
        return ""
    try:
        return make(operands, reader)
    except (Unclear, ValueError, IndexError):
        return GENERAL


def _matrix(operands: list[ast.AST], reader: LineReader) -> str:
    a, b = operands
    left, right = views_of(a, reader)[0], views_of(b, reader)[0]
    return _contracted(a, b, left[-1], left, right)


def _inner(operands: list[ast.AST], reader: LineReader) -> str:
    return _matrix(operands, reader)


def _linear(operands: list[ast.AST], reader: LineReader) -> str:
    code = _matrix(operands[:2], reader)
    if len(operands) == 2:
        return code
    line, note, more = code.partition(", with ")
    return f"{line} + {_operand(operands[2])}{note}{more}"


def _contracted(a: ast.AST, b: ast.AST, axis: Axis | None, left: View, right: View) -> str:
    """The sum of a*b along ``axis``, or along the only common one."""
    both = [each for each in left if each is not None and each in right]
    if axis not in both and len(both) != 1:
        raise Unclear(GENERAL)
    axis = axis if axis in both else both[0]
    place = max(len(right) - 2, 0)
    twice = [each for each in both if each != axis and not _is_batch(each, left, right)]
    if len(both) == len(left) == len(right) and right[place] != axis:
        twice = []  # contracts other dimensions than torch would: no renaming
    factor, note = _operand(b), ""
    for each in twice:
        new = f"{each}2"
        factor, note = f"Rename({factor}, {each}, {new})", f", with {declared([new])}"
    return f"write Sum({_operand(a)} * {factor}, {axis}){note}"


def _is_batch(axis: Axis, left: View, right: View) -> bool:
    """Whether an axis is a batch dimension at the same place on both sides."""
    return axis in left[:-2] and axis in right[:-2]


def _outer(operands: list[ast.AST], reader: LineReader) -> str:
    a, b = operands
    (first,), (second,) = views_of(a, reader)[0], views_of(b, reader)[0]
    if first != second:
        return f"write {_operand(a)} * {_operand(b)}"
    new = f"{second}2"
    renamed = f"Rename({_operand(b)}, {second}, {new})"
    return f"write {_operand(a)} * {renamed}, with {declared([new])}"


def _einsum(operands: list[ast.AST], reader: LineReader) -> str:
    subscripts, *tensors = operands
    inputs, arrow, output = str(ast.literal_eval(subscripts)).replace(" ", "").partition("->")
    letters = inputs.split(",")
    if not arrow:
        output = "".join(c for c in inputs if inputs.count(c) == 1 and c != ",")
    meant: dict[str, Axis | None] = {}
    for word, tensor in zip(letters, tensors, strict=True):
        for letter, axis in zip(word, views_of(tensor, reader)[0], strict=True):
            if meant.setdefault(letter, axis) != axis or axis is None:
                raise Unclear(GENERAL)
    if len({*meant.values()}) < len(meant):
        raise Unclear(GENERAL)
    factors = " * ".join(map(_operand, tensors))
    along = [axis.name for letter, axis in meant.items() if letter not in output]
    return f"write Sum({factors}, {', '.join(along)})" if along else f"write {factors}"


def _operand(node: ast.AST) -> str:
    """A factor without transposes."""
    node = unmoved(node)
    text = ast.unparse(node)
    return text if isinstance(node, (ast.Name, ast.Call, ast.Attribute)) else f"({text})"
