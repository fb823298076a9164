"""Entrywise operations of torch and numpy as lines of the notation."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence

from derive.language.source.line_reader import LineReader
from derive.language.source.python_operators import is_number
from derive.language.source.shown import ALONE, NotExpressible, Typed, Unclear, line, typed
from derive.language.torch_ops import table, trees
from derive.language.torch_ops.text import text
from derive.language.torch_ops.trees import Tree

NAMES_OF_OPERANDS = ("input", "self", "a", "x1", "tensor")
OTHER_NAMES = {"a_min": "min", "a_max": "max", "x2": "other", "y": "other", "b": "other"}
ROWS = {"subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div"}
ROWS |= {"power": "pow", "float_power": "pow", "fabs": "abs", "clip": "clamp"}
ROWS |= {"fmax": "maximum", "fmin": "minimum"}
CONDITIONS = ("condition", "mask")
ALONG = {"Dim", "Dims", "Reduction"}  # kinds of arguments that only rows with dimensions have
# Arithmetic, which front ends handle themselves.
ARITHMETIC: dict[str, Callable[..., Tree]] = {
    "add": lambda input, other: input + other,
    "sub": lambda input, other: input - other,
    "mul": lambda input, other: input * other,
    "div": lambda input, other: input / other,
    "pow": lambda input, exponent: input**exponent,
}


def beside(parts: Sequence[ast.AST]) -> str:
    """The line that stacks several tensors along a new axis."""
    texts = [(ast.unparse(part), isinstance(part, ALONE)) for part in parts]
    operands = [text if alone else f"({text})" for text, alone in texts]
    code = " + ".join(f"OneHot({i}, State) * {operand}" for i, operand in enumerate(operands))
    return f'write {code}, with State = Axis("State", {len(parts)})'


def entrywise(name: str, x: list[ast.AST], call: ast.Call, reader: LineReader) -> str:
    """The line for a call of an operation, on the tensor in ``x`` where it is a method; '' where it
    is none of them, or not called as they are.
    """
    name = ROWS.get(name, name)
    row, make = table.get(name), ARITHMETIC.get(name)
    if (row is None and make is None) or (row and {p.annotation for p in row.arguments} & ALONG):
        return ""
    names = [p.name for p in row.arguments] if row else list(inspect.signature(make).parameters)
    in_order = sorted(names, key=lambda n: n != "input") if x else names
    given: dict[str, ast.AST] = dict(zip(in_order, [*x, *call.args], strict=False))
    for keyword in call.keywords:
        named = "input" if keyword.arg in NAMES_OF_OPERANDS else keyword.arg
        given[OTHER_NAMES.get(named, named)] = keyword.value
    found = {n: _operand(n, node, reader) for n, node in given.items()}
    try:
        if row:
            return line(row, found)
        return text(make(**{n: each.tree for n, each in found.items()}), str)
    except (Unclear, NotExpressible, TypeError, IndexError):
        return ""


def _operand(name: str, node: ast.AST, reader: LineReader):
    if name in CONDITIONS:
        tree = typed(node).tree
        return Typed(trees.compared("!=", tree, trees.ZERO) if is_number(node, reader) else tree)
    if isinstance(node, ast.Constant) and not isinstance(node.value, (int, float)):
        return node.value
    return typed(node)
