"""Helper functions that a module includes if its lines call them: those of ``_helpers.py``, which
is read as text, so that printing does not import torch.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

CALLED = re.compile(r"_runtime\.(\w+)")
FILES = [Path(__file__).with_name(name) for name in ("_helpers.py", "_chunks.py")]
AUTOGRAD = Path(__file__).with_name("_in_chunks.py")
RANKS = Path(__file__).with_name("_ranks.py")


def printed_helpers(names: Iterable[str]) -> tuple[str, ...]:
    """The source of these functions and of those that they call, with leading underscores."""
    sources, found = _sources(), {}
    waiting = list(names)
    while waiting:
        name = waiting.pop(0)
        if name in found:
            continue
        found[name] = sources[name]
        words = dict.fromkeys(re.findall(r"(?<![.\w])([a-z_]\w*)\(", sources[name]))
        waiting += [word for word in words if word != name and word in sources]
    called = re.compile(rf"(?<![.\w])({'|'.join(found)})(?=\()") if found else None
    return tuple(called.sub(r"_\1", source) for source in found.values())


@cache
def _sources() -> Mapping[str, str]:
    """The text of every function, by its name."""
    found: dict[str, str] = {}
    for file in FILES:
        found |= _texts(file, ast.FunctionDef)
    return found


def _texts(file: Path, kind: type[ast.stmt], of: str = "") -> dict[str, str]:
    """The text of all functions or classes of a file, or of the methods of a class."""
    text = file.read_text(encoding="utf-8")
    lines, body = text.split("\n"), ast.parse(text).body
    if of:
        (own,) = (n for n in body if isinstance(n, ast.ClassDef) and n.name == of)
        body = own.body
    return {
        node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno])
        for node in body
        if isinstance(node, kind)
    }


def printed_chunk(text: str) -> str:
    """The class of a chunk, with the methods that the lines of a module call."""
    methods = _texts(RANKS, ast.FunctionDef, "Part")
    own = _texts(FILES[1], ast.ClassDef)["Chunk"].replace("class Chunk(Part)", "class _Chunk")
    waiting = [name for name in re.findall(r"\bover_*\.(\w+)\(", text) if name in methods]
    found: dict[str, str] = {}
    while waiting:
        name = waiting.pop(0)
        found[name] = methods[name]
        called = re.findall(r"self\.(\w+)\(", methods[name])
        waiting += [other for other in called if other not in found]
    return "\n\n".join([own, *found.values()])


def printed_autograd() -> tuple[str, ...]:
    """The source of what autograd sees of functions in chunks."""
    text = AUTOGRAD.read_text(encoding="utf-8")
    found = [
        node for node in ast.parse(text).body if isinstance(node, (ast.ClassDef, ast.FunctionDef))
    ]
    classes = "|".join(node.name for node in found if isinstance(node, ast.ClassDef))
    functions = "|".join(node.name for node in found if isinstance(node, ast.FunctionDef))
    own = re.compile(rf"(?<![.\w])(?:({classes})\b|({functions}|formats|uncast)(?=\())")
    return tuple(own.sub(r"_\g<0>", ast.get_source_segment(text, node)) for node in found)
