"""Check a ``torch.autograd.Function``: is its backward the gradient of its own forward?

Both are traced (`backward_of`), the forward is derived, and what the backward says of each gradient
is a claim of its own, judged as a formula is (``derive/claims/checking``).
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from typing import Any

from sympy import Integer

from codegen.backwards.answered import FunctionVerdict
from codegen.backwards.arriving import of_arriving
from codegen.backwards.claims import Backward, GradientClaim, backward_of
from codegen.backwards.found import broken_by
from codegen.backwards.functions import FunctionSubject, function_of, reference_of
from codegen.backwards.like import in_numbers
from codegen.backwards.lines import computed_on
from codegen.backwards.numeric import check_reading, drawn_for, is_torchs, straight_through
from codegen.backwards.options import Setting, settings_of
from codegen.backwards.refused import Raises
from codegen.backwards.several import SeveralVerdicts, each_setting
from codegen.backwards.speech import at_users_sizes
from codegen.backwards.steps import StepReading, by_definition, unchecked
from codegen.backwards.subsets import of_subsets
from codegen.backwards.writes import of_writes, written_in
from codegen.importing.asked import Argument, arguments_of, options_of, sizes_of
from codegen.importing.made import FloatRead
from codegen.importing.size_relations import SizesMustBeEqual
from derive.claims.checking.answers import Answer
from derive.claims.checking.check import check_claim
from derive.claims.checking.ground import ground_of
from derive.claims.checking.verdict import Verdict
from derive.claims.reading import Claim, Misaligned
from derive.language.errors import QuestionError
from derive.running.limits import LONGEST_ALONE, limited, seconds_of

NOTHING = "None is returned for it"
CONVENTION = (
    "it differs only at ties; where entries are equal, or 0, it agrees with torch's own derivative "
    "of this forward"
)
LIKE = (
    "\n    or compare it numerically with a torch function that computes the same: --like FUNCTION"
)
MOST_SECONDS = 30.0  # for gradients where options are names, at all settings together
ONCE = "a first backward alone, of the arguments as they were:"
ELSE = "otherwise:"


def check_function(
    asked: str | type,
    axes: str | Mapping[str, str],
    sizes: str | Mapping[str, int] = "",
    limit: float | None = None,
    progress: Callable[[str], None] = lambda what: None,
    like: str | Callable = "",
    options: str | Mapping[str, Any] = "",
) -> FunctionVerdict | SeveralVerdicts:
    """Check that the backward of a ``torch.autograd.Function`` is the gradient of its forward.

    ``asked`` is the class, or ``FILE.py:MyFunction``, which is run; ``axes`` names the axes of its
    tensors: ``"x: N C, weight: C"``. ``like`` is a torch function with the same values, of the same
    file where it is a name: then nothing is traced, and its derivative is compared in numbers.
    ``options`` are values of non-tensor arguments, ``"reduction=mean"``; of the others
    every value is checked that the code compares them with.
    Raises `QuestionError` for what is not understood.

    Long: each argument is one option of the command line.
    """
    subject = function_of(asked)
    chosen = options_of(options)
    settings = settings_of(subject, arguments_of(axes), chosen)
    most = min(MOST_SECONDS, (seconds_of(limit) or LONGEST_ALONE) / 4) / len(settings.each)

    def check(own: FunctionSubject, setting: Setting) -> FunctionVerdict:
        progress(f"tracing {setting}".rstrip())
        if like:
            reference = reference_of(own, like)
            numbers = in_numbers(own, reference, setting.arguments, sizes_of(sizes))
            return FunctionVerdict(own.name, (), (), "", tuple(numbers))
        held = {n: v for n, v in setting.options.items() if n not in setting.varied}
        floats = {n: v for n, v in held.items() if type(v) is float and isfinite(v)}
        asked = _Asked(own, setting.arguments, sizes_of(sizes), limit, progress, most)
        found = asked.with_names(floats)
        return replace(found, fixed=tuple(n for n in found.fixed if n not in chosen))

    return each_setting(subject, settings, check)


@dataclass(frozen=True)
class _Asked:
    """One check of a Function, at one choice of its options."""

    subject: FunctionSubject
    arguments: Sequence[Argument]
    sizes: Mapping[str, int]
    limit: float | None
    progress: Callable[[str], None]
    for_names: float = MOST_SECONDS

    def with_names(self, floats: Mapping[str, float]) -> FunctionVerdict:
        """The verdict for every value of as many floats as possible, if it is right for all of them
        or wrong for these, too; else for these alone.
        """
        own = dict(floats)
        found = None
        while own and found is None:
            try:
                backward = self._read(own)
                with limited(self.for_names):
                    found = self._judged(backward, self.limit)
            except FloatRead as looked:
                own = {n: v for n, v in own.items() if n not in looked.places}
            except Exception:
                break
        if found is None:
            return replace(self._of_numbers(), fixed=tuple(floats))
        answers = [a for v in found[0] for a in v.answers]
        where = tuple(dict.fromkeys(c for a in answers for c in a.conditions))
        named = partial(replace, every=tuple(own), where=where)
        if all(a.outcome == "right" and _for_all(a) for a in answers):
            fixed = tuple(n for n in floats if n not in own)
            return named(self._completed(backward, *found), fixed=fixed)
        plain = self._of_numbers()
        outcomes = _outcomes(found[0])
        if "wrong" in outcomes.values() and outcomes == _outcomes(plain.verdicts):
            # its explanation is one with names
            return named(plain, verdicts=tuple(found[0]), reading=found[1])
        return replace(plain, fixed=tuple(floats))

    def _of_numbers(self) -> FunctionVerdict:
        """The verdict with floats as plain numbers."""
        subject, arguments, sizes = self.subject, self.arguments, self.sizes
        try:
            backward = self._read({})
        except Raises as raised:
            return _raising(subject, raised)
        except SizesMustBeEqual as error:
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
        return self._completed(backward, *self._judged(backward, self.limit))

    def _read(self, floats: Mapping[str, float]) -> Backward:
        backward = backward_of(self.subject, self.arguments, self.sizes, floats)
        check_reading(self.subject, backward)
        return backward

    def _judged(self, backward: Backward, limit) -> tuple[list[Verdict], StepReading]:
        """The verdict on each gradient."""
        subject, progress = self.subject, self.progress

        def judged(backward: Backward) -> list[Verdict]:
            form = ground_of(backward.definition).form
            due = [s for s in backward.said if not s.is_zero(form.closed)]
            return [_judged(said, backward, subject, limit, progress) for said in due]

        return by_definition(backward, subject.name, judged, progress)

    def _completed(
        self, backward: Backward, verdicts: Sequence[Verdict], reading: StepReading
    ) -> FunctionVerdict:
        """Add the cases where only some gradients are needed, and in-place writes."""
        subject = self.subject
        self.progress("comparing where only some gradients are asked for")
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
            covered=subsets.covered,
            needs=backward.needs,
            file=subject.file,
            reading=reading,
        )


def _outcomes(verdicts: Sequence[Verdict]) -> dict[str, str]:
    return {a.name: a.outcome for v in verdicts for a in v.answers}


def _for_all(answer: Answer) -> bool:
    """True if an answer about names holds for all numbers, not just for defaults or samples."""
    return not answer.sampled and not any("=" in c for c in answer.conditions)


def _raising(subject: FunctionSubject, raised: Raises) -> FunctionVerdict:
    """The verdict where the backward raises: its shapes fit only at some sizes."""
    line = linecache.getline(subject.file, raised.line).strip()
    blamed = computed_on(subject, raised.line)
    of = f" while computing {', '.join(blamed)}" if blamed else ""
    problem = (
        f"wrong: the backward of {subject.name} raises{of}, line {raised.line}\n    {line}\n"
        f"    {raised.words}\n{raised.advice}"
    )
    return FunctionVerdict(subject.name, (), (), problem, blamed=blamed)


def _judged(
    said: GradientClaim, backward: Backward, subject: FunctionSubject, limit, progress
) -> Verdict:
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
        *first, last = backward.between
        names = f"{', '.join(first)} and {last} are" if first else f"{last} is"
        what = "are neither inputs nor outputs" if first else "is neither an input nor an output"
        as_constant = "them as constants" if first else "it as a constant"
        yield (
            f"{names} saved but {what}: second derivatives through {subject.name} treat "
            f"{as_constant} and are silently wrong. Save only inputs and outputs and recompute "
            "the rest, or mark backward @once_differentiable"
        )


def assert_gradient(
    function: str | type,
    axes: str | Mapping[str, str],
    sizes: str | Mapping[str, int] = "",
    limit: float | None = None,
    options: str | Mapping[str, Any] = "",
) -> None:
    """Raise `AssertionError` with the verdict unless the backward of ``function`` is proved to be
    the gradient of its forward; `QuestionError` if it is not supported.
    """
    verdict = check_function(function, axes, sizes, limit, options=options)
    if not verdict.right:
        raise AssertionError(f"\n{verdict}")


__all__ = ["FunctionVerdict", "QuestionError", "assert_gradient", "check_function"]
