"""The forwards in which a numerically confirmed claim is proved.

In: an `Answer` with the claimed expression, and its ground. Out: the answer with each proof found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from sympy import Expr

from derive.claims.checking.answers import Answer
from derive.claims.checking.ground import Ground
from derive.claims.checking.numbers.counterexample import (
    CHOICES,
    between_equals,
)
from derive.language.errors import UnprovedError
from derive.language.formulas.text import formula as words_of

NOT_DECIDED = (UnprovedError, ZeroDivisionError, RecursionError, NotImplementedError)


@dataclass(frozen=True)
class ProofSetting:
    """A forward in which the claim is proved, the conditions this needs, and where the proof does
    not apply; ``named`` is the claim in it.
    """

    ground: Ground
    named: Callable[[Expr], Expr]
    conditions: tuple[str, ...] = ()
    sampled: tuple[str, ...] = ()


def proofs(answer: Answer, ground: Ground, claims: Iterable[Expr]) -> Iterator[Answer]:
    """The answer with every proof found, for small batches or for every size."""
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


def _ways_to_prove(answer: Answer, ground: Ground) -> Iterator[ProofSetting]:
    """The forward itself; the one with positive scalars, if their defaults are positive; and both
    without choices that never vary, unless the claim differs at ties, about which these say
    nothing.
    """
    yield from _for_positive_too(ProofSetting(ground, lambda claimed: claimed))
    made = ground.with_choices_made()
    if made is None:
        return
    if ground.decided(answer.claimed).has(*CHOICES):
        if ground.off_ties(answer.of, answer.claimed) is not None:
            yield from _for_positive_too(ProofSetting(made, partial(ground.off_ties, answer.of)))
    elif not between_equals(ground.chain, answer.of, answer.claimed):
        sampled = tuple(words_of(tie.condition) for tie in ground.ties)
        yield from _for_positive_too(ProofSetting(made, lambda claimed: claimed, sampled=sampled))


def _for_positive_too(way: ProofSetting) -> Iterator[ProofSetting]:
    yield way
    positive = way.ground.positive_scalars
    if positive:
        names = ", ".join(scalar.name for scalar in positive)
        ground, named = way.ground.for_positive_scalars(), way.named
        conditions = (f"{names} > 0",)
        yield ProofSetting(ground, lambda e: named(e).xreplace(positive), conditions, way.sampled)
