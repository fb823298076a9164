"""Functions of torch and numpy in a forward, where a page has neither: what to write instead."""

from __future__ import annotations

import ast

from derive.source.spellings import in_the_notation, is_pointwise

LIBRARIES = {"torch", "numpy", "np", "jax", "jnp", "math", "F", "nn", "tf"}
LEAVE_OUT = "leave the import out"


def written_here(text: str, line: int) -> str:
    """What to write for the call that stands on ``line``, or for the first one of a library that is
    imported there; nothing where there is none.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return ""
    imports = (ast.Import, ast.ImportFrom)
    imported = any(isinstance(n, imports) and n.lineno == line for n in ast.walk(tree))
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if not imported and not call.lineno <= line <= (call.end_lineno or line):
            continue
        library, _, name = ast.unparse(call.func).rpartition(".")
        if library.split(".")[0] in LIBRARIES:
            instead = _instead(name, ", ".join(map(ast.unparse, call.args)))
            return f"{LEAVE_OUT}, and {instead}" if imported else instead
    return f"{LEAVE_OUT}: a forward is written with SymPy's functions" if imported else ""


def _instead(name: str, arguments: str) -> str:
    if is_pointwise(name):
        return f"write {name}({arguments}), with: from sympy import {name}"
    return in_the_notation(name)
