"""Decide whether one claim is the gradient.

In: a claim and the ground of its forward. Out: an `Answer`.

A claim is first compared with the gradient in numbers of 50 digits, at points of several sizes.
Where it differs, an exact counterexample refutes it, and the rest of the work explains. Where it
does not, the proof decides (``proof.py``), the same that stands before every emitted gradient. A
proof for the small batches alone says nothing of other sizes: then claim and gradient are compared
exactly at many further ones (``numbers/further.py``), and the verdict says so. What is neither
proved nor refuted is undecided, and said so: there is no guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sympy import Expr, Integer, Rational

from derive.claims.checking.answers import Answer, Refutation
from derive.claims.checking.ground import EQUAL, Ground, for_any_upstream
from derive.claims.checking.numbers.arithmetic import Unevaluable
from derive.claims.checking.numbers.comparison import GradientQuestion
from derive.claims.checking.numbers.counterexample import (
    Counterexample,
    at_a_glance,
    counterexample,
)
from derive.claims.checking.numbers.further import agreement
from derive.claims.checking.numbers.narrowing import narrowing
from derive.claims.checking.ways import proofs
from derive.claims.checking.wrong_claims import (
    ClaimByName,
    WrongAtSizes,
    WrongClaim,
    WrongWhereConditionsChange,
)
from derive.claims.reading import Claim, Reading, TextLine
from derive.language.formulas.text import formula as words_of
from derive.language.symbols import Axis

RIGHT = ("right", "narrower")


def undecided(claim: Claim) -> Answer:
    return Answer(
        claim.of, claim.line, claim.source, "undecided", note=claim.note, lines=claim.lines
    )


def given_upstream(reading: Reading) -> Expr | None:
    """The upstream gradient as a number: what the text sets, or 1, as ``loss.backward()`` passes
    it, if it says nothing of it.
    """
    if reading.upstream is not None:
        return reading.upstream
    output, *others = reading.definition.outputs
    is_loss = not output.home and not others
    return Integer(1) if is_loss and not reading.mentions_upstream else None


def judged_claim(claim: Claim, ground: Ground, upstream: Expr | None, reading: Reading) -> Answer:
    if upstream is None and _is_derivative(claim, reading):
        answer = _judged(claim, ground, Integer(1))
        if answer.outcome in RIGHT:
            return answer
    return _judged(claim, ground, upstream)


def _is_derivative(claim: Claim, reading: Reading) -> bool:
    """Whether a function without an upstream gradient is an entrywise derivative: the gradient for
    an upstream gradient of 1, to be multiplied by any other.
    """
    first, *others = reading.definition.outputs
    without = reading.of_function and not reading.mentions_upstream and claim.actual is not None
    return without and not others and first.home == claim.of.home


def _judged(claim: Claim, ground: Ground, upstream: Expr | None) -> Answer:
    answer = undecided(claim)
    if claim.misaligned is not None:
        return replace(answer, outcome="wrong", refutation=_misaligned(claim, ground))
    actual, given = claim.actual, claim.given
    if upstream is not None:
        actual = for_any_upstream(actual, ground.chain, upstream)
        given = for_any_upstream(given, ground.chain, upstream)
        (arriving,) = ground.chain.upstreams
        answer = replace(answer, conditions=(f"{arriving} = {upstream}",))
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
    """The answer to a claim that is numerically equal to the gradient; else None."""
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
    for proved in proofs(answer, ground, dict.fromkeys((given, actual))):
        if proved.proved.every_size:
            return replace(proved, outcome="right")
        of_small_batches = of_small_batches or proved
    if of_small_batches is None:
        return _refuted(answer, ground)
    return _at_further_sizes(of_small_batches, ground)


def _narrowed(answer: Answer, claim: Claim, ground: Ground, upstream: Expr | None) -> Answer:
    """Narrow a right answer to where the formula is defined, if the gradient is defined elsewhere
    too.
    """
    if answer.outcome != "right" or claim.written is None:
        return answer
    given = dict.fromkeys(ground.chain.arriving, upstream) if upstream is not None else {}
    found = narrowing(ground.chain, answer.of, claim.written, given)
    if found is None:
        return answer
    left = (t for t in ground.ties if not found.leaves_out(t.values))
    sampled = tuple(words_of(t.condition) for t in left) if answer.sampled else ()
    answer = replace(answer, sampled=sampled)
    return replace(answer, narrowing=found, outcome="right" if found.is_thin else "narrower")


def _at_further_sizes(answer: Answer, ground: Ground) -> Answer:
    """Compare an answer that is proved for small batches only at further sizes."""
    found = agreement(GradientQuestion(ground.chain, answer.of, answer.claimed))
    if found.differs is not None:
        return _refuted(replace(answer, proved=None), ground, found.differs)
    answer = replace(answer, agreement=found)
    return replace(answer, outcome="right") if found.is_exact else answer


def _for_defaults(answer: Answer, ground: Ground, claimed: Expr):
    """A ground and an answer for each scalar whose default occurs in the claim as a number: the
    claim may be right for that number only.
    """
    numbers = claimed.atoms(Rational)
    for scalar, default in ground.definition.scalars:
        if isinstance(default, Expr):  # in sizes: never a number in a formula
            continue
        value = Rational(repr(default))
        if value in numbers and value not in (0, 1) and not claimed.has(scalar):
            condition = f"{scalar} = {default!r}, its default, which is a number in the formula"
            settled = replace(answer, conditions=(*answer.conditions, condition))
            yield ground.with_number(scalar, value), settled


def _misaligned(claim: Claim, ground: Ground) -> Refutation:
    """Refute a claim by its shapes; explain whether it would be right by name."""
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
    """Wrong if there is a counterexample, at the sizes ``at`` if the smallest show none; else
    undecided.
    """
    found = counterexample(ground.chain, answer.of, answer.claimed, at=at)
    return answer if found is None else _wrong_at(answer, ground, found, at)


def _wrong_at(answer: Answer, ground: Ground, found: Counterexample, at=None) -> Answer:
    """Wrong, by a counterexample. If the claim is right for random data or in small batches,
    similar forwards explain nothing.
    """
    if at is not None:
        why = WrongAtSizes(found)
    elif answer.difference is not None and answer.difference < EQUAL:
        why = WrongWhereConditionsChange(ground, answer.of, answer.claimed)
    else:
        last = TextLine(answer.name, answer.line, answer.source, answer.claimed)
        why = WrongClaim(ground, answer.of, answer.claimed, answer.lines, last)
    return replace(answer, outcome="wrong", refutation=Refutation(None, found, why))
