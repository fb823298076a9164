"""The name that a user probably meant: one suggestion, not a list of all names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

SIMILAR = 0.6  # of a name: people leave out a word


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The entry of ``known`` most similar to ``word``, ignoring capitals and how words are joined;
    among equals the one with the same beginning, or the first. None where none is similar.
    """
    plain = joined_up(word)
    matcher = SequenceMatcher(b=plain)
    found: list[tuple[float, bool, str]] = []
    for name in known:
        matcher.set_seq1(joined_up(name))
        found.append((matcher.ratio(), joined_up(name)[:1] == plain[:1], name))
    score, _, name = max(found, key=lambda each: each[:2], default=(0, False, None))
    return name if score >= SIMILAR else None


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """A remedy: the nearest name, if there is one; then where to read all of them."""
    near = nearest(word, known)
    return f"did you mean {near}? {otherwise}" if near else otherwise


def joined_up(name: str) -> str:
    """The letters of a name, without capitals and marks between words."""
    return "".join(letter for letter in name.lower() if letter not in "-_ ")
