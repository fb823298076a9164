"""A verdict for each value of the options of a Function, and one of them all."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from codegen.backwards.functions import FunctionSubject
from codegen.backwards.options import Setting, Settings
from codegen.backwards.steps import DEFINED, UNCHECKED
from codegen.importing.double import run_in_double
from codegen.importing.examples import drawn, example_of
from derive.language.errors import QuestionError

ORDER = ("wrong", UNCHECKED, "undecided", "narrower", "agrees", DEFINED, "right")
ACCEPTED = ("agrees", DEFINED, "right")


@dataclass(frozen=True)
class SeveralVerdicts:
    """Of the Function ``name``: the values of its options in words, with the verdict that was
    found; ``refused`` are those that were not understood, with the reason, ``only`` the options of
    which one value alone was checked, and ``apart`` says that not every combination was.
    """

    name: str
    cases: tuple[tuple[str, Any], ...]
    refused: tuple[tuple[str, str], ...] = ()
    raising: tuple[str, ...] = ()  # values with which forward itself raises
    only: tuple[str, ...] = ()
    apart: bool = False

    @property
    def outcome(self) -> str:
        outcomes = [v.outcome for _, v in self.cases] + ["undecided"] * bool(self.refused)
        return next(o for o in ORDER if o in outcomes)

    @property
    def right(self) -> bool:
        return self.outcome == "right"

    @property
    def status(self) -> int:
        return 0 if self.outcome in ACCEPTED else 1

    @property
    def wrong(self) -> list[str]:
        """The gradients that are wrong for some value."""
        return [*dict.fromkeys(name for _, v in self.cases for name in v.wrong)]

    @property
    def partly(self) -> tuple:
        """What is wrong where only some gradients are asked for."""
        return tuple(p for _, v in self.cases for p in v.partly)

    @property
    def first_line(self) -> str:
        """For which values it is what, and what was not looked at."""
        parts = []
        for outcome in ORDER:
            where = [words for words, v in self.cases if v.outcome == outcome and words]
            if where:
                parts.append(f"{outcome} for {'; '.join(where)}")
        if self.refused:
            parts.append(f"not understood for {'; '.join(words for words, _ in self.refused)}")
        said = [f"checked with {', '.join(self.only)} only"] * bool(self.only)
        said += ["not every combination of these was checked"] * self.apart
        said += [f"forward raises for {'; '.join(self.raising)}"] * bool(self.raising)
        parts += [self.outcome] * (bool(said) and not parts)
        return f"{self.name} is {', '.join([*parts, *said])}" if parts else ""

    def __str__(self) -> str:
        lines = [self.first_line] if self.first_line else []
        for words, verdict in self.cases:
            lines += [f"for {words}:"] * bool(words)
            lines.append(verdict.body)
        lines += [f"for {words}: not understood: {reason}" for words, reason in self.refused]
        return "\n".join([*lines, self.cases[0][1].ran])

    @property
    def unexplained(self) -> SeveralVerdicts:
        return replace(self, cases=tuple((words, v.unexplained) for words, v in self.cases))

    def as_json(self) -> dict:
        """As that of one value; where there are several, each has its own under ``settings``."""
        found = dict(self.cases[0][1].as_json())
        found |= {"outcome": self.outcome, "status": self.status, "only": list(self.only)}
        if len(self.cases) > 1 or self.refused:
            each = [{"options": words, **v.as_json()} for words, v in self.cases]
            each += [
                {"options": w, "outcome": "not understood", "message": r} for w, r in self.refused
            ]
            found |= {
                "settings": each,
                "gradients": [g for v in each for g in v.get("gradients", ())],
            }
        return found


def each_setting(
    subject: FunctionSubject,
    settings: Settings,
    check: Callable[[FunctionSubject, Setting], Any],
) -> Any:
    """The verdict of every setting that the forward takes; of one alone that itself.

    Raises `QuestionError` where none is understood.
    """
    cases, refused, raising = [], [], []
    first: QuestionError | None = None
    for setting in settings.each:
        own = replace(subject, options=setting.options)
        words = str(setting)
        if setting is not settings.each[0] and not _runs(own, setting):
            raising += [words] * (not setting.unsaid)
            continue
        try:
            cases.append((words, check(own, setting)))
        except QuestionError as error:
            first = first or error
            refused.append((words, f"{error}"))
    if first is not None and not cases:
        raise first
    found = SeveralVerdicts(
        subject.name, tuple(cases), tuple(refused), tuple(raising), settings.only, settings.apart
    )
    return found if found.first_line else cases[0][1]


def _runs(subject: FunctionSubject, setting: Setting) -> bool:
    """Whether the forward takes these values; of one that only torch knows, without a warning."""
    try:
        example = example_of(subject, setting.arguments, {})
        tensors = drawn(example.arguments, example.sizes)
        with warnings.catch_warnings(), run_in_double(), torch.no_grad():
            warnings.simplefilter("error" if setting.unsaid else "ignore")
            subject.module(example.arguments)(*tensors)
    except Exception:
        return False
    return True
