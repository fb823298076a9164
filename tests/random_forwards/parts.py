"""Pieces of the text of a forward, each with its axes and the bounds of its values.

The bounds say what may be divided by, what has a logarithm, and what is better held down before it
grows; so that a random forward is mathematics with numbers in it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

SUM, PRODUCT, POWER, ATOM = range(4)
LARGEST = 40.0


@dataclass(frozen=True)
class Part:
    """An expression: how it is written, along which axes it lies, and between which bounds.

    ``binds`` is how tightly what is written binds, ``order`` the axes of a tensor in their order.
    """

    text: str
    axes: frozenset[str] = frozenset()
    low: float = 0.0
    high: float = 0.0
    binds: int = ATOM
    order: tuple[str, ...] = ()

    def written(self, at_least: int) -> str:
        return self.text if self.binds >= at_least else f"({self.text})"

    @property
    def largest(self) -> float:
        return max(abs(self.low), abs(self.high))

    def __add__(self, other: Part) -> Part:
        text = f"{self.text} + {other.written(PRODUCT)}"
        return _of(text, self, other, self.low + other.low, self.high + other.high, SUM)

    def __sub__(self, other: Part) -> Part:
        text = f"{self.text} - {other.written(PRODUCT)}"
        return _of(text, self, other, self.low - other.high, self.high - other.low, SUM)

    def __mul__(self, other: Part) -> Part:
        corners = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        low = 0.0 if self.text == other.text else min(corners)
        text = f"{self.written(PRODUCT)} * {other.written(POWER)}"
        return _of(text, self, other, low, max(corners), PRODUCT)

    def __truediv__(self, other: Part) -> Part:
        assert other.low > 0
        corners = [a / b for a in (self.low, self.high) for b in (other.low, other.high)]
        text = f"{self.written(PRODUCT)} / {other.written(POWER)}"
        return _of(text, self, other, min(corners), max(corners), PRODUCT)

    def power(self, exponent: str, number: float) -> Part:
        text = f"{self.written(ATOM)}**{exponent}"
        ends = [abs(self.low) ** number, abs(self.high) ** number] if self.low > 0 else None
        if ends is None:  # a whole number
            ends = [self.low**number, self.high**number]
            ends += [0.0] if self.low < 0 < self.high else []
        return Part(text, self.axes, min(ends), max(ends), POWER)

    def of(self, function: str, low: float, high: float) -> Part:
        return Part(f"{function}({self.text})", self.axes, low, high)

    def monotone(self, function: str, compute) -> Part:
        return self.of(function, compute(self.low), compute(self.high))


def number(text: str, value: float | None = None) -> Part:
    value = float(text) if value is None else value
    return Part(text, frozenset(), value, value, ATOM if value >= 0 else SUM)


def size(axis: str) -> Part:
    return Part(axis, frozenset(), 1.0, 6.0)


def _of(text: str, one: Part, other: Part, low: float, high: float, binds: int) -> Part:
    return Part(text, one.axes | other.axes, low, high, binds)


def summed(part: Part, axes: Iterable[str], function: str = "Sum", most: float = 5.0) -> Part:
    """A sum or another reduction along ``axes``."""
    axes = tuple(axes)
    count = 1.0 if function == "Max" else most ** len(axes)
    low, high = (
        part.low * (count if part.low < 0 else 1),
        part.high * (count if part.high > 0 else 1),
    )
    text = f"{function}({part.text}, {', '.join(axes)})"
    return Part(text, part.axes - set(axes), low, high)


def chosen(branches: Iterable[tuple[Part, str]], axes: Iterable[str] = ()) -> Part:
    """A ``Piecewise``; ``axes`` are those of its conditions."""
    branches = list(branches)
    along = frozenset(axes).union(*(part.axes for part, _ in branches))
    inside = ", ".join(f"({part.text}, {condition})" for part, condition in branches)
    low, high = min(p.low for p, _ in branches), max(p.high for p, _ in branches)
    return Part(f"Piecewise({inside})", along, low, high)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def mentions(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None
