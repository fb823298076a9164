"""The modules that compute an axis in parts, on the ranks of a group, as text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import jinja2

from codegen.files.header import header
from codegen.program import Program
from codegen.sharding import Sharded
from codegen.targets.torch.helpers import CALLED, printed_helpers
from codegen.targets.torch.shard_documentation import sharded_documentation
from codegen.targets.torch.shard_pairs import ShardedPair
from derive.running.writing import MARK

TEMPLATES = Path(__file__).parent / "templates"
RUNTIME, RANKS = "_runtime.py", "_ranks.py"  # what they import: beside them wherever they stand
IMPORTS = {  # by the word in a text that needs them
    "math.": "import math",
    "(NamedTuple)": "from typing import NamedTuple",
}


def beside(text: str) -> dict[str, str]:
    """The files that a module with this text imports from its folder, by name."""
    imported = re.findall(r"^from \. import (.*)$", text, re.M)
    names = {f"{name}.py" for line in imported for name in line.split(", ")}
    return {file: _copied(file) for file in (RUNTIME, RANKS) if file in names}


def _copied(file: str) -> str:
    return f"# {MARK}\n{Path(__file__).with_name(file).read_text()}"


def sharded_module(sharded: Sharded) -> str:
    """The text of the module for one rank of each group."""
    page, said = ShardedPair(sharded), sharded_documentation(sharded)
    functions = (page.forward(), page.backward(), page.atoms(), page.chain())
    values = {"functions": functions, "cores": page.plain_pair(), "documentation": said}
    return _module("sharded.py.jinja", page, sharded.program, values)


def _module(file: str, page: ShardedPair, program: Program, more: Mapping[str, object]) -> str:
    template = _environment().get_template(file)
    values = more | {
        "title": program.title,
        "name": program.name,
        "public": page.public(),
        "shapes": page.shapes(program.forward),
        "asked": page.arguments_asked(),
        "prepared": page.prepared_names,
        "pair": page.pair(),
        "header": header(program.source, program.source_hash),
    }
    text = template.render(**values, imports=(), helpers=())
    called = [name for name in CALLED.findall(text) if name not in _shared()]
    helpers = printed_helpers(dict.fromkeys(called))
    code = "\n".join([text, *helpers])
    imports = [line for part, line in IMPORTS.items() if part in code]
    text = template.render(**values, imports=imports, helpers=helpers)
    return CALLED.sub(lambda found: f"_{found[1]}" if found[1] in called else found[0], text)


@cache
def _shared() -> frozenset[str]:
    """The names that modules import with `RUNTIME`; other callees stand in the modules."""
    text = Path(__file__).with_name(RUNTIME).read_text(encoding="utf-8")
    return frozenset(re.findall(r"^(?:def |class )?(\w+)", text, re.M))


def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
