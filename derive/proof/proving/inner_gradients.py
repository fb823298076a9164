"""The proof of the gradients inside of a forward: every slope of them obeys the chain rule.

In: a `Definition`. Out: what is `ShownClaims` of each gradient in it, or an `UnprovedError` that
names the slope.

A slope by ``t`` is the sum over all statements ``s`` that read ``t`` of the derivative of ``s`` by
``t`` times the slope by ``s``, with everything else held fixed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sympy import Add, Expr

from derive.language.errors import UnprovedError
from derive.language.notation.definition import Definition, InnerGradient
from derive.language.notation.slope import TotalGradient
from derive.language.symbols import Tensor, tensors_in
from derive.proof.proving.batch_sizes import batches_of
from derive.proof.proving.claim import Batch, ShownClaims, needed_on
from derive.proof.proving.every_size import IndexedForward
from derive.proof.proving.small_batch import SmallBatch, TotalDerivative


@dataclass(frozen=True)
class ThroughReaders:
    """``expression`` is the derivative by ``target`` of the sum of all ``slope * s``, for the
    tensors ``s`` of the ``readers``, with each slope held fixed.
    """

    definition: Definition
    target: Tensor
    expression: Expr
    readers: tuple[tuple[Tensor, Expr], ...]

    def on(self, batch: SmallBatch) -> Iterator[Expr]:
        """Differences that must vanish, for one entry of each kind."""
        for i in batch.representatives(self.target.home, self.expression):
            derivative = TotalDerivative(batch.entries(self.target)[i])
            terms = [
                batch.scalar(slope, s.home, j) * derivative.of(value)
                for s, slope in self.readers
                for j, value in batch.computed(s.name).items()
            ]
            yield Add(*terms) - batch.scalar(self.expression, self.target.home, i)

    def indexed(self, forward: IndexedForward) -> Expr:
        """The difference in indexed sums."""
        at = {axis: forward.index(axis) for axis in self.target.home}
        derivative = TotalDerivative(forward.entry(self.target, at))
        terms = []
        for s, slope in self.readers:
            bound = {axis: forward.index(axis, "o") for axis in s.home}
            value = derivative.of(forward.computed(s.name, bound))
            terms.append(forward.total(forward.written(slope, bound) * value, s.home, bound))
        return Add(*terms) - forward.written(self.expression, at)


def shown_gradients(definition: Definition) -> list[ShownClaims]:
    """Prove the gradients inside of a forward on small batches. Raises `UnprovedError`."""
    return [_shown(inner) for inner in definition.inner]


def _shown(inner: InnerGradient) -> ShownClaims:
    definition = inner.definition
    batches = [Batch(definition, sizes) for sizes in batches_of(definition)]
    read = {slope.by.name: slope.read for slope in inner.slopes}
    claims = []
    for slope in inner.slopes[1:]:
        claim = _claim(definition, slope, read)
        needed = needed_on(claim, batches)
        if needed is None:
            raise UnprovedError(
                f"{definition.name}: {inner.slopes[-1].read} is unproved. Entry by entry, the "
                f"derivative of {definition.output} by {slope.by} was not shown to be "
                f"{slope.value}; nothing was emitted"
            )
        claims.append((claim, needed))
    return ShownClaims(inner.slopes[-1].read, claims)


def _claim(
    definition: Definition, slope: TotalGradient, read: Mapping[str, Expr]
) -> ThroughReaders:
    readers = tuple(
        (s.tensor, read[s.name])
        for s in definition.statements
        if any(t.name == slope.by.name for t in tensors_in(s.expression))
    )
    return ThroughReaders(definition, slope.by, slope.value, readers)
