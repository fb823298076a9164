"""Which variable of the user's a node of the graph is: the last one of the line that assigns it."""

from __future__ import annotations

import ast
import builtins
import keyword
import linecache
import re
from collections.abc import Sequence

import sympy
import torch

import derive
from codegen.importing.trace import lines_of
from derive.language.functions import TABLE
from derive.language.names import RESERVED

ASSIGNMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)
# Names that a line of the file may call, and that a tensor would hide.
CALLS = {row.called()[0] for row in TABLE if row.in_torch}
WORDS = {"And", "E", "Eq", "Ne", "Not", "Or", "Piecewise", "Rational", "oo", "pi", "sqrt"}
SYMPYS = WORDS | {name for name in CALLS if hasattr(sympy, name)}  # those of a file that is written
OF_SYMPY = SYMPYS | {"I", "N", "O", "Q", "S"}
TAKEN = {*OF_SYMPY, *derive.PUBLIC, *RESERVED, *keyword.kwlist, "lambda"}


def assigned_names(nodes: Sequence[torch.fx.Node], file: str) -> dict[torch.fx.Node, str]:
    """The nodes that the user's lines give a name to."""
    runs: list[tuple[ast.stmt, list[torch.fx.Node]]] = []
    statements = _statements(file)
    for node in nodes:
        lines = lines_of(node, file) if node.op == "call_function" else []
        if not lines or isinstance(node.meta.get("val"), (torch.SymInt, torch.SymFloat)):
            continue
        around = [s for s in statements if s.lineno <= lines[-1] <= (s.end_lineno or 0)]
        if len(around) == 1:  # of several on one line nothing says which it was
            (inner,) = around
            if not runs or runs[-1][0] is not inner:
                runs.append((inner, []))
            runs[-1][1].append(node)
    found: dict[torch.fx.Node, str] = {}
    for statement, run in runs:
        for own in _rounds(run):
            found |= _targets(statement, own)
    return found


def _rounds(nodes: list[torch.fx.Node]) -> list[list[torch.fx.Node]]:
    """A line that a loop runs again has the same operations each time."""
    kinds = [str(node.target) for node in nodes]
    for length in range(1, len(nodes) // 2 + 1):
        if len(nodes) % length == 0 and kinds == kinds[:length] * (len(nodes) // length):
            return [nodes[i : i + length] for i in range(0, len(nodes), length)]
    return [nodes]


def _statements(file: str) -> list[ast.stmt]:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return []
    bodies = (f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef))
    return [s for body in bodies for s in ast.walk(body) if isinstance(s, ASSIGNMENTS)]


def _targets(statement: ast.stmt, nodes: list[torch.fx.Node]) -> dict[torch.fx.Node, str]:
    if isinstance(statement, ast.Return):
        return {}
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    if len(targets) != 1:
        return {}
    (target,) = targets
    if isinstance(target, ast.Name):
        return {nodes[-1]: target.id}
    if isinstance(target, ast.Attribute):
        return {nodes[-1]: target.attr}
    if isinstance(target, ast.Tuple):
        parts = [n for n in nodes if getattr(n.target, "__name__", "") == "getitem"]
        if len(parts) == len(target.elts):
            pairs = zip(parts, target.elts, strict=True)
            return {n: e.id for n, e in pairs if isinstance(e, ast.Name)}
    return {}


def plain_name(name: str) -> str:
    """A name that can stand in code: ``fc1.weight`` is ``fc1_weight``."""
    return re.sub(r"\W", "_", name).strip("_") or "value"


def is_taken(name: str) -> bool:
    return name in TAKEN or hasattr(builtins, name) or (name in vars(sympy) and len(name) == 1)
