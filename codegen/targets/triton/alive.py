"""Register pressure of a program: the number of values of a row's length alive at once, in order.

A value is alive from its first use until nothing reads it any more. Common subexpressions are
computed once, also where the text has them twice: a compiler sees that. A label counts twice.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from codegen.schedule.elements import Element, axes_in, is_whole
from codegen.schedule.nodes import Node
from codegen.schedule.plan import Sweep
from codegen.schedule.shape import Shape
from codegen.targets.triton.values import Values

WITHOUT_REDUCTION = 2 / 3  # of the values alive: compilers compute some of them entry by entry


def alive(sweep: Sweep, shape: Shape, values: Values) -> int:
    """Number of values alive at once, at least 1; in chunks the most over all passes."""
    inner, sums = {*shape.inner}, {*(sweep.partial if shape.looped else ())}
    added = sum(bool(inner & {*values.nodes[name].space}) for name in sums)
    if not shape.chunked:
        following = followed(sweep.nodes, shape, values)
        most = added + following.most
        if shape.tile:
            return max(1, most)
        return max(1, added + following.reduced, math.ceil(most * WITHOUT_REDUCTION))
    found = [1]
    for nest in (nest for nest in sweep.nests if inner & {*nest.axes}):
        own = sum(bool(node.kind) and node.name not in sums for node in nest.nodes)
        found.append(added + own + followed(nest.nodes, shape, values).most)
    return max(found)


def followed(nodes: Iterable[Node], shape: Shape, values: Values) -> _Remaining:
    """Simulate these nodes, one after another; sums accumulated entry by entry do not count."""
    following = _Remaining(shape, values)
    made = [(node, e) for node in nodes for e in following.long(values.of[node.name])]
    for _, e in made:
        following.count(e)
    for node, e in made:
        following.computed(e)
        following.read(e)
        if node.kind:
            following.reduced = max(following.reduced, following.held)
    return following


@dataclass
class _Remaining:
    """Remaining reads of each value, and the values alive now."""

    shape: Shape
    values: Values
    reads: Counter[Element] = field(default_factory=Counter)
    now: set[Element] = field(default_factory=set)
    most: int = 0
    reduced: int = 0  # those that there are during a reduction

    @property
    def held(self) -> int:
        """Registers for each entry; those of a label have 64 bits."""
        return sum(1 + (e.kind == "label") for e in self.now)

    def long(self, e: Element) -> Iterator[Element]:
        """The element, if it has a row's length; a node's value is replaced by the node."""
        while self.values.is_own(e) and not self.values.nodes[e.name].kind:
            e = self.values.of[e.name]
        if axes_in(e) & {*self.shape.inner} and (e.kind == "label" or not is_whole(e)):
            yield e

    def parts(self, e: Element) -> Iterator[Element]:
        for arg in () if e.kind in ("entry", "label") else e.args:
            yield from self.long(arg)

    def count(self, e: Element) -> None:
        self.reads[e] += 1
        if self.reads[e] == 1:
            for part in self.parts(e):
                self.count(part)

    def computed(self, e: Element) -> None:
        if e in self.now:
            return
        parts = [*self.parts(e)]
        for part in parts:
            self.computed(part)
        for part in parts:
            self.read(part)
        self.now.add(e)
        self.most = max(self.most, self.held)

    def read(self, e: Element) -> None:
        self.reads[e] -= 1
        shape = self.shape
        is_kept = shape.looped and bool(shape.rows) and not axes_in(e) & {*shape.rows}
        if not self.reads[e] and not is_kept:  # nor the same for all rows that it walks over
            self.now.discard(e)
