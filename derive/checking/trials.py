"""A text read in every shape that a forward may have: the verdict of each, and which one counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from derive.checking.dimensions import Shapes, shapes_of
from derive.checking.verdict import Verdict
from derive.language.errors import QuestionError
from derive.notation.definition import Definition
from derive.reading import Reading


@dataclass(frozen=True)
class Trial:
    """What came of a text, read in certain shapes: a verdict, or the ``problem`` with it."""

    shapes: Shapes
    reading: Reading | None = None
    verdict: Verdict | None = None
    problem: QuestionError | None = None

    @property
    def fits(self) -> bool:
        return self.reading is not None and all(c.misaligned is None for c in self.reading.claims)

    @property
    def fits_well(self) -> bool:
        """Whether the shapes are those of the gradients, and not only up to broadcasting."""
        return self.fits and not any(c.note for c in self.reading.claims)

    @property
    def in_words(self) -> str:
        """``N as (B, T): wrong``"""
        if self.verdict is None:
            return f"{self.shapes.words}: {self.problem.problem}"
        if not self.fits:
            misaligned = next(c.misaligned for c in self.reading.claims if c.misaligned)
            return f"{self.shapes.words}: {misaligned.problem}"
        return f"{self.shapes.words}: {self.verdict.outcome}"

    def claims_the_same(self, reading: Reading, shapes: Shapes) -> bool:
        """Whether a reading in other shapes says the same: it is the same mathematics, and what is
        proved of one is proved of the other.
        """
        mine = {c.of.name: c for c in self.reading.claims}
        return (
            self.fits
            and [c.of.name for c in reading.claims] == [*mine]
            and all(
                c.misaligned is None
                and self.shapes.same(mine[c.of.name].actual, shapes, c.actual)
                and self.shapes.same(mine[c.of.name].given, shapes, c.given)
                for c in reading.claims
            )
        )


def tried(
    definition: Definition,
    read: Callable[[Shapes], Reading],
    judge: Callable[[Shapes, Reading], Verdict],
) -> Iterator[Trial]:
    """The text in each shape, as it was declared first. In the notation there is but one."""
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
    """The verdict in the first shape in which the text is right; else the first that was
    understood. It says which, and what came of the others. Raises `QuestionError`.
    """
    understood = [trial for trial in trials if trial.verdict]
    if not understood:
        raise trials[0].problem
    well = [t for t in understood if t.fits_well or t is trials[0]]
    right = [t for outcome in ("right", "narrower") for t in well if t.verdict.outcome == outcome]
    best = (right or understood)[0]
    others = [
        trial.in_words
        for trial in trials
        if trial is not best and (trial.fits_well or (right and trial is trials[0]))
    ]
    return replace(best.verdict, shapes=best.shapes.words, other_shapes=tuple(others))
