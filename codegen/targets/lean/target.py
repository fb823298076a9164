"""The lean module of a forward as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import wrap

import jinja2

from codegen.building.programs import program_of
from codegen.files.header import header
from codegen.program import NUMBERS, Program
from codegen.program.steps import Assign
from codegen.program.wanted import wanted_by
from codegen.targets.lean.kept import loads_of, with_little_kept
from codegen.targets.lean.outside import Outside
from codegen.targets.lean.page import LeanPage
from codegen.targets.lean.pair import Pair
from codegen.targets.torch.documentation import (
    equal_largest,
    formula_lines,
    item,
    part,
    safe,
)
from codegen.targets.torch.functions import layouts_in
from codegen.targets.torch.helpers import (
    CALLED,
    printed_autograd,
    printed_chunk,
    printed_helpers,
)
from codegen.targets.torch.lines import STEP
from derive.language.formulas.text import formula
from derive.language.notation.definition import IGNORE_INDEX, Statement
from derive.language.notation.forward import Forward
from derive.language.notation.layout import shape
from derive.language.notation.library import source_hash
from derive.language.symbols import Tensor
from derive.proof.proving.proved import Proved

TEMPLATES = Path(__file__).parent / "templates"
WIDTH = 96  # of a line in a docstring
WORD = re.compile(r"[^\s,:]+")


def whole_program(forward: type[Forward], proved: Proved) -> Program:
    """The program that all languages are printed from; ``proved`` is the proof of the forward."""
    file = Path(forward.definition.place.file)
    source = file if file.exists() else Path(forward.definition.name)  # no name of a cell's
    program = program_of(proved, source, source_hash(forward))
    return replace(program, title=_title(program))


def lean_program(forward: type[Forward], proved: Proved) -> Program:
    """The program that a lean module prints, from a proof."""
    return with_little_kept(whole_program(forward, proved))


def _title(program: Program) -> str:
    """The name of the autograd Function: the forward's class, unless that is the name of the
    function, as of a class in lower case.
    """
    if program.title != program.name:
        return program.title
    capitals = "".join(part.capitalize() for part in program.name.split("_"))
    return capitals if capitals != program.name else f"Function{capitals}"


def written(forward: type[Forward], outside: Outside, proved: Proved) -> tuple[Pair, str]:
    """The pair from the proof of ``outside.inside``, and the text of the module, which is not to be
    trusted before it was compared.
    """
    pair = Pair(lean_program(forward, proved), outside)
    return pair, module_text(pair)


def backward_lines(pair: Pair) -> dict[str, str]:
    """The lines for each statement of the closed form, by its name."""
    page, lines = LeanPage(pair), {}
    function = page.program.backward
    printer = page.printer(function)
    everything = frozenset(function.results)
    for step, by in zip(function.steps, wanted_by(function), strict=True):
        if page.is_left_out(step, function):
            continue
        margin = STEP if by == everything or not page.guards_in(function) else STEP + STEP
        line = CALLED.sub(r"_\1", printer.step(step, margin))
        lines[step.name] = f"{lines[step.name]}\n{line}" if step.name in lines else line
    return lines


def saved_in(pair: Pair) -> tuple[str, ...]:
    """The tensors saved for the backward, with their shapes."""
    page, layouts = LeanPage(pair), layouts_in(pair.program.forward)
    layouts |= {p.name: p.layout for p in page.inner}
    numbers = {p.name for p in page.inner if p.role in NUMBERS}
    kept = (name for name in (*page.saved, *page.made) if name not in numbers)
    return tuple(f"{name} {shape(layouts[name])}" for name in kept)


def module_text(pair: Pair, plain: Pair | None = None) -> str:
    """The text of the module; ``plain`` is the pair of calls that pass nothing optional."""
    page = LeanPage(pair, plain)
    return rendered(
        "module.py.jinja",
        header=header(pair.program.source, pair.program.source_hash),
        title=pair.program.title,
        documentation=documentation(pair, plain),
        entries=[page.entry(), *filter(None, [page.unchecked()])],
        pairs=page.pairs(),
    )


def rendered(file: str, libraries: Sequence[str] = (), **values: object) -> str:
    """A template with the helpers that its lines call, and those that these import; ``libraries``
    are more imports.
    """
    template = _environment().get_template(file)
    text = template.render(**values, imports=(), helpers=())
    called = [*CALLED.findall(text), *re.findall(r"\b_(by_lines)\(", text)]
    of_autograd = printed_autograd() if "in_chunks" in called else ()
    called += ["formats", "uncast"] * bool(of_autograd)
    names = dict.fromkeys(name for name in called if name not in ("LoopsOfChunks", "in_chunks"))
    helpers = tuple(printed_helpers(names))
    helpers = tuple(re.sub(r"\bChunk\b", "_Chunk", each) for each in helpers)
    helpers = (printed_chunk(text), *helpers) if "chunks" in names else helpers
    helpers = (*of_autograd, *helpers)
    text = template.render(**values, imports=imports_of(text, helpers, libraries), helpers=helpers)
    return CALLED.sub(r"_\1", text).rstrip() + "\n"


def imports_of(
    text: str, helpers: tuple[str, ...], libraries: Sequence[str] = ()
) -> tuple[str, ...]:
    """The import lines for names in the text."""
    code = "\n".join([text, *helpers])
    found = [f"import {m}" for m in ("functools", "math") if f"{m}." in code]
    found += ["from collections.abc import Callable"] * ("Callable" in code)
    found += ["from typing import NamedTuple"] * ("(NamedTuple)" in code)
    found += [""] * bool(found)
    found += ["import torch", *libraries, "from torch import Tensor"]
    found += ["", "from . import _ranks"] * ("_ranks." in code)
    return tuple(found)


def documentation(pair: Pair, plain: Pair | None) -> tuple[str, ...]:
    """The lines of the docstring after the first one."""
    program, outside = pair.program, pair.outside
    stated = _stated(outside.inside.statements, program.formulas)
    derived = [line for line in program.formulas if line not in stated]
    return (
        *part(safe(program.doc).split("\n") if program.doc else ()),
        *part(["Forward:", *formula_lines(stated)]),
        *part(["Backward:", *formula_lines(derived)]),
        *(_without_options(plain, {*stated, *derived}) if plain else ()),
        *part(wrap(f"Proved: {program.proved}.", WIDTH)),
        *part([line for words in _edges(pair, plain) for line in item(words)]),
    )


def _without_options(plain: Pair, known: set[str]) -> tuple[str, ...]:
    """The docstring's lines on the backward of calls that pass nothing optional."""
    derived = [line for line in plain.program.formulas if line not in known]
    return part([*wrap(f"Backward where {plain.when}:", WIDTH), *formula_lines(derived)])


def _says(lines: Iterable[str], line: str) -> bool:
    """True if one of the lines has all the words of this one, in its order."""
    for other in lines:
        words = iter(WORD.findall(other))
        if all(word in words for word in WORD.findall(line)):
            return True
    return False


def _stated(statements: Sequence[Statement], formulas: Sequence[str]) -> list[str]:
    """The statements; an output that is an alias of one replaces its name."""
    named, last = {}, statements[-1]
    if isinstance(last.expression, Tensor) and statements[1:]:
        own = re.compile(rf"\b{last.expression.name}\b")
        others = [formula(s.expression) for s in statements[:-1]]
        if not any(own.search(e) for e in (*others, *formulas)):
            named, statements = {last.expression.name: last.name}, statements[:-1]
    return [f"{named.get(s.name, s.name)} = {formula(s.expression)}" for s in statements]


def _edges(pair: Pair, plain: Pair | None) -> list[str]:
    """Problems found in trials, and the effect of labels and masks."""
    program, outside = pair.program, pair.outside
    found = [f"{line}." for line in program.unsafe]
    if not pair.twice:
        found.append(f"Second derivatives are refused: {program.without_second}.")
    if plain:
        more = (line for line in plain.program.unsafe if not _says(program.unsafe, line))
        found += [f"Where {plain.when}: {line}." for line in more]
    found += equal_largest(program)
    found += _centred_twice(pair, *filter(None, [plain]))
    found += [f"Entries where {label} is {IGNORE_INDEX} are ignored." for label in program.ignored]
    for ignoring in outside.ignoring:
        label = ignoring.label.name
        found.append(f"Entries where {label} is {IGNORE_INDEX} are 0 and have no gradient.")
    if given := [p.name for p in program.forward.parameters if p.role == "given"]:
        found.append(f"{', '.join(given)} {'get' if given[1:] else 'gets'} no gradient.")
    return found


def _centred_twice(*pairs: Pair) -> list[str]:
    """The reason for the lines that subtract from a value its own mean, which is 0."""
    found: dict[str, None] = {}
    for steps in (pair.program.forward.steps for pair in pairs):
        lines = [step for step in steps if isinstance(step, Assign)]
        found |= {s.name: None for s in lines if s.name in loads_of(s)}
    return [f"{name} is centred twice: rounding leaves it a mean." for name in found]


def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,
    )
