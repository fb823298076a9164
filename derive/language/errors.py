"""Errors, addressed to the person who can fix them.

Every mistake of a user is a :class:`QuestionError`: what is wrong, where (file and line, where
known) and the remedy. The commands print it as one message and exit with status 2. A derivative
that could not be proved is an :class:`UnprovedError`: nothing is wrong with the question, but there
is no answer to emit (status 1).
"""

from __future__ import annotations

import linecache
import sys
import traceback
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from itertools import dropwhile, takewhile
from pathlib import Path

PAGE = "docs/notation.md has what else cannot be written"
LONGEST, SHORTENED = 60, 40  # characters of a value in a message: so it stays on one line

OURS = Path(__file__).parents[1]
MATH = OURS / "math"  # the forwards of the project
CERTIFICATES = OURS.with_name("certificates")  # of those that Coq accepted
NOTATION = __name__.removesuffix(".language.errors")  # "derive", installed "gradform.derive"
FACE = OURS.parent if "." in NOTATION else OURS.with_name("gradform")  # the package gradform
INTERNAL = (OURS, OURS.with_name("codegen"), FACE)


@dataclass(frozen=True)
class Place:
    """A line of a user's file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def text(self) -> str:
        """The text of the line; '' where that cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    @property
    def formula(self) -> str:
        """The right-hand side of the assignment there."""
        return self.text.partition("=")[2].strip()

    @property
    def shown(self) -> Place:
        """The same place, with its path relative to the working directory."""
        try:
            return replace(self, file=str(Path(self.file).relative_to(Path.cwd())))
        except ValueError:
            return self


class QuestionError(Exception):
    """The input is wrong or not supported: a user's mistake, with place and remedy."""

    def __init__(self, problem: str, remedy: str = "", place: Place | None = None):
        self.problem, self.remedy, self.place = problem, remedy, place
        super().__init__(problem)

    def at(self, place: Place) -> QuestionError:
        """The same error with a place; a place already known is more precise, and kept."""
        self.place = self.place or place
        return self

    def __str__(self) -> str:
        where = f"{self.place.shown}: " if self.place else ""
        return f"{where}{said(self.problem, self.remedy)}"

    def _render_traceback_(self) -> list[str]:
        """Lines that a notebook shows: the user's own frames, and the error by its public name."""
        frames = traceback.extract_tb(self.__traceback__)
        called = dropwhile(lambda frame: "IPython" in Path(frame.filename).parts, frames)
        own = takewhile(
            lambda f: not is_internal(f.filename) or f.filename.startswith("<ipython"), called
        )
        name = next(kind.__name__ for kind in type(self).__mro__ if kind.__module__ == __name__)
        return [*map(str.rstrip, traceback.format_list([*own])), f"{name}: {self}"]


class NotationError(QuestionError):
    """The mathematics does not follow the notation: a wrong axis, a wrong name, a misused label.

    The place defaults to the line of the user's file that led here; where it ``is_placed``, the
    line that is wrong is known.
    """

    is_placed = False

    def __init__(self, problem: str, remedy: str = "", place: Place | None = None):
        super().__init__(problem, remedy, place or caller_place())


class NotationWarning(UserWarning):
    """Valid mathematics in which some part has no influence, which is hardly intended."""


class UnprovedError(Exception):
    """A derivative that the independent derivations did not confirm. It must not be emitted."""


class UndecidedError(UnprovedError):
    """The time limit ran out before a derivative was proved: found so far, and left to do."""


def shortened(value: object) -> str:
    """The ``repr`` of a value, shortened to stay readable."""
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python prints
        return "a very long number"
    return shortened_text(text)


def shortened_text(text: str) -> str:
    """A line of a file, or its beginning."""
    return text if len(text) <= LONGEST else f"{text[:SHORTENED]}..."


def said(problem: str, remedy: str) -> str:
    """The problem, and the remedy on its own line."""
    return f"{problem}\n    {remedy}" if remedy else problem


def caller_place() -> Place | None:
    """The nearest line on the stack outside gradform and SymPy: the user's own."""
    frame = sys._getframe(1)
    while frame is not None:
        if not is_internal(frame.f_code.co_filename):
            return Place(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


@lru_cache(maxsize=4096)
def is_internal(file: str) -> bool:
    """Whether code is gradform's, SymPy's or in no file; ``derive/math`` counts as a user's."""
    path, sympy = Path(file), find_spec("sympy")  # whose import takes a second
    folders = (*INTERNAL, Path(sympy.origin).parent)
    ours = any(map(path.is_relative_to, folders)) and not path.is_relative_to(MATH)
    return ours or file.startswith("<")
