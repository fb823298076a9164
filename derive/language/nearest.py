"""What somebody may have meant who mistyped a name: one suggestion, not a list of all names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

SIMILAR = 0.6  # of a name: people leave out a word


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The one of ``known`` that is most like ``word``, however it is capitalised and its words are
    joined, the first of equals; None where none is similar.
    """
    plain = {_plain(name): name for name in reversed([*known])}
    close = difflib.get_close_matches(_plain(word), plain, n=1, cutoff=SIMILAR)
    return plain[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """A remedy: the nearest name, if there is one; then where all of them can be read."""
    near = nearest(word, known)
    return f"did you mean {near}? {otherwise}" if near else otherwise


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter not in "-_ ")
