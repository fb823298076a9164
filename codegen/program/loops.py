"""Values of a recurrence, computed place after place."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.program.steps import Step
from codegen.program.values import Value


@dataclass(frozen=True)
class Passed:
    """A state of a loop: read as ``before``, left as ``after``; ``initial`` at the first place."""

    before: str
    after: str
    initial: Value


@dataclass(frozen=True)
class LoopInput:
    """A value that a loop's body reads as ``name``: ``whole``, at each place along its dimension
    ``along`` if there is one.
    """

    name: str
    whole: Value
    along: int | None


@dataclass(frozen=True)
class Body:
    """The steps at every place; not a value of the enclosing function."""

    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Looped(Value):
    """A loop that runs ``body`` at each place along ``axis``, from the end if ``reverse``, and
    returns a record of the ``collected`` values, by name, for each place. ``place`` names the loop
    index.
    """

    axis: str
    reverse: bool
    place: str
    passed: tuple[Passed, ...]
    given: tuple[LoopInput, ...]
    body: Body
    collected: tuple[str, ...]


@dataclass(frozen=True)
class Collected(Value):
    """A value that a loop collected at each place, stacked along the dimension ``along``, or its
    last one if that is None. ``number`` is its position; ``reverse`` as the loop's.
    """

    record: Value
    number: int
    along: int | None
    reverse: bool
