"""Check a ``torch.autograd.Function``: is its backward the gradient of its own forward?

Both are traced (`backward_of`), the forward is derived, and what the backward says of each gradient
is a claim of its own, judged as a formula is (``derive/checking``).
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sympy import Integer

from codegen.backwards.arriving import of_arriving
from codegen.backwards.claims import Backward, Raises, Said, backward_of
from codegen.backwards.found import broken_by
from codegen.backwards.functions import FunctionSubject, function_of, reference_of
from codegen.backwards.like import InNumbers, in_numbers
from codegen.backwards.lines import computed_on
from codegen.backwards.numeric import check_reading, drawn_for, is_torchs, straight_through
from codegen.backwards.options import Setting, settings_of
from codegen.backwards.several import ACCEPTED, ORDER, SeveralVerdicts, each_setting
from codegen.backwards.speech import at_users_sizes
from codegen.backwards.steps import DERIVATIVE, Reading, by_definition, unchecked
from codegen.backwards.subsets import Partly, of_subsets
from codegen.backwards.writes import of_writes, written_in
from codegen.importing.asked import Argument, arguments_of, options_of, sizes_of
from codegen.importing.ways import OnlyEqual
from derive.checking.check import check_claim
from derive.checking.ground import ground_of
from derive.checking.verdict import Verdict
from derive.language.errors import QuestionError
from derive.reading import Claim, Misaligned

RUN = "its file, its forward and its backward were executed"
NOTHING = "None is returned for it"
CONVENTION = (
    "it differs only at ties; where entries are equal, or 0, it agrees with torch's own derivative "
    "of this forward"
)
LIKE = (
    "\n    or compare it numerically with a torch function that computes the same: --like FUNCTION"
)
ONCE = "a first backward alone, of the arguments as they were:"
ELSE = "otherwise:"
SAMPLED = "exit status 0 says that no number differed from --like, not that anything is proved"


@dataclass(frozen=True)
class FunctionVerdict:
    """A verdict for each gradient of the Function ``name``; ``problem`` is why there is none, and
    ``blamed`` the gradients that it is about; ``warnings`` what is right and may still surprise;
    ``needs`` the sizes for which alone it is meant.
    """

    name: str
    verdicts: tuple[Verdict, ...]
    warnings: tuple[str, ...] = ()
    problem: str = ""
    numbers: tuple[InNumbers, ...] = ()
    blamed: tuple[str, ...] = ()
    partly: tuple[Partly, ...] = ()  # wrong where only some gradients are asked for
    remarks: tuple[str, ...] = ()
    file: str = ""  # where the lines stand
    reading: Reading = DERIVATIVE  # of what has no derivative
    needs: tuple[str, ...] = ()

    @property
    def outcome(self) -> str:
        outcomes = [v.outcome for v in self.verdicts] + [self.reading.outcome]
        outcomes += ["wrong"] * (bool(self.problem) + len(self.partly))
        outcomes += [n.outcome for n in self.numbers]
        return next((o for o in ORDER if o in outcomes), "right")

    @property
    def right(self) -> bool:
        return self.outcome == "right"

    @property
    def status(self) -> int:
        return 0 if self.outcome in ACCEPTED else 1

    @property
    def wrong(self) -> list[str]:
        """The gradients that are wrong."""
        compared = [f"d{n.name}" for n in self.numbers if n.outcome == "wrong"]
        judged = [a.name for v in self.verdicts for a in v.answers if a.outcome == "wrong"]
        partly = [name for p in self.partly for name in p.blamed]
        return [*dict.fromkeys((*self.blamed, *compared, *judged, *partly))]

    def __str__(self) -> str:
        return f"{self.body}\n{self.ran}"

    @property
    def ran(self) -> str:
        return RUN

    @property
    def body(self) -> str:
        lines = [self.problem] if self.problem else []
        for p in self.partly:
            lines.append(p.said(self.name, linecache.getline(self.file, p.line).strip()))
        lines += ["where all gradients are asked for:"] if self.partly else []
        lines += [self.reading.words] if self.reading.words else []
        lines += [self._named(str(verdict), verdict) for verdict in self.verdicts]
        needs = f"for sizes with {', '.join(self.needs)}; no others were looked at"
        lines += [needs] if self.needs else []
        lines += map(str, self.numbers)
        lines += [SAMPLED] if self.outcome == "agrees" else []
        lines += self.remarks
        lines += [f"warning: {words}" for words in self.warnings]
        return "\n".join(lines)

    def _named(self, words: str, verdict: Verdict) -> str:
        """Under the name of the class, not of the forward that it became."""
        words = words.replace(f" of {verdict.definition.snake}", f" of {self.name}", 1)
        return self.reading.qualified(words)

    @property
    def unexplained(self) -> FunctionVerdict:
        bare = (replace(v, answers=v.unexplained.answers) for v in self.verdicts)
        return replace(self, verdicts=tuple(bare))

    def as_json(self) -> dict:
        return {
            "function": self.name,
            "outcome": self.outcome,
            "status": self.status,
            "gradients": [g for v in self.verdicts for g in v.as_json()["gradients"]],
            "in_numbers": [
                {"gradient": f"d{n.name}", "outcome": n.outcome, "distance": n.distance}
                for n in self.numbers
            ],
            "partly": [
                {"gradients": list(p.blamed), "where": p.where, "line": p.line, "problem": p.words}
                for p in self.partly
            ],
            "remarks": [*filter(None, [self.reading.words]), *self.remarks],
            "needs": list(self.needs),
            "warnings": list(self.warnings),
            "problem": self.problem,
            "ran": RUN,
        }


def check_function(
    asked: str | type,
    axes: str | Mapping[str, str],
    sizes: str | Mapping[str, int] = "",
    limit: float | None = None,
    progress: Callable[[str], None] = lambda what: None,
    like: str | Callable = "",
    options: str | Mapping[str, Any] = "",
) -> FunctionVerdict | SeveralVerdicts:
    """Whether the backward of a ``torch.autograd.Function`` is the gradient of its forward.

    ``asked`` is the class, or ``FILE.py:MyFunction``, which is run; ``axes`` names the axes of its
    tensors: ``"x: N C, weight: C"``. ``like`` is a torch function with the same values, of the same
    file where it is a name: then nothing is traced, and its derivative is compared in numbers.
    ``options`` are values of arguments that are no tensors, ``"reduction=mean"``; of the others
    every value is checked that the code compares them with.
    Raises `QuestionError` for what is not understood.

    Long: each argument is one option of the command line.
    """
    subject = function_of(asked)
    settings = settings_of(subject, arguments_of(axes), options_of(options))

    def check(own: FunctionSubject, setting: Setting) -> FunctionVerdict:
        progress(f"tracing {setting}".rstrip())
        if like:
            reference = reference_of(own, like)
            numbers = in_numbers(own, reference, setting.arguments, sizes_of(sizes))
            return FunctionVerdict(own.name, (), (), "", tuple(numbers))
        return _traced(own, setting.arguments, sizes_of(sizes), limit, progress)

    return each_setting(subject, settings, check)


def _traced(
    subject: FunctionSubject,
    arguments: Sequence[Argument],
    sizes: Mapping[str, int],
    limit,
    progress,
) -> FunctionVerdict:
    try:
        backward = backward_of(subject, arguments, sizes)
    except Raises as raised:
        return _raising(subject, raised)
    except OnlyEqual as error:
        return FunctionVerdict(subject.name, (), (), error.verdict(subject.name))
    except QuestionError as error:
        broken = broken_by(written_in(subject, arguments, sizes), only_writes=True)
        if broken:
            broken += f"\nits gradients were not checked: {error.problem}"
            return FunctionVerdict(subject.name, (), (), broken)
        passed = straight_through(subject, arguments, sizes)
        if not passed:
            error.remedy += LIKE
            raise
        return FunctionVerdict(subject.name, (), reading=unchecked(passed, subject.name))
    return _verdict(subject, backward, limit, progress)


def _verdict(subject: FunctionSubject, backward: Backward, limit, progress) -> FunctionVerdict:
    """Of each gradient, and of the cases where only some of them are asked for."""
    check_reading(subject, backward)

    def judged(backward: Backward) -> list[Verdict]:
        form = ground_of(backward.definition).form
        due = [s for s in backward.said if not s.is_zero(form.closed)]
        return [_judged(said, backward, subject, limit, progress) for said in due]

    verdicts, reading = by_definition(backward, subject.name, judged, progress)
    progress("comparing where only some gradients are asked for")
    subsets = of_subsets(subject, backward)
    found = of_writes(subject, backward.example, partial(drawn_for, backward))
    broken, otherwise = broken_by(found), ONCE
    if not broken:
        found, otherwise = (*found, *of_arriving(subject, backward)), ELSE
        broken = broken_by(found)
    return FunctionVerdict(
        subject.name,
        tuple(verdicts),
        (*_warnings(backward, subject), *(str(one) for one in found if not one.wrong)),
        problem=f"{broken}\n{otherwise}" if broken and verdicts else broken,
        partly=subsets.found,
        remarks=(subsets.words,) if subsets.words and not subsets.found else (),
        needs=backward.needs,
        file=subject.file,
        reading=reading,
    )


def _raising(subject: FunctionSubject, raised: Raises) -> FunctionVerdict:
    """The verdict where the backward raises: its shapes fit only where some sizes are equal."""
    line = linecache.getline(subject.file, raised.line).strip()
    blamed = computed_on(subject, raised.line)
    of = f" while computing {', '.join(blamed)}" if blamed else ""
    problem = (
        f"wrong: the backward of {subject.name} raises{of}, line {raised.line}\n    {line}\n"
        f"    {raised.words}\n"
        "all sizes differ here: are dimensions swapped, or is a sum over the wrong one? The other "
        "gradients were not checked"
    )
    return FunctionVerdict(subject.name, (), (), problem, blamed=blamed)


def _judged(said: Said, backward: Backward, subject: FunctionSubject, limit, progress) -> Verdict:
    definition = backward.definition
    of = next(t for t in definition.inputs if t.name == said.name)
    written = backward.spoken.formula(said.expression or Integer(0))
    source = linecache.getline(subject.file, said.line).strip() or written
    claim = Claim(of, said.line, source, said.expression, said.expression, lines=said.lines)
    if said.problem:
        claim = Claim(of, said.line, source, None, None, Misaligned(said.problem))
    elif said.expression is None:
        claim = Claim(of, said.line, NOTHING, Integer(0), Integer(0))
    verdict = check_claim(definition, claim, progress, limit, said.numbers, said.with_numbers)
    (answer,) = (replace(a, called=f"d{said.argument}") for a in verdict.answers)
    found = answer.refutation and answer.refutation.counterexample
    if found and found.at_kink and is_torchs(subject, backward, said.argument):
        answer = replace(answer, outcome="undecided", refutation=None)
        verdict = replace(verdict, remarks=(CONVENTION,))
    answers = (at_users_sizes(answer, backward.spoken),)
    return replace(verdict, answers=answers, spoken=backward.spoken)


def _warnings(backward: Backward, subject: FunctionSubject):
    if backward.unignored:
        yield "labels of -100, which torch ignores, were not tested: all labels are classes here"
    if backward.between and not subject.is_once_differentiable:
        names = ", ".join(backward.between)
        yield (
            f"{names} is saved but is neither an input nor an output: second derivatives through "
            f"{subject.name} treat it as a constant and are silently wrong. Save only inputs and "
            "outputs and recompute the rest, or mark backward @once_differentiable"
        )


def assert_gradient(
    function: str | type,
    axes: str | Mapping[str, str],
    sizes: str | Mapping[str, int] = "",
    limit: float | None = None,
    options: str | Mapping[str, Any] = "",
) -> None:
    """Raises `AssertionError` with the verdict unless the backward of ``function`` is proved to be
    the gradient of its forward; `QuestionError` if it is not supported.
    """
    verdict = check_function(function, axes, sizes, limit, options=options)
    if not verdict.right:
        raise AssertionError(f"\n{verdict}")


__all__ = ["FunctionVerdict", "QuestionError", "assert_gradient", "check_function"]
