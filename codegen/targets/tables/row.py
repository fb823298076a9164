"""A row of a table of kernels: the steps that compute a function, by names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

Axes = tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """Lines of torch, or of sizes: what they ``take`` and ``make``, as names."""

    makes: tuple[str, ...]
    takes: tuple[str, ...]
    text: str

    @property
    def expression(self) -> str:
        """Of a single line, what it makes; nothing where there are several."""
        name, equals, rest = self.text.partition(" = ")
        return rest if equals and name == ", ".join(self.makes) and "\n" not in rest else ""


@dataclass(frozen=True)
class Called:
    """A kernel that is called: arrays, sizes and numbers, and what it makes."""

    name: str
    reads: tuple[str, ...]
    sizes: tuple[str, ...]
    numbers: tuple[str, ...]
    makes: tuple[str, ...]


@dataclass(frozen=True)
class Same:
    """``name`` is another name of ``of``; "" where this is only named, for its shape."""

    name: str
    of: str


@dataclass
class Row:
    """A row: the function that it is of, and its steps; ``of`` and ``saved`` are what a table says.
    ``shapes`` are those of all names in it, ``filled`` and ``whole`` as in a table. ``words`` are
    the reductions that it is for, each with its ``divisor``, if they have one, which is a number of
    its kernel.
    """

    words: list[str]
    function: str
    steps: list[Line | Called | Same]
    shapes: dict[str, Axes]
    filled: dict[str, str]
    whole: set[str]
    saved: tuple[str, ...] = ()
    of: list[tuple[str, ...]] = field(default_factory=list)
    of_library: bool = False  # whether a library computes between its kernels
    divisor: str = ""
    divisors: list[str] = field(default_factory=list)

    def takes_in(self, other: Row) -> bool:
        """Whether ``other`` is the same for another reduction, which this is for too from here."""
        words, divisors = [*self.words, *other.words], [*self.divisors, *other.divisors]
        shapes = {n: axes for n, axes in other.shapes.items() if n in self.shapes}
        if not self.divisors or self.shapes | shapes != self.shapes:
            return False
        if replace(other, words=words, divisors=divisors, shapes=self.shapes) != replace(
            self, words=words, divisors=divisors
        ):
            return False
        self.words, self.divisors = words, divisors
        return True

    def call(self, names: Mapping[str, str]) -> None:
        """Calls kernels by other ``names``."""
        self.steps = [
            replace(step, name=names[step.name]) if isinstance(step, Called) else step
            for step in self.steps
        ]


def takes(step: Line | Called | Same) -> tuple[str, ...]:
    if isinstance(step, Same):
        return (step.of,)
    return step.takes if isinstance(step, Line) else step.reads


def names_of(step: Line | Called | Same) -> tuple[str, ...]:
    """All that stand in a line of torch, which stay as they are."""
    return (*step.takes, *step.makes) if isinstance(step, Line) else ()


def renamed(step: Line | Called, new: dict[str, str]) -> Line | Called:
    if isinstance(step, Line):
        return step
    reads, makes = (tuple(new.get(n, n) for n in names) for names in (step.reads, step.makes))
    return Called(step.name, reads, step.sizes, step.numbers, makes)


def with_names(rows: Sequence[Row], new: dict[str, str]) -> bool:
    """Gives names in the rows other ones, where none of these is there; whether it did."""
    steps = [step for row in rows for step in row.steps]
    lines = {name for step in steps for name in names_of(step)}
    there = {name for row in rows for name in row.shapes} | lines
    there |= {name for s in steps if isinstance(s, Called) for name in (*s.sizes, *s.numbers)}
    if there.intersection(new.values()) or lines.intersection(new):
        return False
    for row in rows:
        row.steps = [renamed(s, new) if isinstance(s, Called) else s for s in row.steps]
        row.shapes = {new.get(name, name): axes for name, axes in row.shapes.items()}
        row.saved = tuple(new.get(name, name) for name in row.saved)
    return True
