"""Recover the user's variable names: a node is named by the line that assigns it."""

from __future__ import annotations

import ast
import builtins
import keyword
import linecache
import re
from collections.abc import Sequence

import sympy
import torch

from codegen.importing.trace import lines_of
from derive import PUBLIC
from derive.language.functions import TABLE
from derive.language.names import RESERVED

ASSIGNMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)
# Names that a line of the file may call and a tensor must not shadow.
CALLS = {row.called()[0] for row in TABLE if row.in_torch}
WORDS = {"And", "E", "Eq", "Ne", "Not", "Or", "Piecewise", "Rational", "oo", "pi", "sqrt"}
SYMPYS = WORDS | {name for name in CALLS if hasattr(sympy, name)}  # those of a written file
OF_SYMPY = SYMPYS | {"I", "N", "O", "Q", "S"}
TAKEN = {*OF_SYMPY, *PUBLIC, *RESERVED, *keyword.kwlist, "lambda"}


def assigned_names(nodes: Sequence[torch.fx.Node], file: str) -> dict[torch.fx.Node, str]:
    """The nodes whose line assigns them to a name."""
    runs: list[tuple[ast.stmt, list[torch.fx.Node]]] = []
    statements = _statements(file)
    for node in nodes:
        lines = lines_of(node, file) if node.op == "call_function" else []
        if not lines or isinstance(node.meta.get("val"), (torch.SymInt, torch.SymFloat)):
            continue
        around = [s for s in statements if s.lineno <= lines[-1] <= (s.end_lineno or 0)]
        if len(around) == 1:  # several assignments on one line are ambiguous
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
    """Group the nodes of a loop's line by round; all rounds have the same operations."""
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
    """A valid identifier: ``fc1.weight`` becomes ``fc1_weight``."""
    return re.sub(r"\W", "_", name).strip("_") or "value"


def is_taken(name: str) -> bool:
    return name in TAKEN or hasattr(builtins, name) or (name in vars(sympy) and len(name) == 1)
