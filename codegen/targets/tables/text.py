"""The table of a module as Python text: the shapes of all names once, then its rows."""

from __future__ import annotations

import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from codegen.targets.tables.row import Axes, Called, Line, Row, Same
from codegen.targets.torch.lines import LONGEST
from codegen.targets.torch.wrapping import wrapped

NAMED = re.compile(r"(?<![\w.\"])(math|torch|_pair|_runtime)\.")  # in lines of torch
INSIDE = " " * 4  # before what is given to a call, and before the lines of a function


@dataclass(frozen=True)
class Table:
    """As its template prints it: lines of ``shapes``, those of ``functions`` that rows name, and
    calls that add the ``rows``.
    """

    shapes: tuple[str, ...]
    functions: tuple[str, ...]
    rows: tuple[str, ...]


def table_of(rows: Sequence[Row], fixed: Mapping[str, int]) -> Table:
    shapes = _most_common(rows)
    filled = {name: number for row in rows for name, number in row.filled.items()}
    whole = {name for row in rows for name in row.whole}
    functions = _Functions()
    texts = tuple(_row(row, shapes, functions) for row in rows)
    lines = [*_declared(shapes, filled, whole), *(f"{n} = {size}" for n, size in fixed.items())]
    printed = [line for text in functions.texts for line in ("", "", text)]
    return Table(tuple(lines), (*printed, *[""] * bool(printed)), texts)


def imports_of(
    name: str, table: Table, libraries: Sequence[str], folder: Sequence[str]
) -> list[str]:
    """The lines that import what a table has named; with lines for ``libraries``, and for what
    stands in its ``folder``.
    """
    named = {*NAMED.findall("\n".join((*table.functions, *table.rows)))}
    lines = [*libraries, *(f"import {module}" for module in ("math", "torch") if module in named)]
    groups: dict[bool, list[str]] = {True: [], False: []}  # by whether Python brings them
    for line in sorted(lines, key=lambda line: (line.startswith("from"), line)):
        groups[line.split()[1].split(".")[0] in sys.stdlib_module_names].append(line)
    found = [line for group in groups.values() if group for line in (*group, "")]
    found += [f"from .. import {name} as _module", *folder]
    own = sorted(named & {"_pair", "_runtime"})
    return found + [""] * bool(own) + [f"{each} = _module.{each}" for each in own]


def _most_common(rows: Sequence[Row]) -> dict[str, Axes]:
    found: dict[str, Counter[Axes]] = {}
    for row in rows:
        for name, axes in row.shapes.items():
            found.setdefault(name, Counter())[axes] += 1
    return {name: counted.most_common(1)[0][0] for name, counted in found.items()}


def _declared(shapes: Mapping[str, Axes], filled: Mapping[str, str], whole: set[str]) -> list[str]:
    """A line for all that lie along the same axes."""
    alike: dict[str, list[str]] = {}
    for name, axes in shapes.items():
        kind = _along(axes) + ", whole numbers" * (name in whole)
        told = f"{name} = {filled[name]}" if name in filled else name
        alike.setdefault(kind, []).append(told)
    return [
        f"{line}: {kind}"
        for kind, names in alike.items()
        for line in _filled(names, LONGEST - len(INSIDE + kind) - 2)
    ]


def _filled(names: Sequence[str], width: int) -> Iterator[str]:
    """The names on lines of that ``width``."""
    line = ""
    for name in names:
        if line and len(line) + len(name) + 2 > width:
            yield line
            line = ""
        line += f", {name}" if line else name
    yield line


def _along(axes: Axes) -> str:
    return " ".join(axes) or "one number"


class _Functions:
    """Functions in Python for what is no expression on one line, each once."""

    def __init__(self):
        self.names: dict[str, str] = {}
        self.texts: list[str] = []

    def name(self, line: Line) -> str:
        body = [line.text]
        if line.expression:
            body = [f"return {line.expression}"]
        elif line.makes:
            body.append(f"return {', '.join(line.makes)}")
        text = "\n".join(INSIDE + part for part in body)
        known = "|".join((*line.takes, text))
        if known not in self.names:
            start = own = f"_{line.makes[0] if line.makes else 'checked'}"
            number = 1
            while own in self.names.values():
                number += 1
                own = f"{start}_{number}"
            self.names[known] = own
            self.texts.append(f"{wrapped(f'def {own}', line.takes, ':')}\n{text}")
        return self.names[known]


def _row(row: Row, shapes: Mapping[str, Axes], functions: _Functions) -> str:
    """The call that adds it."""
    own = {name: axes for name, axes in row.shapes.items() if axes != shapes[name]}
    shown = {name for step in row.steps if isinstance(step, Called) for name in step.reads}
    taken = {name for step in row.steps if isinstance(step, Line) for name in step.takes}
    told = [Same("", name) for name in own if name in taken - shown]
    parts = [f'"{" ".join([*filter(None, [" | ".join(row.words)]), row.function])}"']
    parts += [f'"{row.divisor} = {" | ".join(row.divisors)}"'] * bool(row.divisors)
    parts += [_step(step, own, functions) for step in (*told, *row.steps)]
    if row.of:
        parts.append(f'of="{" | ".join(" ".join(part) for part in row.of)}"')
    if row.saved:
        parts.append(f'saved="{", ".join(row.saved)}"')
    line = f"table.add({', '.join(parts)})"
    if len(line) <= LONGEST and "\n" not in line:
        return line
    return "\n".join(["table.add(", *(f"{INSIDE}{part}," for part in parts), ")"])


def _step(step: Line | Called | Same, own: Mapping[str, Axes], functions: _Functions) -> str:
    if isinstance(step, Line):
        made, short = ", ".join(step.makes), f"lambda {', '.join(step.takes)}: {step.expression}"
        line = f'("{made}", {short})'
        if step.expression and len(f"{INSIDE}{line},") <= LONGEST:
            return line.replace("lambda :", "lambda:")
        return f'("{made}", {functions.name(step)})'

    def told(names: Sequence[str]) -> str:
        return ", ".join(f"{n}: {_along(own[n])}" if n in own else n for n in names)

    if isinstance(step, Same):
        return f'"{step.name} = {step.of}"' if step.name else f'"{told([step.of])}"'
    given = [told(step.reads), ", ".join(step.sizes), ", ".join(step.numbers)]
    text = f"{step.name}({'; '.join(given).rstrip('; ')}) -> {told(step.makes)}"
    lines = textwrap.wrap(text, LONGEST - len(INSIDE) - 4, break_long_words=False)
    return f"\n{INSIDE}".join(f'"{line}{" " * (line is not lines[-1])}"' for line in lines)
