"""Specializes a function to an axis of length 1: its loops are gone.

An axis that stands for any number of dimensions often stands for none; loops over the last axis of
memory would then run once each time, and no vector would be filled.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.schedule.elements import ONE, ZERO, Axes, Element
from codegen.schedule.nodes import Array, Flat, LibraryNode, Node


def last_axes(flat: Flat) -> set[str]:
    """The axes along which memory lies, of arrays that have others too."""
    axes = [array.axes for array in flat.arrays] + [node.axes for node in flat.nodes]
    return {along[-1] for along in axes if len(along) > 1}


def without(flat: Flat, axis: str) -> Flat:
    """The same computation where ``axis`` has the length 1."""
    at = {array.name: array.axes for array in flat.arrays} | {n.name: n.axes for n in flat.nodes}
    return replace(
        flat,
        arrays=tuple(_array(array, axis) for array in flat.arrays),
        nodes=tuple(_node(node, axis, at) for node in flat.nodes),
        parts={whole: _others(parts, axis) for whole, parts in flat.parts.items()},
    )


def _others(axes: Axes, axis: str) -> Axes:
    return tuple(other for other in axes if other != axis)


def _array(array: Array, axis: str) -> Array:
    return replace(array, axes=_others(array.axes, axis))


def _node(node: Node | LibraryNode, axis: str, at: dict[str, Axes]) -> Node | LibraryNode:
    axes = _others(node.axes, axis)
    if isinstance(node, LibraryNode):
        return replace(node, axes=axes)
    along = _others(node.along, axis)
    kind = node.kind if along else ""  # a sum of one, or the largest of one, is that one
    return replace(node, axes=axes, along=along, kind=kind, value=_element(node.value, axis, at))


def _element(e: Element, axis: str, at: dict[str, Axes]) -> Element:
    if e.kind == "size" and e.name == axis:
        return ONE
    if e.kind == "index" and e.name == axis:
        return ZERO
    args = tuple(_element(arg, axis, at) for arg in e.args)
    if e.kind in ("entry", "label"):
        kept = zip(at[e.name], args, strict=True)
        args = tuple(arg for along, arg in kept if along != axis)
    if e.kind in ("multiply", "divide") and args[1] == ONE:
        return args[0]
    return replace(e, args=args)
