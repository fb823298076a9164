"""The name that a user probably meant: one suggestion, not a list of all names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

SIMILAR = 0.6  # of a name: people leave out a word
SUBSTITUTED = 2  # letters that one wrong letter leaves unmatched


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The entry of ``known`` most similar to ``word``, ignoring capitals and how words are joined;
    among equals the one with the same beginning, or the first. None if none is similar: of a short
    word one letter may be wrong, and a whole word is similar to a name that has it.
    """
    plain = joined_up(word)
    matcher = SequenceMatcher(b=plain)
    found: list[tuple[float, bool, str]] = []
    for name in known:
        own = joined_up(name)
        matcher.set_seq1(own)
        ratio = matcher.ratio()
        unmatched = round((1 - ratio) * (len(own) + len(plain)))
        close = ratio >= SIMILAR and unmatched <= max(SUBSTITUTED, len(plain) // 2)
        if close or _is_run_of_words(plain, name):
            found.append((ratio, own[:1] == plain[:1], name))
    return max(found, key=lambda each: each[:2], default=(0, False, None))[2]


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """A remedy: the nearest name, if there is one; then where to read all of them."""
    near = nearest(word, known)
    return f"did you mean {near}? {otherwise}" if near else otherwise


def _is_run_of_words(plain: str, name: str) -> bool:
    words = [word for word in re.split("[-_ ]", name.lower()) if word]
    ends = range(1, len(words) + 1)
    return any("".join(words[i:j]) == plain for j in ends for i in range(j))


def joined_up(name: str) -> str:
    """The letters of a name, without capitals and marks between words."""
    return "".join(letter for letter in name.lower() if letter not in "-_ ")
