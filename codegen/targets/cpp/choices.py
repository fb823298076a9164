"""Gradients that a kernel may leave out, and the values computed for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from codegen.schedule.nodes import LibraryNode, Node
from codegen.targets.cpp.names import named

WANT = "want_"


@dataclass(frozen=True)
class Choices:
    """``open`` are the results that may be left out; ``needed`` maps each value to the results that
    it is computed for.
    """

    open: tuple[str, ...] = ()
    needed: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def flags(self) -> list[str]:
        return [flag_of(name) for name in self.open]

    def condition(self, names: Iterable[str], inside: Iterable[str] = ()) -> str:
        """The condition that one of the values ``names`` is needed, in lines that run where one of
        ``inside`` is; empty if it always is.
        """
        needed = self.results_of(names)
        if {*self.open} & (self.results_of(inside) or {*self.open}) <= needed:
            return ""
        if needed - {*self.open}:
            return ""
        return " || ".join(flag_of(name) for name in self.open if name in needed)

    def results_of(self, names: Iterable[str]) -> set[str]:
        return {result for name in names for result in self.needed.get(name, ())}


def flag_of(name: str) -> str:
    return f"{WANT}{named(name)}"


def choices_of(
    nodes: Mapping[str, Node | LibraryNode], results: Iterable[str], left_out: Iterable[str]
) -> Choices:
    """The choices of ``nodes``, in an order in which they can be computed."""
    needed = {name: {name} & {*results} for name in nodes}
    for name in reversed([*nodes]):
        for read in nodes[name].reads & needed.keys():
            needed[read] |= needed[name]
    found = {name: frozenset(some) for name, some in needed.items()}
    return Choices(tuple(name for name in left_out if name in nodes), found)
