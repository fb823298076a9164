"""Functions that a lean module prints into itself where its lines call them (``_helpers.py``);
others, which are plain torch throughout, are taken from the runtime of modules
(``torch/_runtime.py``). Both are read as text, so that nothing imports torch to print.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

CALLED = re.compile(r"_runtime\.(\w+)")
FILES = (Path(__file__).with_name("_helpers.py"), Path(__file__).parents[1] / "torch/_runtime.py")


def printed_helpers(names: Iterable[str]) -> tuple[str, ...]:
    """The source of these functions and of those that they call, each with a leading underscore."""
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
    """The text of every function, by its name; those of the first file come first."""
    found: dict[str, str] = {}
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                lines = text.split("\n")[first - 1 : node.end_lineno]
                found.setdefault(node.name, "\n".join(lines))
    return found
