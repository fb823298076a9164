"""The lean module of a forward as text."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import wrap

import jinja2

from codegen.build import program_of
from codegen.header import header
from codegen.program import Program
from codegen.targets.lean.helpers import CALLED, printed_helpers
from codegen.targets.lean.kept import with_little_kept
from codegen.targets.lean.options import WithoutOptions
from codegen.targets.lean.outside import Outside
from codegen.targets.lean.page import LeanPage
from codegen.targets.torch.documentation import formula_lines, item, part, safe
from derive.formulas.text import formula
from derive.proving.proved import Proved

TEMPLATES = Path(__file__).parent / "templates"
WIDTH = 96  # of a line in a docstring


def lean_program(proved: Proved, source: Path, digest: str) -> Program:
    """What a lean module prints of a proof."""
    return with_little_kept(program_of(proved, source, digest))


def module_text(program: Program, outside: Outside, plain: WithoutOptions | None = None) -> str:
    """The text of the module."""
    page = LeanPage(program, outside, plain)
    values = {
        "header": header(program.source, program.source_hash),
        "title": program.title,
        "documentation": documentation(program, outside, plain),
        "entry": page.entry(),
        "pairs": page.pairs(),
    }
    template = _environment().get_template("module.py.jinja")
    text = template.render(**values, imports=(), helpers=())
    names = dict.fromkeys([*CALLED.findall(text), *re.findall(r"\b_(by_lines)\(", text)])
    helpers = tuple(printed_helpers(names))
    text = template.render(**values, imports=imports_of(text, helpers), helpers=helpers)
    return CALLED.sub(r"_\1", text).rstrip() + "\n"


def imports_of(text: str, helpers: tuple[str, ...]) -> tuple[str, ...]:
    """The lines that import what the text names."""
    code = "\n".join([text, *helpers])
    found = [f"import {m}" for m in ("functools", "math") if f"{m}." in code]
    found += [""] * bool(found)
    found += ["import torch", "from torch import Tensor"]
    if "_are_functorch_transforms_active" in code:
        found.append("from torch._C import _are_functorch_transforms_active")
    if "forward_ad." in code:
        found.append("from torch.autograd import forward_ad")
    return tuple(found)


def documentation(
    program: Program, outside: Outside, plain: WithoutOptions | None
) -> tuple[str, ...]:
    """The lines of the docstring after the first one."""
    stated = [f"{s.name} = {formula(s.expression)}" for s in outside.inside.statements]
    return (
        *part(safe(program.doc).split("\n") if program.doc else ()),
        *part(["Forward:", "", *formula_lines(stated)]),
        *part(["Backward:", "", *formula_lines(program.formulas)]),
        *part(_without_options(plain)),
        *part(wrap(f"Proved: {program.proved}.", WIDTH)),
        *part([line for words in _edges(program, outside) for line in item(words)]),
    )


def _without_options(plain: WithoutOptions | None) -> list[str]:
    """The backward of the calls that pass nothing optional."""
    if plain is None:
        return []
    words = wrap(f"Backward where {plain.when}, derived and proved too:", WIDTH)
    return [*words, "", *formula_lines(plain.program.formulas)]


def _edges(program: Program, outside: Outside) -> list[str]:
    found = [f"NaN if {axis} is 0: {name} divides by it." for name, axis in program.means]
    found += [f"{line}." for line in program.unsafe]
    if outside.ignoring:
        label = outside.ignoring[0].label.name
        found.append(f"Entries where {label} is ignore_index are 0 and have no gradient.")
    given = [p.name for p in program.forward.parameters if p.role == "given"]
    found += [f"{name} gets no gradient." for name in given]
    return found


def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,
    )
