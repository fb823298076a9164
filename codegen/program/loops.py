"""Values that follow from one another: what a recurrence computes, place after place."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.program.steps import Step
from codegen.program.values import Value


@dataclass(frozen=True)
class Passed:
    """What a place finds as ``before`` and leaves behind as ``after``: ``initial`` at the first."""

    before: str
    after: str
    initial: Value


@dataclass(frozen=True)
class Given:
    """What the body of a loop reads as ``name``: ``whole``, at each place along its dimension
    ``along`` if there is one.
    """

    name: str
    whole: Value
    along: int | None


@dataclass(frozen=True)
class Body:
    """What is computed at every place; no value of the function that it stands in."""

    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Looped(Value):
    """What the ``body`` computes at one place after the other along ``axis``, from the end if
    ``reverse``: a record of what is ``collected``, by name, for each place. ``place`` is what it
    calls the place.
    """

    axis: str
    reverse: bool
    place: str
    passed: tuple[Passed, ...]
    given: tuple[Given, ...]
    body: Body
    collected: tuple[str, ...]


@dataclass(frozen=True)
class Collected(Value):
    """One of what a loop computed at each place, put together along the dimension ``along``, or of
    the last place alone where that is None. ``number`` is which; ``reverse`` as the loop's.
    """

    record: Value
    number: int
    along: int | None
    reverse: bool
