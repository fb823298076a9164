"""Tables of entries: an index for each, and from an index along some axes to one along fewer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from derive.language.symbols import Axis

Index = tuple[int, ...]
UNDEFINED = None  # stands where a number would
BELOW = "-oo"  # less than every number


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
