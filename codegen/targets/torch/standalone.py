"""A module and the runtime in one file, for those who paste one file into another repository."""

from __future__ import annotations

import ast
import re
import tokenize
from io import StringIO

HOLDS = "Common to all functions:"  # in the docstring of the runtime
IMPORTS = (ast.Import, ast.ImportFrom)


def standalone(module: str, runtime: str) -> str:
    """The text of a module that needs torch alone: the runtime's functions stand before its own, as
    ``_name`` for ``_runtime.name``.
    """
    own, imported = _parts(runtime)
    names = _defined(own)
    own = _renamed(own, names)
    said = (ast.get_docstring(ast.parse(runtime)) or "").partition(HOLDS)[2].partition("Long:")[0]
    said = "\n".join(f"# {line}".rstrip() for line in (HOLDS + said).strip().splitlines())
    body, needed = _parts(module)
    needed = [line for line in needed if line != "from . import _runtime"]
    head = _head(module).replace("see _runtime.py.", "see the comment below.")
    body = re.sub(r"\b_runtime\.(\w+)", lambda m: _name(m[1], names), body)
    imports = "\n".join(_sorted({*imported, *needed}))
    first, _, rest = body.partition("\n")  # where the module says its name
    parts = [
        f"{head}\nfrom __future__ import annotations\n\n{imports}\n",
        f"# Argument checks, and registration with autograd.\n#\n{said}\n\n{own.strip()}\n\n",
        "# The module itself.\n",
        f"{first}\n{rest}",
    ]
    return "\n".join(parts)


def _name(name: str, names: set[str]) -> str:
    """What is imported there is imported here; what is defined there has a line before it."""
    return f"_{name}" if name in names else name


def _head(module: str) -> str:
    """The comments and the docstring of a module."""
    tree = ast.parse(module)
    return "\n".join(module.splitlines()[: tree.body[0].end_lineno]) + "\n"


def _parts(text: str) -> tuple[str, list[str]]:
    """What follows the imports, and the imports, one a line."""
    tree = ast.parse(text)
    imports = [node for node in tree.body if isinstance(node, IMPORTS)]
    found = [ast.unparse(node) for node in imports if getattr(node, "module", "") != "__future__"]
    return "\n".join(text.splitlines()[imports[-1].end_lineno :]).strip() + "\n", found


def _defined(text: str) -> set[str]:
    """The functions, classes and constants of the first level."""
    names = set()
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def _renamed(text: str, names: set[str]) -> str:
    """The text with ``_name`` for each of the names, but where it is that of an attribute."""
    lines = text.splitlines(keepends=True)
    before, places = "", []
    for token in tokenize.generate_tokens(StringIO(text).readline):
        indented = before == "def" and token.start[1] > len("def ")  # a method
        is_name = token.type == tokenize.NAME and token.string in names
        if is_name and before != "." and not indented:
            places.append(token.start)
        before = token.string
    for row, column in reversed(places):
        line = lines[row - 1]
        lines[row - 1] = f"{line[:column]}_{line[column:]}"
    return "".join(lines)


def _sorted(imports: set[str]) -> list[str]:
    """In the order in which they are written: the standard library, then torch."""
    found = sorted(imports, key=lambda line: ("torch" in line, line.startswith("from"), line))
    place = next(i for i, line in enumerate(found) if "torch" in line)
    return [*found[:place], "", *found[place:]]
