"""Read a text in every shape that a forward may have: each verdict, and which one counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from derive.claims.checking.dimensions import Shapes, shapes_of
from derive.claims.checking.verdict import Verdict
from derive.claims.reading import Reading
from derive.language.errors import QuestionError
from derive.language.notation.definition import Definition


@dataclass(frozen=True)
class Trial:
    """A text read in certain shapes: a verdict, or the ``problem`` with it."""

    shapes: Shapes
    reading: Reading | None = None
    verdict: Verdict | None = None
    problem: QuestionError | None = None

    @property
    def fits(self) -> bool:
        return self.reading is not None and all(c.misaligned is None for c in self.reading.claims)

    @property
    def fits_well(self) -> bool:
        """Whether its shapes equal those of the gradients, not merely up to broadcasting."""
        return self.fits and not any(c.note for c in self.reading.claims)

    @property
    def in_words(self) -> str:
        """``x is (B, T, C): wrong``"""
        if self.verdict is None:
            return f"{self.shapes.words}: {self.problem.problem}"
        if not self.fits:
            misaligned = next(c.misaligned for c in self.reading.claims if c.misaligned)
            return f"{self.shapes.words}: {misaligned.problem}"
        return f"{self.shapes.words}: {self.verdict.outcome}"

    @property
    def is_right(self) -> bool:
        return self.verdict is not None and self.verdict.outcome in ("right", "narrower")

    @property
    def decides(self) -> bool:
        """Whether the text can be meant for these shapes, and is right or wrong for all of them.

        Shapes without dimensions count only if they leave the forward unchanged.
        """
        if self.shapes.is_degenerate or self.verdict is None:
            return False
        return self.fits_well or (self.fits and self.is_right)

    def claims_the_same(self, reading: Reading, shapes: Shapes) -> bool:
        """Whether a reading in other shapes makes the same claim about the same forward, so that
        one proof covers both. A wrong claim may still be right at size 1.
        """
        if not self.fits or not (self.is_right or all(shapes.bound.values())):
            return False
        mine = {c.of.name: c for c in self.reading.claims}
        return [c.of.name for c in reading.claims] == [*mine] and all(
            c.misaligned is None
            and self.shapes.same(mine[c.of.name].actual, shapes, c.actual)
            and self.shapes.same(mine[c.of.name].given, shapes, c.given)
            for c in reading.claims
        )


def tried(
    definition: Definition,
    read: Callable[[Shapes], Reading],
    judge: Callable[[Shapes, Reading], Verdict],
) -> Iterator[Trial]:
    """The text in each shape, the declared one first. In the notation there is only one."""
    first = None
    for shapes in shapes_of(definition):
        try:
            reading = read(shapes)
        except QuestionError as problem:
            trial = Trial(shapes, problem=problem)
        else:
            if first and first.reading and first.claims_the_same(reading, shapes):
                trial = Trial(shapes, reading, first.verdict)
            else:
                trial = Trial(shapes, reading, judge(shapes, reading))
        yield trial
        first = first or trial
        if trial.reading and trial.reading.by_name:
            return


def verdict_of(trials: Sequence[Trial]) -> Verdict:
    """The verdict in the likeliest shape that the text can be meant in: the first one that it fits,
    or where that is undecided, one in which it is wrong; where it fits none, in the shape that was
    declared. It says which, and what came of the others.
    Raises `QuestionError` where it was understood in none, or not in the likeliest one and fits no
    other.
    """
    deciding = [trial for trial in trials if trial.decides] or [
        trial for trial in trials if trial.verdict and not trial.shapes.is_degenerate
    ]
    best = next(iter(deciding), None)
    if best and best.verdict.outcome == "undecided":
        best = next((trial for trial in deciding if trial.verdict.outcome == "wrong"), best)
    if best is None or (trials[0].problem and not best.fits):
        raise trials[0].problem
    others = [t for t in trials if t is not best and _counts(t, best)]
    said = best.verdict.outcome
    return replace(
        best.verdict,
        shapes=best.shapes.words,
        other_shapes=tuple(trial.in_words for trial in others),
        in_every_shape=all(t.verdict is not None and t.verdict.outcome == said for t in others),
    )


def _counts(trial: Trial, best: Trial) -> bool:
    """Whether the result of a trial is worth reporting: the text fits, or is right in
    other shapes.
    """
    return trial.fits_well or (best.is_right and not trial.shapes.is_degenerate)
