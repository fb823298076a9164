"""Check conditions and choices as typed: SymPy accepts a tensor as a condition, since both are
symbols, and its errors for malformed pairs do not help.
"""

from __future__ import annotations

import ast

from sympy import Piecewise
from sympy.logic.boolalg import BooleanFunction

from derive.language.errors import NotationError
from derive.language.source.line_reader import LineReader
from derive.language.source.python_operators import is_condition, is_number, written


def check_conditions(function: object, node: ast.Call, reader: LineReader) -> None:
    """Refuse a tensor in place of a condition, and a branch that is not a pair."""
    conditions: list[ast.AST] = []
    if function is Piecewise:
        _check_branches(node, reader)
        pairs = [a for a in node.args if isinstance(a, ast.Tuple) and len(a.elts) == 2]
        conditions = [pair.elts[1] for pair in pairs]
    elif isinstance(function, type) and issubclass(function, BooleanFunction):
        conditions = node.args
    for condition in conditions:
        if is_number(condition, reader):
            raise NotationError(
                f"{written(node)}: {written(condition)} is a tensor, not a condition",
                f"compare it: Ne({written(condition)}, 0)",
            )


def _check_branches(node: ast.Call, reader: LineReader) -> None:
    """Require every branch to be a (value, condition) pair, in that order."""
    found, is_wrong = [], False
    for i, branch in enumerate(node.args):
        pair = getattr(branch, "elts", ())
        if len(pair) == 2:
            value, condition = pair
            turned = _holds(value, reader) and not _holds(condition, reader)
            is_wrong = is_wrong or turned
            found.append((condition, value) if turned else (value, condition))
        elif i == len(node.args) - 1 and not _is_unread(branch, reader):
            is_wrong = True
            found.append((branch, ast.Constant(value=True)))
        else:
            found = []
            break
    flat = len(node.args) == 3 and _holds(node.args[0], reader)
    if flat:  # torch.where's argument order
        condition, *values = node.args
        found = [(values[0], condition), (values[1], ast.Constant(value=True))]
    if found and (is_wrong or flat):
        code = ", ".join(f"({ast.unparse(v)}, {ast.unparse(c)})" for v, c in found)
        raise NotationError(
            f"{written(node)}: every branch is a pair, (value, condition)",
            f"write Piecewise({code})",
        )


def _is_unread(branch: ast.AST, reader: LineReader) -> bool:
    """Whether a branch may be a pair defined elsewhere."""
    value = reader.value(branch)
    return isinstance(branch, (ast.Starred, ast.Call)) or isinstance(value, (tuple, list))


def _holds(node: ast.AST, reader: LineReader) -> bool:
    """Whether it is a condition or True."""
    value = getattr(node, "value", None) if isinstance(node, ast.Constant) else reader.value(node)
    return value is True or is_condition(node, value, reader)
