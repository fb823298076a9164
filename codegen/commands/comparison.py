"""Differences between two derivations: the facts of each, and those that differ.

In: facts before and after, which ``facts.py`` made. Out: changes, as lines for a person or as JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

TAKES, FORWARD = "takes", "forward"  # the facts that are about the function itself
REMOVED, ADDED = "-", "+"
NOTHING = "nothing changed in the mathematics"
SAME_FUNCTION = "the same function as before; only this differs:"
LEFT = re.compile(r"(\w+) = ")


@dataclass(frozen=True)
class DerivationFact:
    """A fact about a derivation: its subject, and the lines that state it.

    Facts with the same ``key`` are the same: it is longer than the lines, or does not depend on how
    the lines are written. Without one it is the lines.
    """

    about: str
    lines: tuple[str, ...]
    key: str = ""
    in_names: bool = True  # whether the names of the forward's values stand in the lines

    def is_same(self, other: DerivationFact) -> bool:
        return bool(self.key and self.key == other.key) or self.lines == other.lines


@dataclass(frozen=True)
class ForwardFacts:
    """The facts of one forward, in the order in which they are printed."""

    name: str
    facts: tuple[DerivationFact, ...]


@dataclass(frozen=True)
class Change:
    """A fact that changed; no lines if there is none."""

    about: str
    before: tuple[str, ...]
    after: tuple[str, ...]


def changes(before: ForwardFacts | None, after: ForwardFacts | None) -> list[Change]:
    """The facts that differ, in the order of ``after``; then those that are gone. Mere renamings
    are not changes.
    """
    before = before and _renamed(before, _names(before, after))
    old = {fact.about: fact for fact in before.facts} if before else {}
    new = {fact.about: fact for fact in after.facts} if after else {}
    nothing = DerivationFact("", ())
    pairs = [(about, old.get(about, nothing), fact) for about, fact in new.items()]
    pairs += [(about, fact, nothing) for about, fact in old.items() if about not in new]
    return [Change(a, was.lines, now.lines) for a, was, now in pairs if not was.is_same(now)]


def by_name(
    before: Sequence[ForwardFacts], after: Sequence[ForwardFacts]
) -> Iterator[tuple[str, ForwardFacts | None, ForwardFacts | None]]:
    """The forwards of both, each with its two derivations: None if it is new, or gone."""
    old, new = ({each.name: each for each in side} for side in (before, after))
    for name in dict.fromkeys([*new, *old]):
        yield name, old.get(name), new.get(name)


def described(name: str, before: ForwardFacts | None, after: ForwardFacts | None) -> list[str]:
    """Changes of one forward, line by line: ``-`` before, ``+`` after."""
    found = changes(before, after)
    if not found:
        names = (f"{old} is called {new}" for old, new in _names(before, after).items())
        return [f"{name}: {NOTHING}" + "".join(f"; {each}" for each in names)]
    is_same = all(change.about not in (TAKES, FORWARD) for change in found)
    if before is None:
        title = f"{name}: new"
    elif after is None:
        title = f"{name}: removed"
    else:
        title = f"{name}: {SAME_FUNCTION}" if is_same else f"{name}: changed"
    return [title, *(line for change in found for line in _lines(change))]


def as_json(before: Sequence[ForwardFacts], after: Sequence[ForwardFacts]) -> list[dict]:
    """The same as JSON."""
    return [
        {"name": name, "changes": [asdict(change) for change in changes(old, new)]}
        for name, old, new in by_name(before, after)
    ]


def derivation_of(data: Mapping) -> ForwardFacts:
    """The record from its `asdict`, after JSON."""
    facts = (
        DerivationFact(f["about"], tuple(f["lines"]), f["key"], f["in_names"])
        for f in data["facts"]
    )
    return ForwardFacts(data["name"], tuple(facts))


def _names(before: ForwardFacts, after: ForwardFacts | None) -> dict[str, str]:
    """The new names of statements, where nothing else about the forward has changed."""
    old, new = (_forward(each) if each else () for each in (before, after))
    pairs = zip(map(LEFT.match, old), map(LEFT.match, new), strict=False)
    names = {a[1]: b[1] for a, b in pairs if a and b and a[1] != b[1]}
    return names if names and tuple(_said(old, names)) == new else {}


def _forward(derivation: ForwardFacts) -> tuple[str, ...]:
    return next((fact.lines for fact in derivation.facts if fact.about == FORWARD), ())


def _renamed(derivation: ForwardFacts, names: Mapping[str, str]) -> ForwardFacts:
    """The same facts with new names; facts with a key are compared by that."""
    facts = (
        replace(fact, about=about, lines=tuple(_said(fact.lines, names))) if fact.in_names else fact
        for fact in derivation.facts
        for about in _said([fact.about], names)
    )
    return replace(derivation, facts=tuple(facts)) if names else derivation


def _said(lines: Sequence[str], names: Mapping[str, str]) -> Iterator[str]:
    """Rename: names stand alone, or after the prefix of a derivative: ``drms``, ``c_rms``."""
    word = re.compile(rf"\b(d|[a-z]_)?({'|'.join(map(re.escape, names))})\b")
    for line in lines:
        yield word.sub(lambda m: (m[1] or "") + names[m[2]], line) if names else line


def _lines(change: Change) -> Iterator[str]:
    """The lines of a change; of several, only those that differ."""
    yield f"  {change.about}"
    for sign, lines, others in (
        (REMOVED, change.before, change.after),
        (ADDED, change.after, change.before),
    ):
        yield from (f"    {sign} {line}" for line in lines if line not in others)
