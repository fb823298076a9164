"""Sources of the sizes of axes: entries of shapes, known numbers, or one another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


class SizeTexts:
    """``places`` are texts for sizes found in arguments, ``known`` those that are there already,
    ``parts`` the sizes that are flattened into one.
    """

    def __init__(
        self, places: Mapping[str, str], known: Iterable[str], parts: Mapping[str, Sequence[str]]
    ):
        self.places, self.parts = places, parts
        self.found: dict[str, str] = dict.fromkeys(known, "")

    def lines(self, needed: Iterable[str]) -> list[str]:
        """One line for each size, after those that it is computed from. Raises KeyError if a size
        cannot be determined.
        """
        for size in needed:
            if not self.find(size):
                raise KeyError(size)
        return [f"{size} = {text}" for size, text in self.found.items() if text]

    def find(self, size: str, asked: frozenset[str] = frozenset()) -> bool:
        """True if a size can be determined without those being ``asked`` for."""
        if size in self.found:
            return True
        if size in asked:
            return False
        asked |= {size}
        text = self.places.get(size) or self.product(size, asked) or self.quotient(size, asked)
        if text:
            self.found[size] = text
        return bool(text)

    def product(self, size: str, asked: frozenset[str]) -> str:
        parts = self.parts.get(size, ())
        known = parts and all(self.find(part, asked) for part in parts)
        return " * ".join(parts) if known else ""

    def quotient(self, size: str, asked: frozenset[str]) -> str:
        """A quotient of the flattened size; 0 if others are of size 0."""
        for whole, parts in self.parts.items():
            others = [part for part in parts if part != size]
            if size in parts and all(self.find(other, asked) for other in (whole, *others)):
                return f"{whole} // max({' * '.join(others)}, 1)"
        return ""
