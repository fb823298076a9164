"""Tables of entries by index, and projections of indices to fewer axes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from derive.language.symbols import Axis

Index = tuple[int, ...]
UNDEFINED = None  # in place of a number
BELOW = "-oo"  # below every number


@dataclass(frozen=True)
class Table:
    """The entries of an expression along its axes."""

    axes: tuple[Axis, ...]
    entries: dict[Index, Any]


def projection(axes: tuple[Axis, ...], onto: tuple[Axis, ...]) -> Callable[[Index], Index]:
    """From an index along ``axes`` to the one along ``onto``, some of them."""
    if axes == onto:
        return lambda i: i
    places = [axes.index(axis) for axis in onto]
    return lambda i: tuple(i[place] for place in places)
