"""Signatures, calls and tuples as text, broken into lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from codegen.building.arguments import needed
from codegen.program import NUMBERS, Parameter
from codegen.program.values import Value
from codegen.targets.torch.lines import LONGEST, STEP, broken, filled

WITHIN = " " * 8  # indent of lines in a method
KINDS = {
    "scalar": "float",
    "index": "int",
    "size": "int",
    "shape": "tuple[int, ...]",
    "word": "str",
}
UNPACKED = re.compile(r"(?P<names>[\w*, ]+) = (\w+\.shape|_arguments\(|inputs$|outputs$|\d+$)")


def broken_at_its_place(line: str) -> str:
    """A line of a method, itself indented, broken if it is long."""
    own = line.lstrip()
    indent = line[: len(line) - len(own)]
    return indent + broken(own, indent + WITHIN)


def unpacked(names: Sequence[str]) -> str:
    """The left side of ``=`` that unpacks a tuple."""
    return f"{names[0]}," if len(names) == 1 else ", ".join(names)


def typed(p: Parameter) -> str:
    """An argument with its type, and its default if it has one."""
    if p.role == "scalar" and isinstance(p.default, Value):
        return f"{p.name}: float | None = None"
    if p.role == "index":
        return f"{p.name}: int = {p.default}"
    if p.role not in NUMBERS and p.default is not None:
        return f"{p.name}: Tensor | None = None"
    if p.role == "scalar":
        return f"{p.name}: float" + (f" = {p.default!r}" if p.default is not None else "")
    return f"{p.name}: {KINDS.get(p.role, 'Tensor')}"


def public(parameters: Sequence[Parameter]) -> list[str]:
    """The parameters of a differentiable function: a required number after an optional tensor is
    keyword-only.
    """
    arguments, needs = [typed(p) for p in parameters], needed(parameters)
    if not needs:
        return arguments
    place = next(i for i, p in enumerate(parameters) if p.name == needs[0].name)
    return [*arguments[:place], "*", *arguments[place:]]


def free(name: str, taken: set[str]) -> str:
    """``name``, or a longer one if an argument or a statement has it."""
    while name in taken:
        name += "_"
    return name


def used(lines: Sequence[str], returned: str) -> list[str]:
    """``lines`` in which unpacked names that later lines do not use are ``_``."""
    found, later = [], returned
    for line in reversed(lines):
        unpacked = UNPACKED.match(line)
        if unpacked is not None:
            names = [
                name
                if re.search(rf"(?<![.\w]){name.strip('*')}\b", later)
                else "*_"
                if "*" in name
                else "_"
                for name in re.findall(r"[\w*]+", unpacked["names"])
            ]
            if {*names} <= {"_", "*_"}:
                continue
            if len(names) > 1:
                line = line.replace(unpacked["names"], ", ".join(names), 1)
        found.append(line)
        later = f"{line}\n{later}"
    return found[::-1]


def wrapped(head: str, items: Sequence[str], tail: str = "", indent: int = 0) -> str:
    """``head(items)tail`` on one line, or the items below it, as many on each line as fit."""
    line = f"{head}({', '.join(items)}){tail}"
    if indent + len(line) <= LONGEST:
        return line
    lines = filled(items, " " * (indent + 4))
    return "\n".join([f"{head}(", *lines, f"{' ' * indent}){tail}"])


def not_asked(names: Sequence[str]) -> str:
    """None for all of these."""
    line = f"{' = '.join(names)} = None"
    if len(STEP + line) <= LONGEST:
        return line
    return broken(f"{', '.join(names)} = (None,) * {len(names)}")


def in_tuple(items: Sequence[str]) -> str:
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
