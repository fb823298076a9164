"""What changed between two derivations: the facts of each, and those of them that differ.

In: facts before and after, which ``facts.py`` made. Out: changes, as lines for a person or as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

FORWARD = "forward"  # the fact that is about the function itself
REMOVED, ADDED = "-", "+"
SAME_FUNCTION = "the same function as before; only this differs:"


@dataclass(frozen=True)
class Fact:
    """One thing that is true of a derivation: what it is about, and the lines that say it.

    Two facts are the same where their ``key`` is: it is longer than the lines, or does not depend
    on how the lines are spelt. Without one it is the lines.
    """

    about: str
    lines: tuple[str, ...]
    key: str = ""

    def is_same(self, other: Fact) -> bool:
        return bool(self.key and self.key == other.key) or self.lines == other.lines


@dataclass(frozen=True)
class Derivation:
    """The facts of one forward, in the order in which they are told."""

    name: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class Change:
    """A fact that is not what it was; no lines where there is none."""

    about: str
    before: tuple[str, ...]
    after: tuple[str, ...]


def changes(before: Derivation | None, after: Derivation | None) -> list[Change]:
    """The facts that differ, in the order of ``after``; then those that are no more."""
    old = {fact.about: fact for fact in before.facts} if before else {}
    new = {fact.about: fact for fact in after.facts} if after else {}
    nothing = Fact("", ())
    pairs = [(about, old.get(about, nothing), fact) for about, fact in new.items()]
    pairs += [(about, fact, nothing) for about, fact in old.items() if about not in new]
    return [Change(a, was.lines, now.lines) for a, was, now in pairs if not was.is_same(now)]


def by_name(
    before: Sequence[Derivation], after: Sequence[Derivation]
) -> Iterator[tuple[str, Derivation | None, Derivation | None]]:
    """The forwards of both, each with its two derivations: None where it was not, or is no more."""
    old, new = ({each.name: each for each in side} for side in (before, after))
    for name in dict.fromkeys([*new, *old]):
        yield name, old.get(name), new.get(name)


def described(name: str, before: Derivation | None, after: Derivation | None) -> list[str]:
    """What changed of one forward, line by line: ``-`` as it was, ``+`` as it is."""
    found = changes(before, after)
    if not found:
        return [f"{name}: nothing changed in the mathematics"]
    is_same = before and after and all(change.about != FORWARD for change in found)
    if before is None:
        title = f"{name}: new"
    elif after is None:
        title = f"{name}: removed"
    else:
        title = f"{name}: {SAME_FUNCTION}" if is_same else f"{name}: changed"
    return [title, *(line for change in found for line in _lines(change))]


def as_json(before: Sequence[Derivation], after: Sequence[Derivation]) -> list[dict]:
    """The same for programs."""
    return [
        {"name": name, "changes": [asdict(change) for change in changes(old, new)]}
        for name, old, new in by_name(before, after)
    ]


def derivation_of(data: Mapping) -> Derivation:
    """The record that `asdict` was called with, after JSON."""
    facts = (Fact(f["about"], tuple(f["lines"]), f["key"]) for f in data["facts"])
    return Derivation(data["name"], tuple(facts))


def _lines(change: Change) -> Iterator[str]:
    """Of several lines only those that are not on both sides."""
    yield f"  {change.about}"
    for sign, lines, others in (
        (REMOVED, change.before, change.after),
        (ADDED, change.after, change.before),
    ):
        yield from (f"    {sign} {line}" for line in lines if line not in others)
