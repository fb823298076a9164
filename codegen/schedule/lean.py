"""A pair that keeps less: what the backward can compute again for little is not written for it.

An array of full size that is written for the backward alone costs more than what its entries are
computed from: its memory is fresh, and a cache does not hold it. Where they are a few operations on
arguments, which lie in memory anyway, and on what has fewer axes (the mean of a row), these are
passed on instead. The operations are those of the forward, so no digit is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from codegen.program import NUMBERS, Function, Parameter, Program
from codegen.program.parts import values_in
from codegen.program.steps import AddAt, Assign
from codegen.program.values import LengthOf, Value
from codegen.schedule.elements import Element, cost, with_indices
from codegen.schedule.flattening import flat
from codegen.schedule.inlining import CHEAP
from codegen.schedule.nodes import Array, Flat, Node, Whole


@dataclass(frozen=True)
class Lean:
    """Both functions of a pair: all results of the forward but the first are arguments of the
    backward, in their order, after what arrives at it; tensors first.
    """

    forward: Function
    flat_forward: Flat
    backward: Function
    flat_backward: Flat


def lean(pair: Program) -> Lean | None:
    """The pair where it keeps less that is its own, and no more together with the arguments, all of
    which are kept for second derivatives; None where there is no such pair, or several outputs.
    """
    if len(pair.outputs) > 1:
        return None
    found = _Values(pair)
    again = found.again()
    if not again or found.kept_more() > len(again):
        return None
    return _Writing(found, again).pair()


class _Values:
    """What a pair saves: ``saved`` are the names of nodes and arrays of the forward, by those that
    the backward has for them; ``full`` is how many axes an array of full size has.
    """

    def __init__(self, pair: Program):
        self.pair = pair
        self.forward, self.backward = flat(pair, pair.forward), flat(pair, pair.backward)
        self.nodes = {node.name: node for node in self.forward.nodes}
        self.axes = {a.name: a.axes for a in (*self.forward.arrays, *self.forward.nodes)}
        made = dict(self.forward.results)
        self.saved = {p.name: made.get(p.name, p.name) for p in pair.backward.parameters[1:]}
        self.output = made[pair.forward.results[0]]
        self.full = max(len(self.axes[a]) for a in (self.output, *self._arguments()))

    def _arguments(self) -> list[str]:
        return [array.name for array in self.forward.arrays]

    def again(self) -> dict[str, Element]:
        """What is computed again, by its name in the backward."""
        fixed = {*_asked(self.pair.backward), *_read_whole(self.backward)}
        may = {
            made: name
            for name, made in self.saved.items()
            if name not in fixed and made != self.output and self._is_own(made)
        }
        at_hand = {*self._arguments(), *self.saved.values()} - may.keys()
        at_hand |= {name for name, axes in self.axes.items() if len(axes) < self.full}
        found = {}
        for made, name in may.items():
            element = self._expanded(self.nodes[made].value, at_hand)
            read = {e.name for e in element.entries}
            if read <= at_hand and cost(element, frozenset(self.axes[made])) <= CHEAP:
                found[name] = element
        return found

    def _is_own(self, made: str) -> bool:
        """Whether it is written for the backward alone, entry by entry."""
        node = self.nodes.get(made)
        return isinstance(node, Node) and not node.kind and len(node.axes) >= self.full

    def _expanded(self, element: Element, at_hand: set[str]) -> Element:
        """An element in terms of what is at hand, as far as that goes."""

        def change(e: Element) -> Element | None:
            node = self.nodes.get(e.name) if e.kind == "entry" else None
            if e.name in at_hand or not isinstance(node, Node) or node.kind:
                return None
            args = [arg.replaced(change) for arg in e.args]
            inside = with_indices(node.value, dict(zip(node.axes, args, strict=True)))
            return inside.replaced(change)

        return element.replaced(change)

    def kept_more(self) -> int:
        """How many arguments of full size were not kept before."""
        new = {*self._arguments()} - {*self.saved.values()}
        return sum(len(self.axes[name]) >= self.full for name in new)


def _read_whole(flat: Flat) -> Iterator[str]:
    """What a library reads has to lie in memory."""
    for node in flat.nodes:
        if isinstance(node, Whole):
            yield from node.reads


def _asked(function: Function) -> Iterator[str]:
    """What is asked before anything is computed."""
    yield from (step.name for step in function.steps if not isinstance(step, Assign | AddAt))


class _Writing:
    """The pair that computes ``again``; ``own`` says what the backward calls that which it is
    handed, ``more`` is what it was not handed before.
    """

    def __init__(self, values: _Values, again: Mapping[str, Element]):
        self.values, self.again = values, again
        pair, saved = values.pair, values.saved
        self.kept = [p for p in pair.backward.parameters[1:] if p.name not in again]
        parts = [part for element in again.values() for part in element.parts()]
        read = {e.name for e in parts if e.kind in ("entry", "label", "scalar")}
        there = {saved[p.name]: p.name for p in self.kept}
        fresh = sorted(read - there.keys())
        self.own = there | self._free(fresh)
        self.more = {name: self._parameter(name) for name in fresh}

    def _free(self, names: Sequence[str]) -> dict[str, str]:
        """Names that the backward has for nothing else."""
        pair, backward = self.values.pair, self.values.backward
        taken = {a.name for a in (*backward.arrays, *backward.nodes)} | {*backward.layouts}
        taken |= {*backward.scalars, *dict(pair.sizes).values(), *pair.backward.results}
        found: dict[str, str] = {}
        for name in names:
            own = name
            while own in taken:
                own += "_"
            found[name] = own
            taken.add(own)
        return found

    def _parameter(self, name: str) -> Parameter:
        pair, own = self.values.pair, self.own[name]
        given = {p.name: p for p in pair.forward.parameters}
        if name in given:
            return replace(given[name], name=own)
        return Parameter(own, self.values.forward.layouts.get(name, ()), "statement")

    def pair(self) -> Lean:
        values, pair = self.values, self.values.pair
        output, upstream = pair.forward.results[0], pair.backward.parameters[0]
        results = [(p.name, values.saved[p.name]) for p in self.kept if p.role not in NUMBERS]
        results += [(name, name) for name, p in self.more.items() if p.role not in NUMBERS]
        handed = [(p.name, p) for p in self.kept] + [*self.more.items()]
        handed.sort(key=lambda pair: pair[1].role in NUMBERS)
        shown = (output, *(name for name, _ in handed))
        sizes = tuple(pair for pair in pair.backward.sizes if not self._is_of_dropped(pair[1]))
        parameters = (upstream, *(p for _, p in handed))
        return Lean(
            replace(pair.forward, results=shown),
            replace(values.forward, results=((output, values.output), *results)),
            replace(pair.backward, parameters=parameters, sizes=sizes),
            self._backward(),
        )

    def _is_of_dropped(self, size: Value) -> bool:
        lengths = (v for v in (size, *values_in(size)) if isinstance(v, LengthOf))
        return any(length.tensor in self.again for length in lengths)

    def _backward(self) -> Flat:
        """The backward with nodes instead of arrays."""
        forward, backward = self.values.forward, self.values.backward
        entries = {a.name: a.entries for a in forward.arrays}
        arrays = [array for array in backward.arrays if array.name not in self.again]
        for name, p in self.more.items():
            if p.role not in NUMBERS:
                own = entries.get(name, "exact")
                arrays.append(Array(p.name, self.values.axes[name], p.layout, own))
        numbers = {p.name for p in self.more.values() if p.role in NUMBERS}
        nodes = [
            Node(name, self.values.axes[self.values.saved[name]], element.replaced(self._renamed))
            for name, element in self.again.items()
        ]
        picks = [(self.own[label], axis) for label, axis in forward.picks if label in self.own]
        return replace(
            backward,
            arrays=tuple(arrays),
            scalars=tuple(sorted({*backward.scalars} | numbers)),
            nodes=(*nodes, *backward.nodes),
            picks=tuple(dict.fromkeys([*backward.picks, *picks])),
            parts={**forward.parts, **backward.parts},
        )

    def _renamed(self, e: Element) -> Element | None:
        if e.kind not in ("entry", "label", "scalar"):
            return None
        args = tuple(arg.replaced(self._renamed) for arg in e.args)
        return replace(e, name=self.own[e.name], args=args)
