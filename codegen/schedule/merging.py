"""Merges adjacent axes that are always indexed together: a loop over both is one loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise

from codegen.schedule.elements import Axes, Element, index, over, size
from codegen.schedule.nodes import Flat, Node
from codegen.schedule.plan import Nest, Sweep

Pair = tuple[str, str]


@dataclass(frozen=True)
class JoinedAxes:
    """Two axes as one, in loops that run over both. The ``layouts`` are those of arrays that have
    it; in other arrays, entry k * S + s is the one at k and s.
    """

    pair: Pair
    layouts: Mapping[str, Axes]

    @property
    def name(self) -> str:
        return "*".join(self.pair)

    def parts(self, joined: Mapping[str, Axes]) -> Axes:
        """The original axes that it is made of; a part may be joined itself."""
        return tuple(axis for each in self.pair for axis in joined.get(each, (each,)))

    def axes(self, own: Axes) -> Axes:
        first, second = self.pair
        return tuple(self.name if axis == first else axis for axis in own if axis != second)

    def node(self, node: Node) -> Node:
        value = node.value.replaced(self.changed)
        return replace(node, axes=self.axes(node.axes), along=self.axes(node.along), value=value)

    def changed(self, e: Element) -> Element | None:
        if e.kind == "index" and e.name in self.pair:
            kind = "floor divide" if e.name == self.pair[0] else "remainder"
            return Element(kind, (index(self.name), size(self.pair[1])))
        if e.kind not in ("entry", "label") or e.name not in self.layouts:
            return None
        at = self.layouts[e.name].index(self.pair[0])
        args = (*e.args[:at], index(self.name), *e.args[at + 2 :])
        return replace(e, args=tuple(arg.replaced(self.changed) for arg in args))


def short(axis: str) -> str:
    """A merged axis, N*C, as one word."""
    return axis.replace("*", "")


def is_met(e: Element, axes: Axes, pair: Pair) -> bool:
    """True if an entry of an array with both axes is read at the current indices of both."""
    at = axes.index(pair[0])
    return e.args[at : at + 2] == tuple(map(index, pair))


def merged(flat: Flat) -> Flat:
    """The same computation with such axes merged, named by both (``N*C``): `Flat.joined` has their
    parts. Their own sizes may still stand in elements.
    """
    pair = next((pair for pair in _neighbours(flat) if _is_always_met(flat, pair)), None)
    return flat if pair is None else merged(_joined(flat, pair))


def _layouts(flat: Flat) -> dict[str, Axes]:
    return {each.name: each.axes for each in (*flat.arrays, *flat.nodes)}


def _neighbours(flat: Flat) -> Iterator[Pair]:
    """Adjacent axes in all loops, except a pair whose letters are the name of another axis or
    number: N and C, where NC is one.
    """
    looped = {axis for node in flat.nodes if isinstance(node, Node) for axis in node.space}
    layouts = [*_layouts(flat).values()]
    taken = {axis for axes in layouts for axis in axes} | looped | {*flat.scalars}
    taken = {name.replace("*", "") for name in taken}
    for pair in (pair for axes in layouts for pair in pairwise(axes)):
        if looped.issuperset(pair) and "".join(pair).replace("*", "") not in taken:
            yield pair


def _is_always_met(flat: Flat, pair: Pair) -> bool:
    layouts, both = _layouts(flat), {*pair}
    if any(both & {*axes} and pair not in pairwise(axes) for axes in layouts.values()):
        return False
    nodes = [node for node in flat.nodes if isinstance(node, Node)]
    if any(both & {*node.along} not in (set(), both) for node in nodes):
        return False
    return all(_is_met_in(node.value, pair, layouts) for node in nodes)


def _is_met_in(e: Element, pair: Pair, layouts: dict[str, Axes]) -> bool:
    """True if an element has both indices side by side, at the place of both axes, or neither of
    them.
    """
    if e.kind == "index":
        return e.name not in pair
    if e.kind not in ("entry", "label") or pair not in pairwise(layouts[e.name]):
        return all(_is_met_in(arg, pair, layouts) for arg in e.args)
    at = layouts[e.name].index(pair[0])
    rest = (*e.args[:at], *e.args[at + 2 :])
    here = is_met(e, layouts[e.name], pair)
    return here and all(_is_met_in(arg, pair, layouts) for arg in rest)


def _joined(flat: Flat, pair: Pair) -> Flat:
    layouts = _layouts(flat)
    joined = JoinedAxes(
        pair, {name: axes for name, axes in layouts.items() if pair in pairwise(axes)}
    )
    nodes = tuple(
        joined.node(node) if isinstance(node, Node) else replace(node, axes=joined.axes(node.axes))
        for node in flat.nodes
    )
    arrays = tuple(replace(array, axes=joined.axes(array.axes)) for array in flat.arrays)
    known = {axis: own for axis, own in flat.joined.items() if axis not in pair}
    known[joined.name] = joined.parts(flat.joined)
    return replace(flat, arrays=arrays, nodes=nodes, joined=known)


def with_joined_sizes(sweep: Sweep, joined: Mapping[str, Axes]) -> Sweep:
    """The same loops, with successive divisions by the sizes of such axes replaced by one, by their
    product.
    """

    def change(e: Element) -> Element | None:
        inner, sizes = e, []
        while inner.kind == "divide" and inner.args[1].kind == "size":
            sizes.append(inner.args[1].name)
            inner = inner.args[0]
        name = next((name for name, axes in joined.items() if {*axes} <= {*sizes}), None)
        if name is None:
            return None
        for axis in joined[name]:
            sizes.remove(axis)
        return reduce(over, map(size, (name, *reversed(sizes))), inner.replaced(change))

    def changed(nest: Nest) -> Nest:
        nodes = (replace(node, value=node.value.replaced(change)) for node in nest.nodes)
        return replace(nest, nodes=tuple(nodes))

    return replace(sweep, nests=tuple(map(changed, sweep.nests)))
