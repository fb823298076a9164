"""The record of a schedule: its loops, in no language yet.

A sweep walks once through memory. Its loop over the axes P is parallel; values with one entry for
each index of P are computed row by row. A reduction over P itself is complete when the sweep has
ended, so its readers stand in a later one. Inside a row a *level* is the number of reductions along
it before a value: values of one level and of the same axes share one pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from codegen.schedule.elements import Axes
from codegen.schedule.nodes import Flat, LibraryNode, Node


@dataclass(frozen=True)
class Nest:
    """Loops over ``axes``, the last one innermost, that compute ``nodes`` at once; with no axes,
    values of which a row has one. ``online`` are (maximum, sum) that are computed together.
    """

    axes: Axes
    nodes: tuple[Node, ...]
    online: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Sweep:
    """One walk through memory: ``parallel`` are its rows; the last of these axes is cut into
    ``tiles`` if memory lies along it.

    ``stored`` are the values that it leaves in memory, ``partial`` those of them that each thread
    has a part of, as they are summed over some of the ``parallel`` axes; ``kept`` are those that a
    row keeps for a later nest of its own. ``left`` are sums that stay in parts, and ``parts`` those
    that it reads so, in targets with that.
    """

    parallel: Axes
    tiles: bool
    nests: tuple[Nest, ...]
    stored: tuple[str, ...]
    partial: tuple[str, ...]
    kept: tuple[str, ...]
    left: tuple[str, ...] = ()
    parts: tuple[Node, ...] = ()

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(node for nest in self.nests for node in nest.nodes)

    @property
    def rows(self) -> Axes:
        """The parallel axes that are not cut into pieces."""
        return self.parallel[: -1 if self.tiles else None]

    @property
    def reads(self) -> frozenset[str]:
        """Names that it reads from memory."""
        nodes = self.nodes
        return frozenset().union(*(n.reads for n in nodes)) - {n.name for n in nodes}

    def over(self, name: str) -> Axes:
        """The rows that a partial sum runs over; it has a value for each of the others."""
        node = next(node for node in self.nodes if node.name == name)
        return tuple(axis for axis in self.parallel if axis in node.along)


@dataclass(frozen=True)
class Plan:
    """The stages of a function, in order, and the ``nodes`` by name. ``flat`` is the planned
    function, in which axes are `joined`.
    """

    flat: Flat
    stages: tuple[Sweep | LibraryNode, ...]
    nodes: Mapping[str, Node | LibraryNode]

    def entries(self) -> dict[str, str]:
        """The kind of entries, as in `Array`, of every array and of all stored values. A result
        that a later stage reads is not rounded before that.
        """
        flat = self.flat
        found = {array.name: array.entries for array in flat.arrays}
        last = {made for result, made in flat.results if result in flat.rounded}
        last -= frozenset().union(*(stage.reads for stage in self.stages))
        for stage in self.stages:
            one = isinstance(stage, LibraryNode)
            made = {stage.name: stage.entries} if one else dict.fromkeys(stage.stored, "exact")
            found |= {name: "real" if name in last else own for name, own in made.items()}
        return found
