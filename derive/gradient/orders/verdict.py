"""The verdict on a claimed second derivative, in the names of the first forward.

In: the `Verdict` about the forward of the total. Out: one in which nothing is said of the number
that arrives at the total, which is 1, and the tangent goes by its own name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sympy import Integer

from derive.claims.checking.answers import Answer, Explanations, Refutation
from derive.claims.checking.explaining.edits import Edited
from derive.claims.checking.explaining.neighbours import Neighbour
from derive.claims.checking.explaining.terms import TermComparison
from derive.claims.checking.verdict import Verdict
from derive.language.notation.definition import Definition
from derive.language.symbols import Tensor
from derive.show.renamed import Renaming


class SecondVerdict(Verdict):
    """The verdict about second derivatives."""

    def as_json(self) -> dict:
        forward = self.definition.snake.removesuffix(SUFFIX)
        return super().as_json() | {"forward": forward, "order": 2}


SUFFIX = ", second order"


@dataclass(frozen=True)
class VerdictWords:
    """In which words a verdict is given: ``arriving`` is the name of what arrives at the total and
    is 1, ``tangents`` are the gradients by the upstream ones, by the names of these.
    """

    first: Definition
    arriving: str
    tangents: Mapping[str, Tensor]

    def of(self, verdict: Verdict) -> SecondVerdict:
        return SecondVerdict(
            replace(self.first, name=f"{self.first.snake}{SUFFIX}"),
            tuple(map(self._answer, verdict.answers)),
            verdict.single,
            verdict.shapes,
            verdict.other_shapes,
            verdict.in_every_shape,
            tuple(words for words in verdict.remarks if not self.mentions_total(words)),
        )

    def _answer(self, answer: Answer) -> Answer:
        conditions = tuple(c for c in answer.conditions if c != f"{self.arriving} = 1")
        called = self._called(answer.of)
        why = answer.refutation and self._refutation(answer.refutation, called)
        return replace(answer, conditions=conditions, called=called, refutation=why)

    def _called(self, of: Tensor) -> str:
        return self.tangents[of.name].name if of.name in self.tangents else ""

    def _refutation(self, why: Refutation, called: str) -> Refutation:
        found = why.counterexample
        if found is not None:
            values = {n: v for n, v in found.point.values.items() if n != self.arriving}
            found = replace(found, point=replace(found.point, values=values), called=called)
        explanations = why.explanations and Explained(why.explanations, self)
        return replace(why, counterexample=found, explanations=explanations)

    @property
    def renaming(self) -> Renaming:
        tangents = {f"d{name}": tangent for name, tangent in self.tangents.items()}
        return Renaming({self.arriving: Integer(1), **tangents})

    def mentions_total(self, words: str) -> bool:
        return re.search(rf"\b{self.arriving}\b", words) is not None


@dataclass(frozen=True)
class Explained:
    """Explanations in the names of the first forward."""

    explanations: Explanations
    said: VerdictWords

    def comparison(self) -> TermComparison | None:
        found, formula = self.explanations.comparison(), self.said.renaming.formula
        if found is None:
            return None
        factor = found.factor and tuple(map(formula, found.factor))
        differences = tuple(
            replace(d, got=formula(d.got), expected=formula(d.expected)) for d in found.differences
        )
        return replace(found, factor=factor, differences=differences).mapped(formula)

    def edit(self) -> Edited | None:
        """The edit, unless it speaks of the number that arrives."""
        found = self.explanations.edit()
        if found is None or self.said.mentions_total(found.words):
            return None
        return replace(found, words=self.said.renaming.side(found.words))

    def neighbour(self) -> Neighbour | None:
        return self.explanations.neighbour()

    def hints(self) -> tuple[str, ...]:
        """The hints, except those on the number that arrives."""
        words = self.said.renaming.side
        return tuple(words(h) for h in self.explanations.hints() if not self.said.mentions_total(h))
