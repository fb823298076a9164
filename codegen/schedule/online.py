"""A sweep whose rows are read in chunks, as few times as possible.

A sum whose terms contain the largest entry of the row only in a factor exp(-max) need not wait for
it: both are computed online, and the sum so far is rescaled when the largest so far changes. Values
that a row would keep are recomputed where they are read, as a chunk is gone by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from codegen.schedule.elements import (
    ZERO,
    Element,
    choose,
    compare,
    entry,
    index,
    less,
    number,
    plus,
    with_indices,
)
from codegen.schedule.nodes import Node
from codegen.schedule.plan import Sweep
from codegen.schedule.rows import sweep_of

INFINITY = number(float("inf"))
NOTHING = number(-float("inf"))  # the largest of no entries


def in_chunks(sweep: Sweep) -> Sweep:
    """The same, with sums paired with maxima in each nest: whenever a maximum grows from a to b, a
    sum so far is multiplied by exp(a - b), or by 1 where both are the same.
    """
    nodes, pairs = _followed(sweep.nodes)
    stored = {*sweep.stored}
    found = sweep_of(nodes, sweep.parallel, stored, pairs)
    of = {node.name: node for node in nodes}
    nests = [{node.name for node in nest.nodes} for nest in found.nests]
    for names in nests:
        for name in names:
            gone = {
                n: node for n, node in of.items() if _is_by_entry(node, sweep) and n not in names
            }
            of[name] = computed_again(of[name], gone)
    read = stored.union(*(node.reads for node in of.values()))
    left = [node for node in of.values() if node.kind or node.name in read]
    return sweep_of(left, sweep.parallel, stored, pairs)


def _is_by_entry(node: Node, sweep: Sweep) -> bool:
    return not node.kind and bool({*node.axes} - {*sweep.rows})


def computed_again(node: Node, gone: Mapping[str, Node]) -> Node:
    """The node with reads of ``gone`` nodes replaced by their values."""

    def change(e: Element) -> Element | None:
        if e.kind != "entry" or e.name not in gone:
            return None
        before = gone[e.name]
        at = dict(zip(before.axes, e.args, strict=True))
        return with_indices(before.value, at).replaced(change)

    return replace(node, value=node.value.replaced(change))


def _followed(nodes: tuple[Node, ...]) -> tuple[list[Node], dict[str, str]]:
    """The nodes with sums to compute online, and the maximum of each: by the sum."""
    plain = {node.name: node for node in nodes if not node.kind}
    reductions = {node.name: node for node in nodes if node.kind}
    expanded = {name: computed_again(node, plain) for name, node in reductions.items()}
    found, pairs = [], {}
    for node in nodes:
        own = expanded.get(node.name, node)
        peak = _peak_of(own, expanded) if node.kind == "sum" else None
        if peak is None:
            found.append(node)
            continue
        following = _BesideMaximum(peak)
        at, own = following.peak, replace(own, value=own.value.replaced(following.guarded))
        if own.value == expanded[node.name].value:
            pairs[node.name] = peak.name
            found.append(own)
            continue
        raw = f"{node.name}_raw"
        pairs[raw] = peak.name
        total = plus(entry(raw, *map(index, node.axes)), less(at, at))
        found += [replace(own, name=raw), Node(node.name, node.axes, total)]
    return found, pairs


def _peak_of(node: Node, reductions: Mapping[str, Node]) -> Node | None:
    """The maximum with which a sum can be computed online."""
    for name in sorted(node.reads & reductions.keys()):
        peak = reductions[name]
        alike = ({*peak.axes}, {*peak.along}) == ({*node.axes}, {*node.along})
        others = (node.reads & reductions.keys()) - peak.reads - {name}
        if peak.kind == "max" and alike and not others and _BesideMaximum(peak).scales(node.value):
            return peak
    return None


@dataclass(frozen=True)
class _BesideMaximum:
    """Tests of terms in relation to the maximum ``node``."""

    node: Node

    @property
    def peak(self) -> Element:
        return entry(self.node.name, *map(index, self.node.axes))

    def reads(self, e: Element) -> bool:
        return any(part.name == self.node.name for part in e.entries)

    def scales(self, e: Element) -> bool:
        """True if it is exp(-max) times a factor that does not change with the maximum."""
        if not self.reads(e):
            return e == ZERO
        if e.kind == "call":
            return e.name == "exp" and self.shifted(e.args[0])
        if e.kind in ("choose", "guard"):
            condition, *others = e.args
            return not self.reads(condition) and all(map(self.scales, others))
        if e.kind in ("add", "subtract", "negate"):
            return all(map(self.scales, e.args))
        if e.kind == "divide":
            return self.scales(e.args[0]) and not self.reads(e.args[1])
        if e.kind == "multiply":
            return sum(map(self.reads, e.args)) == 1 and any(map(self.scales, e.args))
        return False

    def shifted(self, e: Element) -> bool:
        """True if it is a term that does not change with the maximum, minus the maximum."""
        if e.kind == "subtract":
            kept, taken = e.args
            if self.reads(kept):
                return self.shifted(kept) and not self.reads(taken)
            return self.is_shift(taken)
        if e.kind == "add":
            return sum(map(self.reads, e.args)) == 1 and any(map(self.shifted, e.args))
        return e.kind == "negate" and self.is_shift(e.args[0])

    def is_shift(self, e: Element) -> bool:
        """The maximum, or 0 where that is infinite."""
        if e.kind != "choose" or e.args[1] != ZERO:
            return e == self.peak
        condition = e.args[0]
        return (
            e.args[2] == self.peak
            and (condition.kind, condition.name) == ("compare", "==")
            and condition.args[1] == INFINITY
        )

    def guarded(self, e: Element) -> Element | None:
        """The shift, 0 until an entry was found: -oo less -oo is NaN."""
        if e.kind == "choose" and self.is_shift(e):
            return e
        return choose(compare(e, "==", NOTHING), ZERO, e) if e == self.peak else None
