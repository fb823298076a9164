"""Indices that axes are read at: the environment in which an expression is lowered.

An axis in an expression is either a dimension of the result, or it is *picked*: read at the index
that a label means. A label lies along axes of its own, and those are dimensions of the place where
the label was met. Two things keep them apart from the axes that a node below binds:

- an `Index` holds the label together with what was picked where it was met, so that an axis of the
  label means the same wherever the index is used;
- `under` divides what is picked around a node. No index that lies along an axis of the node's own
  gets below it: there that axis would mean another one. The node is computed whole instead, and
  read at the index afterwards (``nodes.py``, the only way into an array node).

So no axis that is picked is a dimension of any index, and picks may be made in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sympy import Expr

from derive.language.array_node import ArrayNode
from derive.language.nodes import Reduction
from derive.language.symbols import Axis, axes_of


@dataclass(frozen=True)
class Index:
    """The index of ``label``: a label, a number, or an `ArgMax`, at the entries ``picked``."""

    label: Expr
    picked: Picked

    @property
    def axes(self) -> frozenset[Axis]:
        """The dimensions that the index varies along."""
        return frozenset(axes_at(self.label, self.picked))


Picked = Mapping[Axis, Index]
NOTHING_PICKED: Picked = {}


def met(label: Expr, picked: Picked = NOTHING_PICKED) -> Index:
    """The index that a label means where it is met."""
    return Index(label, {a: index for a, index in picked.items() if a in axes_of(label)})


def axes_at(e: Expr, picked: Picked) -> set[Axis]:
    """The axes of ``e`` once some of them are read at an index, all at the same time."""
    axes = axes_of(e)
    return {axis for axis in axes if axis not in picked}.union(
        *(index.axes for axis, index in picked.items() if axis in axes)
    )


def under(node: ArrayNode, picked: Picked) -> tuple[Picked, Picked]:
    """Split ``picked`` into picks below ``node`` and picks of the whole node: where an index lies
    along an axis that the node binds or brings, or reads one that it brings, or would turn one
    reduction for each row into one for each label.
    """
    own, reduces = {*node.binds, *node.brings}, isinstance(node, Reduction)
    inside, after = {}, {}
    for axis, index in picked.items():
        if axis in axes_of(node):
            more = reduces and not index.axes <= axes_of(node)
            (after if axis in own or index.axes & own or more else inside)[axis] = index
    return inside, after
