"""The record of a schedule: which loops there are, in no language yet.

A sweep walks once through memory. Its loop over the axes P is parallel; all that has one value for
each index of P is computed row by row. A reduction over P itself is complete when the sweep has
ended, so that what reads it stands in a later one. Inside a row a *level* is how many reductions
along it lie before a value: what is of one level, and of the same axes, shares one pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from codegen.schedule.elements import Axes
from codegen.schedule.nodes import Node, Whole


@dataclass(frozen=True)
class Nest:
    """Loops over ``axes``, the last one innermost, that compute ``nodes`` at once; with no axes,
    values that the row has one of.
    """

    axes: Axes
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Sweep:
    """One walk through memory: ``parallel`` are its rows, of which the last axis is cut into
    ``tiles`` where that is the one along which memory lies.

    ``stored`` are the values that it leaves in memory, ``partial`` those of them that each thread
    has a part of; ``kept`` are those that a row keeps for a later nest of its own.
    """

    parallel: Axes
    tiles: bool
    nests: tuple[Nest, ...]
    stored: tuple[str, ...]
    partial: tuple[str, ...]
    kept: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """The stages of a function, in their order, and the ``nodes`` by their names."""

    stages: tuple[Sweep | Whole, ...]
    nodes: Mapping[str, Node | Whole]
