"""Checks a handwritten backward: the verdict on every line of it."""

from __future__ import annotations

from collections.abc import Callable

from codegen.playground.question import Question
from derive.claims.checking.check import check
from derive.claims.checking.verdict import Verdict
from derive.gradient.orders import FIRST
from derive.gradient.orders.check import check_second
from derive.language.errors import Place, QuestionError
from derive.language.notation.forward import Forward
from derive.running.limits import Doing, Stage, limited

SOURCE = "backward"  # the name of the text in errors


def told_of_check(forward: type[Forward], question: Question, tell: Callable[..., None]) -> None:
    """Send the verdict; errors are explained as far as the time allows."""
    if not question.backward.strip():
        raise QuestionError("there is no formula", "write one, as torch code", Place(SOURCE, 0))
    doing = Doing(lambda what: tell("stage", what=what))
    decide = check if question.order == FIRST else check_second
    let, of = _names(question.let), question.of or None
    try:
        with limited(question.limit):
            found = decide(forward, question.backward, of, let, SOURCE, doing, question.limit)
            tell("parts", parts={"outcome": found.outcome, "lines": _lines(found)})
            doing("explaining")
            tell("parts", parts=_explained(found))
    except QuestionError as error:
        error.at(Place(SOURCE, 0))
        raise


def _names(pairs: str) -> dict[str, str]:
    names = {}
    for pair in filter(str.strip, pairs.split(",")):
        yours, equals, ours = (part.strip() for part in pair.partition("="))
        if not (yours and equals and ours):
            raise QuestionError(f"{pair.strip()} is not YOURS=OURS", "write raw=normed, g=gain")
        names[yours] = ours
    return names


def _lines(verdict: Verdict) -> list[dict[str, object]]:
    """Known facts about every gradient, before anything is explained."""
    return [
        {"name": a.name, "line": a.line, "outcome": a.outcome, "inherits": a.inherits}
        for a in verdict.answers
    ]


def _explained(verdict: Verdict) -> dict[str, object]:
    """The whole verdict: in words, and as data."""
    with Stage():
        return {"verdict": str(verdict), "data": verdict.as_json()}
    bare = verdict.unexplained
    return {"verdict": str(bare), "data": bare.as_json()}
