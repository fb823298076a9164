"""Reductions that differ in what a sum is divided by, as one function: a sum of losses, their mean,
a mean over the batch. A number replaces the sizes, which is 1 for the sum itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codegen.schedule.elements import Element, number
from codegen.schedule.nodes import Flat, Node, Whole

ONE = number(1)
Sizes = tuple[str, ...]  # axes, whose lengths are multiplied


class _Differs(Exception):
    """They differ in more."""


def divided(whole: Flat, other: Flat, name: str) -> tuple[Flat, Sizes] | None:
    """``other`` with the number ``name`` instead of sizes by which something in ``whole`` is
    not divided, and these; None where that is not all that they differ in.
    """
    matching = _Matching(name)
    try:
        nodes = matching.nodes(whole.nodes, other.nodes)
    except _Differs:
        return None
    same = (whole.arrays, whole.picks, whole.parts) == (other.arrays, other.picks, other.parts)
    if not same or not matching.sizes:
        return None
    return replace(other, nodes=nodes, scalars=(*other.scalars, name)), matching.sizes


class _Matching:
    """``sizes`` are those that were found, the same everywhere."""

    def __init__(self, name: str):
        self.divisor, self.sizes = Element("scalar", name=name), ()

    def nodes(self, whole: Sequence[Node | Whole], other: Sequence[Node | Whole]) -> tuple:
        """A sum of ``whole`` may be one in ``other`` that is divided by a node behind it."""
        found, rest = [], [*other]
        for node in whole:
            if not rest:
                raise _Differs
            own = rest.pop(0)
            found.append(self.node(replace(node, name=own.name), own))
            if own.name != node.name:
                if not rest or rest[0].name != node.name or not isinstance(rest[0], Node):
                    raise _Differs
                last = rest.pop(0)
                entry = Element(
                    "entry", tuple(Element("index", name=a) for a in last.axes), own.name
                )
                found.append(replace(last, value=self.element(entry, last.value)))
        if rest:
            raise _Differs
        return tuple(found)

    def node(self, node: Node | Whole, own: Node | Whole) -> Node | Whole:
        if node == own:
            return own
        if not isinstance(node, Node) or not isinstance(own, Node):
            raise _Differs
        value = self.element(node.value, own.value)
        if replace(node, value=value) != replace(own, value=value):
            raise _Differs
        return replace(own, value=value)

    def element(self, e: Element, own: Element) -> Element:
        """``own`` with the number in it, where it is ``e`` divided by sizes."""
        if e == own:
            return own
        inner, sizes = own, []
        while inner.kind == "divide" and inner.args[1].kind == "size":
            sizes.append(inner.args[1].name)
            inner = inner.args[0]
        if sizes and inner == e:
            return Element("divide", (inner, self.of(sizes)))
        if own.kind == "multiply" and own.args[1] == e:
            return replace(own, args=(self.element(ONE, own.args[0]), e))
        alike = (e.kind, e.name, e.number, len(e.args)) == (
            own.kind,
            own.name,
            own.number,
            len(own.args),
        )
        if not alike:
            raise _Differs
        pairs = zip(e.args, own.args, strict=True)
        return replace(own, args=tuple(self.element(one, other) for one, other in pairs))

    def of(self, sizes: Sequence[str]) -> Element:
        known = tuple(sorted(sizes))
        if self.sizes not in ((), known):
            raise _Differs
        self.sizes = known
        return self.divisor
