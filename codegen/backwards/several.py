"""A verdict for each setting of a Function's options, and one for all together."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from codegen.backwards.functions import FunctionSubject
from codegen.backwards.options import SOME_FLOAT, Setting, Settings, said
from codegen.backwards.steps import DEFINED, UNCHECKED
from codegen.importing.double import run_in_double
from codegen.importing.examples import drawn, example_of
from derive.claims.checking.verdict import Shown
from derive.language.errors import QuestionError

RIGHT, PROVED, WARNING = "right", "proved: ", "warning: "  # beginnings of lines
OPTION = re.compile(r", (?=any other |\w+ given|\w+=)")  # between the values of a setting
ORDER = ("wrong", UNCHECKED, "undecided", "narrower", "agrees", DEFINED, RIGHT)
ACCEPTED = ("agrees", DEFINED, RIGHT)


def right_for(function: str, judged: Mapping[str, str], checked: Sequence[str]) -> str:
    """``right: dx, dgain of MyNorm (mean=True; every subset of gradients)``."""
    names: dict[str, list[str]] = {}
    for name, outcome in judged.items():
        names.setdefault(outcome, []).append(name)
    right = "; ".join(f"{outcome}: {', '.join(of)}" for outcome, of in names.items())
    where = "; ".join(filter(None, checked))
    return f"{right or f'{RIGHT}: backward'} of {function}" + f" ({where})" * bool(where)


def shared(where: Sequence[str], rest: Sequence[str]) -> Sequence[str]:
    """The settings ``where``, or the one value that all of them have and none of the ``rest``."""
    apart = [OPTION.split(setting) for setting in where]
    others = {value for setting in rest for value in OPTION.split(setting)}
    alike = [v for v in apart[0] if v not in others and all(v in setting for setting in apart)]
    return alike if rest and len(where) > 1 and len(alike) == 1 else where


class OfFunction(Shown):
    """Properties common to all verdicts on Functions, which follow from their ``outcome``."""

    outcome: str

    @property
    def right(self) -> bool:
        return self.outcome == RIGHT

    @property
    def status(self) -> int:
        """The exit status of the command."""
        return 0 if self.outcome in ACCEPTED else 1


@dataclass(frozen=True, repr=False)
class SeveralVerdicts(OfFunction):
    """Verdicts on the Function ``name``: the values of its options in words, with the verdict for
    them; ``refused`` are unsupported ones, with the reason, ``only`` the options with a single
    checked value, and ``apart`` says that not every combination was checked.
    """

    name: str
    cases: tuple[tuple[str, Any], ...]
    refused: tuple[tuple[str, str], ...] = ()
    raising: tuple[str, ...] = ()  # values with which forward itself raises
    only: tuple[str, ...] = ()
    apart: bool = False
    every: tuple[str, ...] = ()  # of floats for every value of which it is so

    @property
    def outcome(self) -> str:
        outcomes = [v.outcome for _, v in self.cases] + ["undecided"] * bool(self.refused)
        return next(o for o in ORDER if o in outcomes)

    @property
    def wrong(self) -> list[str]:
        """The gradients that are wrong for some value."""
        return [*dict.fromkeys(name for _, v in self.cases for name in v.wrong)]

    @property
    def partly(self) -> tuple:
        """Problems that appear when only some gradients are needed."""
        return tuple(p for _, v in self.cases for p in v.partly)

    @property
    def first_line(self) -> str:
        """The outcomes with the values of the options, and what was not checked."""
        said = self._said
        options = [words for words, _ in self.cases if words]
        if self.right and (options or said):
            judged: dict[str, str] = {}
            for _, v in self.cases:
                judged |= {n: w for n, w in v.judged.items() if judged.get(n, RIGHT) == RIGHT}
            covered = dict.fromkeys(v.covered for _, v in self.cases)
            return right_for(self.name, judged, [*options, *said, *covered])
        parts = []
        for outcome in ORDER:
            where = [words for words, v in self.cases if v.outcome == outcome and words]
            if where:
                rest = [words for words, v in self.cases if v.outcome != outcome and words]
                parts.append(f"{outcome} for {'; '.join(shared(where, rest))}")
        if self.refused:
            parts.append(f"not understood for {'; '.join(words for words, _ in self.refused)}")
        parts += [self.outcome] * (bool(said) and not parts)
        return f"{self.name} is {', '.join([*parts, *said])}" if parts else ""

    @property
    def _said(self) -> list[str]:
        """The cases that were checked and those that were not, besides the values in ``cases``."""
        said = [self._for_every] * bool(self.every and self.outcome in ACCEPTED)
        said += [f"checked with {', '.join(self.only)} only"] * bool(self.only)
        said += ["not every combination of these was checked"] * self.apart
        said += [f"forward raises for {'; '.join(self.raising)}"] * bool(self.raising)
        return said

    @property
    def _for_every(self) -> str:
        where = dict.fromkeys(words for _, v in self.cases for words in v.where)
        words = f"for every {' and '.join(self.every)}"
        return f"{words}, where {', '.join(where)}" if where else words

    def __str__(self) -> str:
        lines = [self.first_line] if self.first_line else []
        cases = sorted(self.cases, key=lambda case: ORDER.index(case[1].outcome))
        bodies = {words: v.body.splitlines() for words, v in cases}
        common = dict(self._common(bodies)) if len(bodies) > 1 else {}
        for words, body in bodies.items():
            lines += [f"for {words}:"] * bool(words)
            lines += [line for line in body if line not in common]
        lines += common.values()
        lines += [f"for {words}: not understood: {reason}" for words, reason in self.refused]
        return "\n".join([*lines, self.cases[0][1].ran])

    def _common(self, bodies: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
        """The lines that are said once, below all settings, each with its words there: a warning of
        several, and the proof, where all that is proved is so in the same way.
        """
        said = [line for body in bodies.values() for line in body]
        proofs = [line for line in said if line.startswith(PROVED)]
        right = sum(line.startswith(f"{RIGHT}: ") for line in said)
        if len(proofs) == right > 1 and len({*proofs}) == 1:
            yield proofs[0], f"every right gradient is {proofs[0]}"
        for line in dict.fromkeys(line for line in said if line.startswith(WARNING)):
            where = [words for words, body in bodies.items() if line in body]
            rest = [words for words in bodies if words not in where]
            if len(where) > 1:
                of = f" for {'; '.join(shared(where, rest))}" * bool(rest)
                yield line, line.replace(WARNING, f"warning{of}: ", 1)

    @property
    def brief(self) -> str:
        """Accepted settings are covered by the first line."""
        lines = [self.first_line] if self.first_line else []
        for words, verdict in self.cases:
            if verdict.status or not self.first_line:
                lines += [f"for {words}:"] * bool(words)
                lines.append(verdict.brief)
        return "\n".join(lines)

    @property
    def unexplained(self) -> SeveralVerdicts:
        return replace(self, cases=tuple((words, v.unexplained) for words, v in self.cases))

    def as_json(self) -> dict:
        """As for one setting; of several, each has its own under ``settings``."""
        found = dict(self.cases[0][1].as_json())
        found |= {"outcome": self.outcome, "status": self.status, "only": list(self.only)}
        found |= {"every": list(self.every)} if self.outcome in ACCEPTED else {}
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
    """The verdict for every setting that the forward takes; for a single one, its own verdict.

    Raises `QuestionError` where none is understood.
    """
    cases, tried, refused, raising = [], [], [], []
    first: QuestionError | None = None
    for setting in settings.each:
        own = replace(subject, options=setting.options)
        words = str(setting)
        if setting is not settings.each[0] and not _runs(own, setting):
            raising += [words] * (not setting.unsaid)
            continue
        try:
            cases.append((words, check(own, setting)))
            tried.append(setting)
        except QuestionError as error:
            first = first or error
            refused.append((words, f"{error}"))
    if first is not None and not cases:
        raise first
    named = {n for n in settings.only if all(n in v.every for _, v in cases)}
    only = {n: words for n, words in settings.only.items() if n not in named}
    defaults: list[str] = []  # of floats for which it depends on the value
    for name, at, value, other in _with_others(subject, tried, cases, check):
        if other.outcome == "wrong":
            default = only.pop(name)
            cases = [(_joined(words, default), v) for words, v in cases]
            cases.append((_joined(at, *defaults, value), other))
            defaults.append(default)
        elif len(settings.each) == 1:
            only[name] += f", {value}"
    found = SeveralVerdicts(
        subject.name, tuple(cases), tuple(refused), tuple(raising), tuple(only.values()),
        settings.apart, tuple(n for n in settings.only if n in named),
    )  # fmt: skip
    return found if found.first_line else cases[0][1]


def _with_others(
    subject: FunctionSubject, tried: Sequence[Setting], cases: Sequence, check: Callable
) -> Iterator[tuple[str, str, str, Any]]:
    """Try another value of each float of which a single one was accepted. Yields the option, the
    setting and the value in words, and the verdict where it says more. Each float is tried at the
    first setting only where it is not a name.
    """
    if any(verdict.status for _, verdict in cases):
        return
    met = set()
    for setting, (words, verdict) in zip(tried, cases, strict=True):
        for name in [n for n in verdict.fixed if n not in met]:
            met.add(name)
            value = setting.options[name] / 2 or SOME_FLOAT
            options = {**setting.options, name: value}
            own = replace(setting, options=options, varied=tuple(options))  # all of them as numbers
            other = replace(subject, options=options)
            if not _runs(other, own):
                continue
            try:
                found = check(other, own)
            except QuestionError:
                continue
            if found.outcome in ("wrong", verdict.outcome):
                yield name, words, said(name, value), found


def _joined(*words: str) -> str:
    return ", ".join(filter(None, words))


def _runs(subject: FunctionSubject, setting: Setting) -> bool:
    """True if the forward runs with these values; for unlisted ones, without a warning."""
    try:
        example = example_of(subject, setting.arguments, {})
        tensors = drawn(example.arguments, example.sizes)
        with warnings.catch_warnings(), run_in_double(), torch.no_grad():
            warnings.simplefilter("error" if setting.unsaid else "ignore")
            subject.module(example.arguments)(*tensors)
    except Exception:
        return False
    return True
