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
FILE = Path(__file__).with_name("_helpers.py")


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
    text = FILE.read_text(encoding="utf-8")
    lines = text.split("\n")
    return {
        node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno])
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef)
    }
