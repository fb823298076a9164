"""Write the imported forward to a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from codegen.importing.asked import GIVEN, LABELS
from codegen.importing.names import CALLS, SYMPYS
from codegen.importing.reader import ONE_AXIS, Declared, Reader
from codegen.importing.subjects import Subject
from derive.language.notation.forward import is_in_the_way
from derive.language.source.spellings import DECLARATIONS, NODES
from derive.language.torch_ops import trees
from derive.language.torch_ops.text import text

OURS = {*NODES, *DECLARATIONS} - {"Axis", "Forward", "Outputs"}  # imported in any case, or asked
OURS |= CALLS.difference(SYMPYS)
WIDTH = 100  # of a line
WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Written:
    """The text of a forward's file, the user's line behind each of its lines, and the inputs
    renamed because a function it calls has their name.
    """

    name: str
    text: str
    lines: dict[int, int]
    names: dict[str, str]


def written(reader: Reader, subject: Subject, kept: frozenset[str] = frozenset()) -> Written:
    """The file for what ``reader`` read of ``subject``; inputs in ``kept`` have no gradient."""
    sizes = reader.sizes
    calls = set().union(*(trees.calls_in(s.tree) for s in reader.statements))
    known = [*(d.name for d in reader.inputs), *reader.scalars.values()]
    names = {name: f"{name}_" for name in known if name in calls}
    found = [(s.name, trees.with_names(s.tree, names), s.line) for s in reader.statements]
    statements = [
        (name, _ordered(text(tree, sizes.like), reader.ordered.get(name)), line)
        for name, tree, line in found
    ]
    met = set().union(*(trees.tensors_in(s.tree) for s in reader.statements))
    declared = [*((d.name, _declaration(d, kept)) for d in reader.inputs), *_scalars(reader)]
    inputs = [(names.get(n, n), words) for n, words in declared if n in met]  # unused inputs
    used = set(WORD.findall(" ".join(words for _, words, *_ in [*statements, *inputs])))
    formulas = sizes.formulas | reader.shapes.formulas
    used |= set(WORD.findall(" ".join(formulas[a] for a in formulas if a in used)))
    axes = {a: size for a, size in sizes.of_axis.items() if a in used}
    name = class_name(subject.name)
    where = f"``{subject.name}`` of {Path(subject.file).name}"
    doc = _paragraph(subject.doc) or f"{where}, line {subject.place.line}."
    theirs, ours = (sorted(used & set(known)) for known in (SYMPYS, OURS))
    theirs = [word for word in theirs if word not in axes and word not in dict(inputs)]
    head = [f'"""Imported from {where}."""', ""]
    head += [*_import("sympy", theirs), ""] if theirs else []
    ours += ["Outputs"] * (len(reader.returned) > 1)
    head += [*_import("gradform", sorted(["Axis", "Forward", *ours])), ""]
    lengths = {a: f", {size}" if size.is_Integer else "" for a, size in axes.items()}
    lengths |= {ONE_AXIS: ", 1"} if ONE_AXIS in used else {}
    plain = {axis: length for axis, length in lengths.items() if axis not in formulas}
    head += _axes([f'Axis("{axis}"{length})' for axis, length in plain.items()], [*plain])
    head += [f'{a} = Axis("{a}", {text})' for a, text in formulas.items() if a in used]
    body = ["", "", f"class {name}(Forward):", *_docstring(doc), ""]
    body += [f"    {n} = {declaration}" for n, declaration in inputs] + [""]
    lines = {}
    for own, words, line in statements:
        lines[len(head) + len(body) + 1] = line
        body.append(f"    {own} = {words}")
    if len(reader.returned) > 1:
        body.append(f"    outputs = Outputs({', '.join(reader.returned)})")
    return Written(name, "\n".join([*head, *body]) + "\n", lines, names)


def _ordered(words: str, axes: list[str] | None) -> str:
    return words if axes is None else f"Ordered({words}, {', '.join(axes)})"


def class_name(name: str) -> str:
    """The function's name in CamelCase; lengthened if it would shadow a name of its module."""
    found = "".join(part[:1].upper() + part[1:] for part in name.split("_") if part)
    return f"{found}Forward" if is_in_the_way(found) else found


def _scalars(reader: Reader) -> Iterator[tuple[str, str]]:
    for path, name in reader.scalars.items():
        yield name, f"Scalar({reader.floats.defaults[path]!r})"


def _declaration(declared: Declared, kept: frozenset[str]) -> str:
    axes = ", ".join(axis for dim in declared.dims for axis in (dim or (ONE_AXIS,)))
    if declared.kind == LABELS:
        ignored = [] if declared.ignored is None else [f"ignored={declared.ignored}"]
        return f"Label({', '.join([*[axes] * bool(axes), *ignored])})"
    given = declared.kind == GIVEN or declared.name in kept
    return f"{'Given' if given else 'Input'}({axes})"


def _axes(made: list[str], names: list[str]) -> list[str]:
    """The declaration of axes, on one line if it fits; none without dimensions."""
    if not names:
        return []
    line = f"{', '.join(names)} = {', '.join(made)}"
    if len(line) <= WIDTH:
        return [line]
    return [f"{name} = {axis}" for name, axis in zip(names, made, strict=True)]


def _import(module: str, names: Iterable[str]) -> list[str]:
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        return [line]
    return [f"from {module} import (", *(f"    {name}," for name in names), ")"]


def _paragraph(doc: str) -> str:
    return " ".join(doc.split("\n\n")[0].split()).replace("\\", "/").replace('"""', "'''")


def _docstring(doc: str) -> list[str]:
    """The docstring, on one line if it fits."""
    if len(doc) + len('    """"""') <= WIDTH:
        return [f'    """{doc}"""']
    lines, line = [], '    """'
    for word in doc.split():
        if len(line) + len(word) + 1 > WIDTH:
            lines.append(line)
            line = "    " + word
        else:
            line += word if line.endswith('"""') or line == "    " else f" {word}"
    return [*lines, line, '    """']
