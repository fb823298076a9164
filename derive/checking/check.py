"""Check a formula: is it the gradient, and if not, what is wrong with it?

A claim is first compared with the gradient in numbers of 50 digits, at points of several sizes.
Where it differs, an exact counterexample refutes it, and the rest of the work explains. Where it
does not, the proof decides (``proof.py``), the same that stands before every emitted gradient. A
proof for the small batches alone says nothing of other sizes: then claim and gradient are compared
exactly at many further ones (``numbers/further.py``), and the verdict says so. What is neither
proved nor refuted is undecided, and said so: there is no guess.

Long: the order in which a claim is judged is one subject; splitting it would hide that order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from sympy import Expr, Integer, Rational

from derive.checking.answers import Answer, Refutation
from derive.checking.dimensions import Shapes
from derive.checking.ground import EQUAL, Ground, for_any_upstream, ground_of
from derive.checking.numbers.arithmetic import Unevaluable
from derive.checking.numbers.comparison import Question
from derive.checking.numbers.counterexample import (
    CHOICES,
    Counterexample,
    at_a_glance,
    between_equals,
    counterexample,
)
from derive.checking.numbers.further import agreement
from derive.checking.numbers.narrowing import narrowing
from derive.checking.rounded import rounded_constants, with_constants
from derive.checking.trials import tried, verdict_of
from derive.checking.verdict import Verdict
from derive.checking.wrong_claims import (
    ClaimByName,
    WrongAtSizes,
    WrongClaim,
    WrongWhereConditionsChange,
)
from derive.formulas.text import formula as words_of
from derive.language.errors import QuestionError, UnprovedError
from derive.language.symbols import Axis, Tensor
from derive.notation.definition import Definition
from derive.notation.forward import Forward
from derive.notation.library import forward_from
from derive.reading import Claim, Reading, read
from derive.running.limits import Doing, Stage, limited, seconds_of

RIGHT = ("right", "narrower")
NOT_DECIDED = (UnprovedError, ZeroDivisionError, RecursionError, NotImplementedError)


def check(
    forward: type[Forward] | str | Path,
    formula: str,
    of: str | None = None,
    let: Mapping[str, str] | None = None,
    source: str = "formula",
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
) -> Verdict:
    """Whether ``formula`` is the gradient of ``forward``: the first order of `derive.check`.

    Long: the arguments are those of `derive.check`.
    """
    check_kinds(forward, formula, of, let)
    if not isinstance(forward, type):
        forward = forward_from(forward)
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
    """The same for mathematics that is complete already.

    Long: the arguments are those of `check`.
    """
    seconds = seconds_of(limit)
    _target(definition, of)

    def as_read(shapes: Shapes, text: str = formula, constants: Mapping[str, Expr] = {}) -> Reading:
        target = _target(shapes.definition, of)
        sizes = {**shapes.sizes, **constants}
        return read(text, shapes.definition, target, let or {}, source, sizes)

    def judged(shapes: Shapes, reading: Reading) -> Verdict:
        doing = Doing(progress)
        verdict = _verdict(shapes.definition, reading, doing)
        found = verdict.right or rounded_constants(formula, ground_of(shapes.definition).chain)
        if verdict.right or not found:
            return verdict
        exact = _verdict(shapes.definition, as_read(shapes, *with_constants(formula, found)), doing)
        return _but_for_rounding(verdict, exact, tuple(map(str, found)))

    trials = tried(definition, as_read, judged)
    try:
        with limited(seconds):
            return verdict_of(list(trials))
    finally:
        if seconds is not None:  # how good a closed form is depends on the time that it had
            ground_of.cache_clear()


def _verdict(definition: Definition, reading: Reading, doing: Doing) -> Verdict:
    answers = [_answer_in_time(claim, reading, doing) for claim in reading.claims]
    blamed = tuple(_without_inheritance(answers))
    return Verdict(definition, blamed, reading.single, remarks=reading.remarks)


def _but_for_rounding(verdict: Verdict, exact: Verdict, rounded: tuple[str, ...]) -> Verdict:
    """What is right in ``exact``, with constants in the place of ``rounded`` numbers, is right but
    for rounding.
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
        return _answer(claim, ground_of(reading.definition), _given_upstream(reading), reading)
    return replace(_undecided(claim), cut_short=f"the limit of time was over ({doing})")


def _undecided(claim: Claim) -> Answer:
    return Answer(claim.of, claim.line, claim.source, "undecided", note=claim.note)


def check_kinds(forward, formula, of, let) -> None:
    """Raises `QuestionError` for what is no text, no name or no forward."""
    if isinstance(forward, type) and not issubclass(forward, Forward):
        raise QuestionError(f"{forward.__name__} is no forward", "derive it from derive.Forward")
    if not isinstance(formula, str):
        raise QuestionError(f"the formula is a {type(formula).__name__}", "pass it as text")
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
                f"{definition.name} has no input that gradients flow to", "declare one as Input"
            )
        return definition.differentiable[0]
    name = of if of in known else of.removeprefix("d")
    if name not in known:
        raise QuestionError(
            f"{definition.name} has no tensor {of!r} that a gradient flows to",
            f"--of takes one of {', '.join(known)}",
        )
    return known[name]


def _given_upstream(reading: Reading) -> Expr | None:
    """The number that arrives, where a text says so, or is a backward that starts from 1 as
    ``loss.backward()`` does.
    """
    if reading.upstream is not None:
        return reading.upstream
    is_loss = not reading.definition.output.home
    return Integer(1) if is_loss and not reading.single and not reading.mentions_upstream else None


def _answer(claim: Claim, ground: Ground, upstream: Expr | None, reading: Reading) -> Answer:
    answer = _undecided(claim)
    if claim.misaligned is not None:
        return replace(answer, outcome="wrong", refutation=_misaligned(claim, ground))
    actual, given = claim.actual, claim.given
    if upstream is not None:
        actual = for_any_upstream(actual, ground.chain, upstream)
        given = for_any_upstream(given, ground.chain, upstream)
        answer = replace(answer, conditions=(f"{ground.chain.upstream} = {upstream}",))
    grounds = [(ground, answer), *_for_defaults(answer, ground, actual)]
    for settled, conditional in grounds:
        found = _right(conditional, settled, given, actual)
        if found is not None:
            return _narrowed(found, claim, settled, upstream)
    for settled, conditional in grounds * (given != actual):
        found = _right(replace(conditional, inherits=True), settled, given, given)
        if found is not None:
            return found
    settled, conditional = grounds[-1]
    return _wrong(conditional, settled, given)


def _right(answer: Answer, ground: Ground, given: Expr, actual: Expr) -> Answer | None:
    """The answer to a claim that is equal to the gradient as far as numbers tell; else None."""
    try:
        difference = ground.difference(answer.of, actual)
    except Unevaluable:
        return None
    if not difference < EQUAL:
        return None
    answer = replace(answer, claimed=actual, difference=difference)
    found = at_a_glance(ground.chain, answer.of, actual)
    if found is not None:
        return _wrong_at(answer, ground, found)
    of_small_batches = None
    for proved in _proofs(answer, ground, dict.fromkeys((given, actual))):
        if proved.proved.every_size:
            return replace(proved, outcome="right")
        of_small_batches = of_small_batches or proved
    if of_small_batches is None:
        return _refuted(answer, ground)
    return _at_further_sizes(of_small_batches, ground)


def _narrowed(answer: Answer, claim: Claim, ground: Ground, upstream: Expr | None) -> Answer:
    """What is right, and where the formula has no value although the gradient has one."""
    if answer.outcome != "right" or claim.written is None:
        return answer
    given = {} if upstream is None else {ground.chain.upstream.name: upstream}
    found = narrowing(ground.chain, answer.of, claim.written, given)
    if found is None:
        return answer
    left = (t for t in ground.ties if not found.leaves_out(t.values))
    sampled = tuple(words_of(t.condition) for t in left) if answer.sampled else ()
    answer = replace(answer, sampled=sampled)
    return replace(answer, narrowing=found, outcome="right" if found.is_thin else "narrower")


def _proofs(answer: Answer, ground: Ground, claims: Iterable[Expr]) -> Iterator[Answer]:
    """The answer with every proof that is found, for small batches or for every size."""
    for way in _ways_to_prove(answer, ground):
        for claimed in claims:
            named = way.named(claimed)
            for same in dict.fromkeys((way.ground.decided(named), named)):
                try:
                    proved = way.ground.proved(answer.of, same)
                except NOT_DECIDED:
                    continue
                conditions = (*answer.conditions, *way.conditions)
                found = replace(answer, claimed=claimed, proved=proved, conditions=conditions)
                yield replace(found, sampled=way.sampled)
                break


def _at_further_sizes(answer: Answer, ground: Ground) -> Answer:
    """What is proved for small batches alone is right only if it is at other sizes too."""
    found = agreement(Question(ground.chain, answer.of, answer.claimed))
    if found.differs is not None:
        return _refuted(replace(answer, proved=None), ground, found.differs)
    answer = replace(answer, agreement=found)
    return replace(answer, outcome="right") if found.is_exact else answer


@dataclass(frozen=True)
class Way:
    """A mathematics in which a claim is proved, under which conditions, and where that is no proof;
    ``named`` is the claim in it.
    """

    ground: Ground
    named: Callable[[Expr], Expr]
    conditions: tuple[str, ...] = ()
    sampled: tuple[str, ...] = ()


def _ways_to_prove(answer: Answer, ground: Ground) -> Iterator[Way]:
    """The mathematics as it is; for positive scalars, which those of a positive default are meant
    to be; and both without the choices that are always the same, where the claim is not something
    else between equals, of which that says nothing.
    """
    yield from _for_positive_too(Way(ground, lambda claimed: claimed))
    made = ground.with_choices_made()
    if made is None:
        return
    if ground.decided(answer.claimed).has(*CHOICES):
        if ground.off_ties(answer.of, answer.claimed) is not None:
            yield from _for_positive_too(Way(made, partial(ground.off_ties, answer.of)))
    elif not between_equals(ground.chain, answer.of, answer.claimed):
        sampled = tuple(words_of(tie.condition) for tie in ground.ties)
        yield from _for_positive_too(Way(made, lambda claimed: claimed, sampled=sampled))


def _for_positive_too(way: Way) -> Iterator[Way]:
    yield way
    positive = way.ground.positive_scalars
    if positive:
        names = ", ".join(scalar.name for scalar in positive)
        ground, named = way.ground.for_positive_scalars(), way.named
        conditions = (f"{names} > 0",)
        yield Way(ground, lambda e: named(e).xreplace(positive), conditions, way.sampled)


def _for_defaults(answer: Answer, ground: Ground, claimed: Expr):
    """Where a claim has the default of a scalar as a number in it, it may be right for that number
    alone.
    """
    numbers = claimed.atoms(Rational)
    for scalar, default in ground.definition.scalars:
        if isinstance(default, Expr):  # in sizes: no number of a formula's
            continue
        value = Rational(repr(default))
        if value in numbers and value not in (0, 1) and not claimed.has(scalar):
            condition = f"{scalar} = {default!r}, its default, which is a number in the formula"
            settled = replace(answer, conditions=(*answer.conditions, condition))
            yield ground.with_number(scalar, value), settled


def _misaligned(claim: Claim, ground: Ground) -> Refutation:
    """Wrong by its shapes; whether it would be right by name is worth knowing."""
    by_name = claim.misaligned.by_name
    why = None if by_name is None else ClaimByName(ground, claim.of, by_name)
    return Refutation(claim.misaligned, None, why)


def _wrong(answer: Answer, ground: Ground, claimed: Expr) -> Answer:
    try:
        difference = ground.difference(answer.of, claimed)
    except Unevaluable:
        difference = None
    return _refuted(replace(answer, claimed=claimed, difference=difference), ground)


def _refuted(answer: Answer, ground: Ground, at: Mapping[Axis, int] | None = None) -> Answer:
    """Wrong, where there is a counterexample, at the sizes ``at`` if the smallest show none;
    without one the answer stays undecided.
    """
    found = counterexample(ground.chain, answer.of, answer.claimed, at=at)
    return answer if found is None else _wrong_at(answer, ground, found, at)


def _wrong_at(answer: Answer, ground: Ground, found: Counterexample, at=None) -> Answer:
    """Wrong, by a counterexample. Where it is right for random data, or in small batches, what it
    would be right for in other mathematics explains nothing.
    """
    if at is not None:
        why = WrongAtSizes(found)
    elif answer.difference is not None and answer.difference < EQUAL:
        why = WrongWhereConditionsChange(ground, answer.of, answer.claimed)
    else:
        why = WrongClaim(ground, answer.of, answer.claimed)
    return replace(answer, outcome="wrong", refutation=Refutation(None, found, why))


def _without_inheritance(answers: list[Answer]) -> list[Answer]:
    """A line that follows from the lines above is blamed for nothing, if one of those is wrong."""
    wrong = False
    result = []
    for answer in answers:
        if answer.inherits and not wrong:
            answer = replace(answer, outcome="wrong")
        wrong = wrong or answer.outcome == "wrong"
        result.append(answer)
    return result
