"""Errors for text that cannot be read, and for axes that torch would align by position.

Inside the reader a `Refusal` or a `Mismatch` is raised without a position; the caller that holds
the syntax tree adds the node, and at the public boundary they become `NotUnderstood` and
`Misaligned`.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from dataclasses import dataclass

from sympy import Expr

from derive.language.errors import Place, QuestionError

SHOWN_NAME = 60  # characters of a name in a message; longer names get no suggestions
SIMILAR = 0.6  # cutoff of difflib for suggestions

MARK = "§"  # separates function and local name, inside the reader only
SCOPED = re.compile(rf"[\w.]*{MARK}")

WINDOW = 92  # columns shown around the caret


def as_typed(words: str) -> str:
    """Replace internal names of functions' locals by the names typed."""
    return SCOPED.sub("", words)


class Unplaced(Exception):
    """A problem and its remedy, not yet placed in the text."""

    def __init__(self, problem: str, remedy: str = "", node: ast.AST | None = None):
        self.problem, self.remedy, self.node = as_typed(problem), as_typed(remedy), node
        super().__init__(problem)


class Refusal(Unplaced):
    """The text cannot be read."""


class Mismatch(Unplaced):
    """The text can be read, but its shapes do not fit, or fit only by accident."""


@dataclass(frozen=True)
class Caret:
    """A position in a text: the line to show, and the column of its caret."""

    source: str
    line: int
    shown: str
    column: int

    def __str__(self) -> str:
        return f"{self.shown}\n{' ' * self.column}^"


class NotUnderstood(QuestionError):
    """A formula that cannot be read: the problem, its position with a caret, and the remedy."""

    def __init__(self, problem: str, remedy: str = "", spot: Caret | None = None):
        place = Place(spot.source, spot.line) if spot else None
        super().__init__(problem, remedy, place)
        self.spot = spot
        self.cause: Refusal | None = None

    def __str__(self) -> str:
        lines = [f"{self.place}: {self.problem}" if self.place else self.problem]
        if self.spot:
            lines += str(self.spot).splitlines()
        lines += self.remedy.splitlines()
        return "\n    ".join(lines)


@dataclass(frozen=True)
class Misaligned:
    """Shapes that torch refuses, or aligns by position against the intention.

    ``by_name`` is the reading of the same text with axes aligned by name, as in the notation; None
    if that does not fit either, or if the text uses dimension numbers.
    """

    problem: str
    remedy: str = ""
    spot: Caret | None = None
    by_name: Expr | None = None

    def __str__(self) -> str:
        lines = [self.problem]
        if self.spot:
            lines += [f"    {line}" for line in str(self.spot).splitlines()]
        return "\n".join([*lines, *self.remedy.splitlines()])


def printable(text: str, longest: int = SHOWN_NAME) -> str:
    """``text`` on one line and without control characters, safe for a terminal."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def spot_in(line: str, number: int, column: int, source: str) -> Caret:
    """The position before character ``column`` of a line, with as much of it as fits a screen."""
    column = max(0, min(column, len(line)))
    first = max(0, column - 2 * WINDOW // 3) if len(line) > WINDOW else 0
    last = min(len(line), first + WINDOW)
    before, after = ("..." if first else ""), ("..." if last < len(line) else "")
    shown = printable(line[first:last].replace("\t", " "), WINDOW)
    start = before + shown[: column - first]
    return Caret(source, number, before + shown + after, sum(map(_columns, start)))


def _columns(character: str) -> int:
    """The width of a character on a terminal."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
