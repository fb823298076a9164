"""Parse the user's description of the arguments: axes and, optionally, sizes.

``x: N C, labels: N int, w: C given`` names the axes of three tensors; an integer is a fixed size,
an expression the size of an axis that depends on others: ``x: N 2*E, w: E``. A kind may follow the
axes: ``int`` (labels, indices), ``bool`` (a mask), ``given`` (no gradient). Otherwise it is found
by running the function.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from derive.language.errors import QuestionError

NUMBERS, LABELS, MASK, GIVEN = "numbers", "int", "bool", "given"
KINDS = (LABELS, MASK, GIVEN)
GUESSED = "Axis"  # prefix of axes nobody named
OPTIONS = '--with "temperature=0.07, reduction=mean"'
EXAMPLE = '--axes "x: N C, labels: N"'
ARGUMENT = re.compile(r"[A-Za-z_][\w.]*")

# Options of the command, and the corresponding arguments in Python.
IN_PYTHON = {"axes": "axes", "with": "options", "sizes": "sizes", "like": "like", "limit": "limit"}
OPTION = re.compile(r"--(\w+)(?: (\"[^\"]*\"|[A-Z]+\b))?")


@dataclass(frozen=True)
class Argument:
    """A tensor argument: its axes, by name, size or expression; ``kind`` is "" if not given."""

    name: str
    axes: tuple[str, ...]
    kind: str = ""

    @property
    def rank(self) -> int:
        return len(self.axes)


def axes_of(arguments: Sequence[Argument]) -> list[str]:
    """The axes of all arguments, including numbers and expressions."""
    return list(dict.fromkeys(axis for argument in arguments for axis in argument.axes))


def arguments_of(axes: str | Mapping[str, str]) -> tuple[Argument, ...]:
    """Parse the arguments from a text, or a mapping of names to axes.

    Raises `QuestionError` for a malformed description.
    """
    pairs = axes.items() if isinstance(axes, Mapping) else map(_pair, _parts(axes))
    found: dict[str, Argument] = {}
    for name, along in pairs:
        argument = _argument(name.strip(), along.replace(",", " ").split())
        if argument.name in found:
            raise QuestionError(f"{argument.name} has axes twice", f"give them once: {EXAMPLE}")
        found[argument.name] = argument
    if not found:
        raise QuestionError("no axes were given", f"write {EXAMPLE}")
    return tuple(found.values())


def sizes_of(sizes: str | Mapping[str, int]) -> dict[str, int]:
    """Parse ``"N: 8, C: 12"`` as sizes. Raises `QuestionError` for a malformed one."""
    if isinstance(sizes, Mapping):
        return dict(sizes)
    found = {}
    for part in _parts(sizes):
        name, _, size = part.replace("=", ":").partition(":")
        if not name.strip().isidentifier() or not size.strip().isdigit() or int(size) < 1:
            raise QuestionError(f"--sizes: {part.strip()!r} is not a size", '--sizes "N: 8, C: 12"')
        found[name.strip()] = int(size)
    return found


@dataclass(frozen=True)
class NamedArguments:
    """A dotted name of a value in the user's file: ``Mode.FAST``."""

    name: str

    def found_in(self, known: Mapping[str, Any]) -> Any:
        """Look the name up. Raises `QuestionError` if the file does not define it."""
        first, *more = self.name.split(".")
        try:
            value = known[first]
            for name in more:
                value = getattr(value, name)
        except (KeyError, AttributeError):
            raise QuestionError(
                f"--with: there is no {self.name} in the file", f"write {OPTIONS}"
            ) from None
        return value


def options_of(options: str | Mapping[str, Any]) -> dict[str, Any]:
    """Parse ``"temperature=0.07, reduction=mean"`` as values; a bare word is a string.

    Raises `QuestionError` for a malformed one.
    """
    if isinstance(options, Mapping):
        return dict(options)
    try:
        call = ast.parse(f"f({options})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or not all(k.arg for k in call.keywords):
            raise ValueError(options)
        return {k.arg: _option(k.value) for k in call.keywords if k.arg}
    except (SyntaxError, ValueError):
        problem = f"--with: {options!r} does not say NAME=VALUE"
        raise QuestionError(problem, f"write {OPTIONS}") from None


def _option(e: ast.expr) -> Any:
    if isinstance(e, ast.Attribute):
        return NamedArguments(ast.unparse(e))
    if isinstance(e, ast.Call) and ast.unparse(e) in ("float('inf')", 'float("inf")'):
        return float("inf")
    return e.id if isinstance(e, ast.Name) else ast.literal_eval(e)


def _parts(text: str) -> list[str]:
    return [part for part in re.split(r"[,;\n]", text) if part.strip()]


def _pair(part: str) -> tuple[str, str]:
    name, colon, axes = part.partition(":")
    if not colon:
        raise QuestionError(
            f"--axes: {part.strip()!r} is not NAME: AXES", f"separate tensors by commas: {EXAMPLE}"
        )
    return name, axes


def _argument(name: str, words: list[str]) -> Argument:
    if not ARGUMENT.fullmatch(name):
        raise QuestionError(f"--axes: {name!r} is not the name of an argument", f"write {EXAMPLE}")
    kind = words.pop() if words and words[-1] in KINDS else ""
    words = [] if words == ["()"] else words  # a tensor without dimensions
    return Argument(name, tuple(_axis(word, name) for word in words), kind)


def _axis(word: str, name: str) -> str:
    if word.isidentifier() and not word.startswith("_"):
        return word
    from codegen.importing.lengths import axis_said  # imports SymPy, which plain names do not need

    return axis_said(word, name)


def in_python(error: QuestionError) -> QuestionError:
    """The error in terms of Python arguments instead of command options: ``axes="x: N C"``."""

    def spelled(found: re.Match) -> str:
        name, value = IN_PYTHON.get(found[1]), found[2] or ""
        if name is None:
            return found[0]
        return f"{name}={value}" if value else name

    words = (OPTION.sub(spelled, text) for text in (error.problem, error.remedy))
    return QuestionError(*words, error.place)
