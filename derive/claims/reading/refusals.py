"""What is said where a text cannot be read, and where torch would align other axes than were meant.

Inside the reader a `Refusal` or a `Mismatch` is raised without a place; whoever reads the syntax
tree adds the node, and at the door the two become `NotUnderstood` and `Misaligned`.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from dataclasses import dataclass

from sympy import Expr

from derive.language.errors import Place, QuestionError

SHOWN_NAME = 60  # characters of a name in a message; no longer one is looked for either
SIMILAR = 0.6  # of a name: difflib's own measure of what was meant

MARK = "§"  # stands between a function and a name in it, inside the reader alone
SCOPED = re.compile(rf"[\w.]*{MARK}")

WINDOW = 92  # columns of a line that are shown around the caret


def as_typed(words: str) -> str:
    """Words about names of functions, with the names as they are typed there."""
    return SCOPED.sub("", words)


class Unplaced(Exception):
    """A problem and its remedy, on the way to the place in the text that they are about."""

    def __init__(self, problem: str, remedy: str = "", node: ast.AST | None = None):
        self.problem, self.remedy, self.node = as_typed(problem), as_typed(remedy), node
        super().__init__(problem)


class Refusal(Unplaced):
    """What is written cannot be read."""


class Mismatch(Unplaced):
    """What is written can be read, but its shapes do not fit, or fit by accident."""


@dataclass(frozen=True)
class Caret:
    """A place in a text: the line as it can be shown, and the column of the caret in it."""

    source: str
    line: int
    shown: str
    column: int

    def __str__(self) -> str:
        return f"{self.shown}\n{' ' * self.column}^"


class NotUnderstood(QuestionError):
    """A formula that is not read: the problem, the place with a caret, what is allowed there."""

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
    """Shapes that torch refuses, or aligns by position where that is not what was meant.

    ``by_name`` is what the same text says if its axes are aligned by their names, as in the
    project's notation; None where that does not fit either, or torch's dimension numbers are in it.
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
    """``text`` on one line and without control characters: a terminal shows it as it is."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def spot_in(line: str, number: int, column: int, source: str) -> Caret:
    """The place before the character ``column`` of a line, with so much of it as fits a screen."""
    column = max(0, min(column, len(line)))
    first = max(0, column - 2 * WINDOW // 3) if len(line) > WINDOW else 0
    last = min(len(line), first + WINDOW)
    before, after = ("..." if first else ""), ("..." if last < len(line) else "")
    shown = printable(line[first:last].replace("\t", " "), WINDOW)
    start = before + shown[: column - first]
    return Caret(source, number, before + shown + after, sum(map(_columns, start)))


def _columns(character: str) -> int:
    """The columns that a terminal gives to a character."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
