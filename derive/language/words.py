"""The words of the notation, each stated where it is defined; ``lexicon.py`` has all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Made = TypeVar("Made", bound=Callable)


@dataclass(frozen=True)
class NotationWord:
    """A function or a node that users write.

    ``usage`` is a call of it, and what more there is to say; ``options`` are its keywords. ``axes``
    says which axes its result has (``source/written.py``); ``runs_along`` that its operands and one
    axis are all that it takes; without ``is_public`` it occurs in derivatives alone.
    """

    make: Callable
    usage: str
    options: frozenset[str]
    axes: str
    runs_along: bool
    is_public: bool


WORDS: dict[str, NotationWord] = {}


def word(
    usage: str,
    *options: str,
    axes: str = "",
    runs_along: bool = False,
    is_public: bool = True,
) -> Callable[[Made], Made]:
    """Enter what is defined below into the table."""

    def entered(make: Made) -> Made:
        name, known = usage.partition("(")[0], frozenset(options)
        WORDS[name] = NotationWord(make, usage, known, axes, runs_along, is_public)
        return make

    return entered
