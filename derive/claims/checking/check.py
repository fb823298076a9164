"""Check a formula: is it the gradient, and if not, what is wrong with it?

A text is read in each shape it may be meant for, every claim in it is judged (``judging.py``), and
the answers form one verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from sympy import Expr

from derive.claims.checking.answers import Answer
from derive.claims.checking.dimensions import Shapes
from derive.claims.checking.ground import Ground, ground_of
from derive.claims.checking.guessing import Read, guessed, with_found
from derive.claims.checking.judging import RIGHT, given_upstream, judged_claim, undecided
from derive.claims.checking.rounded import rounded_constants, with_constants
from derive.claims.checking.scaled import faults_in, scaled_on_the_way
from derive.claims.checking.trials import tried, verdict_of
from derive.claims.checking.verdict import Verdict
from derive.claims.reading import (
    Claim,
    NotUnderstood,
    Reading,
    TextNames,
    TextValue,
    UnknownNames,
    read,
    takes_in,
)
from derive.claims.reading.roles import meant_by_words
from derive.gradient.values.naming import written_out
from derive.language.errors import QuestionError
from derive.language.nearest import did_you_mean
from derive.language.notation.definition import IGNORE_INDEX, Definition
from derive.language.notation.forward import Forward
from derive.language.notation.library import as_forward
from derive.language.notation.specialised import without_options
from derive.language.symbols import Tensor
from derive.running.limits import Doing, Stage, limited, seconds_of


def check(
    forward: type[Forward] | str | Path,
    formula: str,
    of: str | None = None,
    let: Mapping[str, str] | None = None,
    source: str = "formula",
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
) -> Verdict:
    """Check whether ``formula`` is the gradient of ``forward``, as `derive.check` does for the
    first order.

    Long: the arguments are those of `derive.check`.
    """
    check_kinds(formula, of, let)
    forward = as_forward(forward)
    return check_definition(forward.definition, formula, of, let, source, progress, limit)


def check_definition(
    definition: Definition,
    formula: str,
    of: str | None = None,
    let: Mapping[str, str] | None = None,
    source: str = "formula",
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
) -> Verdict:
    """The same for a finished definition.

    Long: the arguments are those of `check`.
    """
    seconds = seconds_of(limit)
    _target(definition, of)

    def as_read(
        shapes: Shapes,
        text: str = formula,
        constants: Mapping[str, Expr] = {},
        scales: Mapping[str, Expr] = {},
    ) -> Reading:
        target = _target(shapes.definition, of)
        sizes = {**shapes.sizes, **constants}

        def with_names(more: Mapping[str, str | TextValue], only: str | None = None) -> Reading:
            known = {**(let or {}), **more}
            return read(text, shapes.definition, target, known, source, sizes, only, scales)

        return _with_names_guessed(with_names, ground_of(shapes.definition), {*(let or {})})

    def judged(shapes: Shapes, reading: Reading) -> Verdict:
        doing = Doing(progress)
        verdict = _verdict(shapes.definition, reading, doing)
        for scales in scaled_on_the_way(verdict, reading, ground_of(reading.definition)):
            other = _verdict(shapes.definition, as_read(shapes, scales=scales), doing)
            if faults_in(other) < faults_in(verdict):
                verdict = other
                break
        found = verdict.right or rounded_constants(formula, ground_of(shapes.definition).chain)
        if verdict.right or not found:
            return verdict
        exact = _verdict(shapes.definition, as_read(shapes, *with_constants(formula, found)), doing)
        return _but_for_rounding(verdict, exact, tuple(map(str, found)))

    def verdict_on(definition: Definition) -> Verdict:
        return verdict_of(list(tried(definition, as_read, judged)))

    try:
        with limited(seconds):
            return _with_defaults(definition, takes_in(formula), verdict_on)
    finally:
        if seconds is not None:  # the quality of a closed form depends on its time
            ground_of.cache_clear()


def check_claim(
    definition: Definition,
    claim: Claim,
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
    numbers: Mapping[str, Expr] = {},
    with_numbers: Callable[[Mapping[Expr, Expr]], Expr] | None = None,
) -> Verdict:
    """The verdict on one claim given as an expression, for any upstream gradient.

    ``numbers`` are the typed decimals, by their digits, and ``with_numbers`` is the claim with the
    constants of the forward that they round.
    """
    doing = Doing(progress)

    def verdict_on(claim: Claim) -> Verdict:
        return _verdict(definition, Reading(definition, (claim,), None, True, True, True), doing)

    with limited(seconds_of(limit)):
        verdict = verdict_on(claim)
        if verdict.right or with_numbers is None:
            return verdict
        found = rounded_constants(" ".join(numbers), ground_of(definition).chain)
        if not found:
            return verdict
        exact = with_numbers({numbers[r.literal]: r.constant for r in found})
        again = verdict_on(replace(claim, actual=exact, given=exact))
        return _but_for_rounding(verdict, again, tuple(map(str, found)))


def _with_defaults(
    definition: Definition,
    signature: tuple[set[str], set[str]],
    verdict_on: Callable[[Definition], Verdict],
) -> Verdict:
    """The verdict; for a text whose signature lacks arguments with defaults, the verdict on the
    forward without them, if it is right there.
    """
    takes, unread = signature
    plain = without_options(definition) if takes else None
    if plain is None or unread - {*plain.position}:
        return verdict_on(definition)
    meant = {*takes, *meant_by_words(takes, TextNames(definition, {})).values()}
    if meant & _options(definition) or len(takes) > len(plain.position):
        return verdict_on(definition)
    verdict, problem = None, None
    try:
        verdict = verdict_on(definition)
    except NotUnderstood as error:
        problem = error
    if verdict is not None and verdict.right:
        return verdict
    try:
        found = verdict_on(plain)
    except QuestionError:
        found = None
    if found is not None and (found.right or verdict is None):
        left_out = ", ".join(sorted(_options(definition)))
        words = f"with the defaults of the arguments that its signature lacks: {left_out}"
        return replace(found, remarks=(words, *found.remarks))
    if verdict is None:
        raise problem
    return verdict


def _options(definition: Definition) -> set[str]:
    """The names of optional arguments."""
    names = {t.name for t, _ in definition.optional}
    names |= {t.name for t, default in definition.scalars if default == 0}
    return names | ({IGNORE_INDEX} if definition.ignoring else set())


def _with_names_guessed(read_with: Read, ground: Ground, settled: set[str]) -> Reading:
    """The text with its undefined names inferred. If one remains, raises `NotUnderstood` with the
    ``--let`` options found.
    """
    try:
        return read_with({})
    except NotUnderstood as error:
        if not isinstance(error.cause, UnknownNames):
            raise
        for unknown in filter(None, (error.cause, error.cause.without_forward)):
            guess = guessed(unknown, ground, read_with, settled)
            left = [name for name in unknown.names if name not in guess.known]
            if not left and (guess.right or guess.certain):
                break
        else:
            own = _shared_values(ground, error.cause.names)
            if own is None:
                error.remedy = with_found(error.remedy, guess, unknown)
                raise
            return read_with(own)
        reading = read_with(guess.known)
        used = [words for words in guess.words if words not in reading.roles]
        said = f"read as: {', '.join(used)} (guessed; --let says otherwise)"
        return replace(reading, remarks=(said, *reading.remarks)) if used else reading


def _shared_values(ground: Ground, names: Collection[str]) -> dict[str, TextValue] | None:
    """The values that the closed form computes under ``names``, if it does all of them."""
    form = ground.form
    values: dict[Tensor, Expr] = {}
    for tensor, e in form.with_parts:
        values[tensor] = written_out(e, {t.name: value for t, value in values.items()})
    shown = {form.parts_shown.get(t, t).name: (t, e) for t, e in values.items()}
    if not {*names} <= shown.keys():
        return None
    found = {name: shown[name] for name in names}
    return {name: TextValue(e, form.definition.in_order(t.axes)) for name, (t, e) in found.items()}


def _verdict(definition: Definition, reading: Reading, doing: Doing) -> Verdict:
    answers = [_answer_in_time(claim, reading, doing) for claim in reading.claims]
    blamed = tuple(_without_inheritance(answers))
    returned = [a for a in blamed if a.name in reading.returned]
    if returned and all(a.outcome in RIGHT and not a.inherits for a in returned):
        blamed = tuple(a for a in blamed if a.outcome in RIGHT and not a.inherits)
    remarks = (*_upstream_in_words(definition, reading), *reading.remarks)
    return Verdict(definition, blamed, reading.single, remarks=remarks)


def _upstream_in_words(definition: Definition, reading: Reading) -> Iterator[str]:
    """Name the argument that is the upstream gradient, unless its name says so."""
    if reading.roles:
        several = "s" * (len(reading.roles) > 1)
        yield f"upstream gradient{several}: {', '.join(reading.roles)} (--let says otherwise)"
    elif reading.of_function and not reading.mentions_upstream:
        own = ", ".join(f"d{output.name}" for output in definition.outputs)
        at = " = 1, as loss.backward() passes it" * (given_upstream(reading) is not None)
        yield f"upstream gradient: no argument is {own}{at} (--let NAME={own} says otherwise)"


def _but_for_rounding(verdict: Verdict, exact: Verdict, rounded: tuple[str, ...]) -> Verdict:
    """Accept up to rounding a claim that is right in ``exact``, where constants replace the
    ``rounded`` numbers.
    """
    pairs = zip(verdict.answers, exact.answers, strict=True)
    answers = [
        replace(with_constants, source=as_typed.source, rounded=rounded)
        if as_typed.outcome in ("wrong", "undecided") and with_constants.outcome in RIGHT
        else as_typed
        for as_typed, with_constants in pairs
    ]
    return replace(verdict, answers=tuple(answers))


def _answer_in_time(claim: Claim, reading: Reading, doing: Doing) -> Answer:
    with Stage():
        doing(f"checking d{claim.of.name}")
        return judged_claim(claim, ground_of(reading.definition), given_upstream(reading), reading)
    return replace(undecided(claim), cut_short=f"the time limit ran out ({doing})")


def check_kinds(formula, of, let) -> None:
    """Raise `QuestionError` unless the arguments are strings and names."""
    if not isinstance(formula, str):
        raise QuestionError(f"the formula is a {type(formula).__name__}", "pass a string")
    if not isinstance(of, (str, type(None))):
        raise QuestionError(f"of is a {type(of).__name__}", 'pass a name: of="x"')
    if not isinstance(let, (Mapping, type(None))):
        raise QuestionError(f"let is a {type(let).__name__}", 'pass a dict: let={"mine": "x"}')


def _target(definition: Definition, of: str | None) -> Tensor:
    """The tensor whose gradient a formula without a left-hand side is about."""
    known = {t.name: t for t in definition.differentiable}
    known |= {s.name: s.tensor for s in definition.statements}
    if of is None:
        if not definition.differentiable:
            raise QuestionError(
                f"{definition.name} has no differentiable input", "declare one as Input"
            )
        return definition.differentiable[0]
    name = of if of in known else of.removeprefix("d")
    if name not in known:
        raise QuestionError(
            f"{definition.name} has no differentiable tensor {of!r}",
            did_you_mean(of, known, f"--of takes one of {', '.join(known)}"),
        )
    return known[name]


def _without_inheritance(answers: list[Answer]) -> list[Answer]:
    """Do not blame a line that is wrong only because an earlier line is."""
    wrong = False
    result = []
    for answer in answers:
        if answer.inherits and not wrong:
            answer = replace(answer, outcome="wrong")
        wrong = wrong or answer.outcome == "wrong"
        result.append(answer)
    return result
