"""Refuse Python operators on tensors, and suggest a rewrite.

A check receives a node and its `LineReader`, and raises `NotationError` if the node would evaluate
a tensor, a condition or an axis.
"""

from __future__ import annotations

import ast
from itertools import pairwise

from sympy import Add, Basic, Mul
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanFunction

from derive.language.declarations import Declaration, is_array
from derive.language.errors import NotationError
from derive.language.source.class_source import MISSING
from derive.language.source.line_reader import LineReader, is_symbolic
from derive.language.source.products import product
from derive.language.symbols import Axis, Tensor

ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
LOGICAL = (ast.BitXor, ast.BitAnd, ast.BitOr, ast.LShift, ast.RShift)
LONGEST = 60  # characters of source in a message


def compared(node: ast.Compare, reader: LineReader) -> None:
    sides = [node.left, *node.comparators]
    for (left, right), compare in zip(pairwise(sides), node.ops, strict=True):
        if not (reader.holds(left) or reader.holds(right)) or _is_none(left) or _is_none(right):
            continue
        a, b = written(left), written(right)
        if isinstance(compare, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)):
            differs = isinstance(compare, (ast.IsNot, ast.NotEq))
            name = "Ne" if differs else "Eq"
            sign = {ast.Is: "is", ast.IsNot: "is not", ast.Eq: "==", ast.NotEq: "!="}
            raise NotationError(
                f"{a} {sign[type(compare)]} {b} asks Python whether the two are written alike, and "
                f"is {differs} at once, whatever their entries are",
                f"write {name}({a}, {b}), with {name} from sympy",
            )
        if isinstance(compare, (ast.In, ast.NotIn)):
            raise NotationError(
                f"{written(node)} asks Python what is written there, not what its entries are",
                f"write Or(Eq({a}, ...), Eq({a}, ...)), with Eq and Or from sympy",
            )
    if len(node.ops) > 1 and any(map(reader.is_tensor, sides)):
        pairs = zip(pairwise(sides), node.ops, strict=True)
        parts = ", ".join(written(ast.Compare(a, [op], [b])) for (a, b), op in pairs)
        raise NotationError(
            f"{written(node)} is two comparisons, of which Python drops one",
            f"write And({parts}), with And from sympy",
        )


def joined(node: ast.BoolOp, reader: LineReader) -> None:
    if any(map(reader.is_tensor, node.values)):
        word, name = ("and", "And") if isinstance(node.op, ast.And) else ("or", "Or")
        parts = ", ".join(map(as_condition, node.values))
        raise NotationError(
            f"{written(node)}: Python's {word} takes one of the two, whatever their entries are",
            f"write {name}({parts}), with {name} from sympy",
        )


def as_condition(node: ast.AST) -> str:
    """The text of a part as a condition."""
    if isinstance(node, (ast.Compare, ast.Call)):
        return written(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return f"Not({as_condition(node.operand)})"
    return f"Ne({written(node)}, 0)"


def negated(node: ast.UnaryOp, reader: LineReader) -> None:
    if isinstance(node.op, ast.Invert) and is_number(node.operand, reader):
        raise NotationError(
            f"{written(node)}: this works on conditions, and a tensor is not one",
            f"compare it: Eq({written(node.operand)}, 0)",
        )
    if isinstance(node.op, ast.Not) and reader.is_tensor(node.operand):
        compared = isinstance(node.operand, (ast.Compare, ast.Call))
        code = f"Not({written(node.operand)})" if compared else f"Eq({written(node.operand)}, 0)"
        raise NotationError(
            f"{written(node)}: Python's not is False of every formula, whatever its entries are",
            f"write {code}, with {code.partition('(')[0]} from sympy",
        )


def chosen(node: ast.IfExp, reader: LineReader) -> None:
    if reader.is_tensor(node.test):
        a, b = written(node.body), written(node.orelse)
        raise NotationError(
            f"{written(node)}: Python chooses once, not for every entry",
            f"write Piecewise(({a}, {as_condition(node.test)}), ({b}, True))",
        )


def operated(node: ast.BinOp, reader: LineReader) -> None:
    sides = (node.left, node.right)
    if isinstance(node.op, ast.MatMult) and any(map(reader.is_tensor, sides)):
        raise NotationError(
            f"{written(node)}: @ goes by the order of dimensions, and axes have names instead",
            product("matmul", [*sides], reader),
        )
    for side, other in (sides, sides[::-1]):
        if reader.is_tensor(other) or reader.is_tensor(side):
            _check_operand(node, side, reader)
    if isinstance(node.op, LOGICAL) and any(is_number(side, reader) for side in sides):
        a, b = map(written, sides)
        conditions = ", ".join(map(as_condition, sides))
        name = "Or" if isinstance(node.op, ast.BitOr) else "And"
        powers = {ast.BitXor: f"{a}**{b}", ast.LShift: f"{a} * 2**{b}", ast.RShift: f"{a} / 2**{b}"}
        code = powers.get(type(node.op), f"{name}({conditions})")
        raise NotationError(
            f"{written(node)}: this works on conditions, and a tensor is not one", f"write {code}"
        )


def _check_operand(node: ast.BinOp, side: ast.AST, reader: LineReader) -> None:
    """Refuse an operand of arithmetic that is a condition, a function or an array."""
    value = reader.value(side)
    is_logical = isinstance(node.op, LOGICAL)
    if not is_logical and is_condition(side, value, reader):
        number = ast.Name(f"Piecewise((1, {ast.unparse(side)}), (0, True))", ast.Load())
        left, right = (number if each is side else each for each in (node.left, node.right))
        raise NotationError(
            f"{written(node)}: {written(side)} is a condition, not a number",
            f"write {ast.unparse(ast.BinOp(left, node.op, right))}",
        )
    if callable(value) and not isinstance(value, (Basic, Declaration)) and value is not MISSING:
        raise NotationError(
            f"{written(node)}: {written(side)} is a function that is not called",
            f"call it: write {written(side)}(x)",
        )
    several = isinstance(side, (ast.List, ast.Tuple, ast.Set)) and isinstance(node.op, ARITHMETIC)
    if is_array(value) or several:
        name = side.id if isinstance(side, ast.Name) else "weight"
        raise NotationError(
            f"{written(node)}: {written(side)} is an array, and a formula has none",
            f"declare it, and pass the array to the function: {name} = Given(C)",
        )


def is_condition(side: ast.AST, value: object, reader: LineReader) -> bool:
    """Whether a part of a line is a condition; ``value`` is its value if it is a name."""
    if isinstance(side, ast.Compare):
        return reader.is_tensor(side)
    if isinstance(side, ast.Call):
        function = reader.value(side.func)
        return isinstance(function, type) and issubclass(function, (Relational, BooleanFunction))
    return isinstance(value, (Relational, BooleanFunction))


def is_number(node: ast.AST, reader: LineReader) -> bool:
    """Whether it is a tensor or an arithmetic expression in one, not a condition."""
    value = reader.value(node)
    if isinstance(value, (Tensor, Axis)) or (is_symbolic(value) and isinstance(value, Add | Mul)):
        return True
    return (
        isinstance(node, ast.BinOp) and isinstance(node.op, ARITHMETIC) and reader.is_tensor(node)
    )


def written(node: ast.AST) -> str:
    """The source of a part of a line, up to formatting."""
    text = ast.unparse(node)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
