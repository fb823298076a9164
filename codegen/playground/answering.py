"""Answers a question: sends results piece by piece, and errors in words."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from codegen.playground.checked import told_of_check
from codegen.playground.derived import told_of_derivation
from codegen.playground.question import Question, question_from
from derive.language.errors import NotationWarning, Place, QuestionError, UnprovedError
from derive.language.notation.forward import Forward
from derive.language.notation.library import load

FILE = "forward.py"  # the name of the text
FORWARD, BACKWARD = "forward", "backward"  # the two texts of a question

# Whoever waits: receives the kind of a message, and its content.
Tell = Callable[..., None]


def answer(question: str, send: Callable[[str], None]) -> None:
    """Answer a question, as JSON; every message is sent as soon as it is ready. The last one is
    "done", whatever happened.
    """
    start = time.monotonic()

    def tell(kind: str, **said: object) -> None:
        send(json.dumps({"kind": kind, **said}))

    try:
        _answered(question_from(question), tell)
    except QuestionError as error:
        where = BACKWARD if error.place and error.place.file == BACKWARD else FORWARD
        line = error.place.line if error.place else 0
        said = {"problem": error.problem, "remedy": error.remedy, "line": line, "where": where}
        tell("trouble", outcome="not understood", **said)
    except UnprovedError as error:
        tell("trouble", outcome="unproved", problem=str(error), remedy="", line=0, where=FORWARD)
    except BaseException as error:  # whatever a text raises is said, and the page goes on
        words = f"{type(error).__name__}: {' '.join(str(error).split())}"
        tell("trouble", outcome="failed", problem=words, remedy="", line=0, where=FORWARD)
    tell("done", seconds=round(time.monotonic() - start, 2))


def _answered(question: Question, tell: Tell) -> None:
    with TemporaryDirectory() as folder, _warned(tell):
        tell("stage", what="reading")
        forward = _forward(question, Path(folder) / FILE, tell)
        if question.ask == "derive":
            told_of_derivation(forward, question, tell)
        else:
            told_of_check(forward, question, tell)


def _forward(question: Question, path: Path, tell: Tell) -> type[Forward]:
    """The requested forward of the text; sends the list of all."""
    path.write_text(question.text, encoding="utf-8", errors="replace")
    try:
        found = load(path)
    except QuestionError as error:
        if error.place is not None and error.place.file != str(path.resolve()):
            error.place = Place(error.place.file, 0)
        error.problem = error.problem.replace(str(path), "the text")
        raise
    names = [forward.__name__ for forward in found]
    meant = found[names.index(question.name)] if question.name in names else found[-1]
    gradients = [t.name for t in meant.definition.differentiable]
    tell("parts", parts={"forwards": names, "name": meant.__name__, "inputs": gradients})
    return meant


class _warned(warnings.catch_warnings):
    """Report each warning of the notation once."""

    def __init__(self, tell: Tell):
        super().__init__()
        self.tell, self.seen = tell, set()

    def __enter__(self):
        super().__enter__()
        warnings.simplefilter("always", NotationWarning)
        warnings.showwarning = self._show

    def _show(self, message, category, filename, lineno, file=None, line=None):
        said = str(message), lineno
        if issubclass(category, NotationWarning) and said not in self.seen:
            self.seen.add(said)
            line = lineno if Path(filename).name == FILE else 0
            self.tell("warning", problem=str(message), line=line, where=FORWARD)
