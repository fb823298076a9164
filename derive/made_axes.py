"""Axes that no input has: those that a renaming or a flattening makes, and where they stand.

A renamed axis has the size of the one that it was made from, a flattened one the product of its
parts.
"""

from __future__ import annotations

from collections.abc import Mapping

from sympy import postorder_traversal

from derive.errors import NotationError
from derive.nodes import Flatten
from derive.symbols import Axis, tensors_in


def twins_in(expressions) -> dict[Axis, Axis]:
    """The axes that a renaming brought in, each with the axis whose size it has."""
    twins: dict[Axis, Axis] = {}
    for tensor in [t for e in expressions for t in tensors_in(e)]:
        for home, met in zip(tensor.home, tensor.axes, strict=True):
            if met != home and home not in twins:
                twins[met] = twins.get(home, home)
    return twins


def flattened_in(expressions, twins: Mapping[Axis, Axis]) -> dict[Axis, tuple[Axis, ...]]:
    """The axes that others were flattened into, each with those; parts come before what they are
    part of. Raises `NotationError` for two meanings.
    """
    found: dict[Axis, tuple[Axis, ...]] = {}
    for node in [n for e in expressions for n in postorder_traversal(e) if isinstance(n, Flatten)]:
        flat = twins.get(node.flat, node.flat)
        parts = tuple(twins.get(axis, axis) for axis in node.axes)
        if flat in _made_of(parts, found):
            raise NotationError(
                f"{node}: {flat} would be a part of itself", "give the new axis a name of its own"
            )
        if sorted(map(str, found.setdefault(flat, parts))) != sorted(map(str, parts)):
            before, now = (" x ".join(map(str, axes)) for axes in (found[flat], parts))
            raise NotationError(
                f"{node}: the axis {flat} is {before} already, and not {now}",
                "give the second one another name",
            )
    return found


def _made_of(axes, flattened: Mapping[Axis, tuple[Axis, ...]]) -> set[Axis]:
    """``axes``, and all that they were flattened from."""
    return set(axes).union(*(_made_of(flattened.get(axis, ()), flattened) for axis in axes))


def axis_order(
    inputs, twins: Mapping[Axis, Axis], flattened: Mapping[Axis, tuple[Axis, ...]]
) -> list[Axis]:
    """Axes become dimensions in the order of first appearance among the inputs; a twin follows
    its original, and what was flattened the last of its parts.
    """
    order = list(dict.fromkeys(axis for tensor in inputs for axis in tensor.axes))
    made = {twin: (original,) for twin, original in twins.items()} | dict(flattened)
    pending = [axis for axis in made if axis not in order]
    while ready := [axis for axis in pending if all(part in order for part in made[axis])]:
        axis = ready[0]
        place = max(map(order.index, made[axis])) + 1
        while place < len(order) and order[place] in made and axis in flattened:
            place += 1  # after those that were made before it
        order.insert(place, axis)
        pending.remove(axis)
    return order
