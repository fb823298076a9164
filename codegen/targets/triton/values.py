"""The values of a sweep: loaded ones, named ones, and those inlined where they are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce

from codegen.schedule.elements import ZERO, Element, axes_in, is_number, with_indices
from codegen.schedule.nodes import Flat, Node, own
from codegen.schedule.plan import Plan, Sweep
from derive.language.errors import QuestionError

LEAVES = ("number", "scalar", "size", "index", "entry", "label")


def inlined_in(flat: Flat, plan: Plan) -> dict[Element, str]:
    """The names of values that the plan inlines."""
    expanded: dict[str, Node] = {}
    for node in flat.nodes:
        if isinstance(node, Node) and not node.kind and node.name not in plan.nodes:
            expanded[node.name] = replace(node, value=again(node.value, expanded))
    found = {simplified(node.value): name for name, node in reversed(expanded.items())}
    return {e: name for e, name in found.items() if e.kind not in LEAVES and not is_number(e)}


def again(e: Element, nodes: Mapping[str, Node]) -> Element:
    """The element with the values of ``nodes`` inlined."""

    def change(part: Element) -> Element | None:
        node = nodes.get(part.name) if part.kind == "entry" else None
        if node is None:
            return None
        args = [arg.replaced(change) for arg in part.args]
        return with_indices(node.value, dict(zip(node.axes, args, strict=True)))

    return e.replaced(change)


def simplified(e: Element) -> Element:
    """The element without additions to 0."""

    def change(part: Element) -> Element | None:
        if part.kind != "add" or part.args[0] != ZERO:
            return None
        return simplified(part.args[1])

    return e.replaced(change)


def _along(test: Element, axes: frozenset[str]) -> Iterator[Element]:
    """The parts of a test that depend on no other axes than these."""
    if axes_in(test) <= axes:
        yield test
    elif test.kind == "and":
        for arg in test.args:
            yield from _along(arg, axes)


class Values:
    """``of`` maps the nodes of a ``sweep`` to their values: those of other nodes appear in them at
    their own places alone. ``uses`` counts reads: of an entry of memory, of a node's value, or of a
    value named in ``inlined``.
    """

    def __init__(self, sweep: Sweep, inlined: Mapping[Element, str]):
        self.inlined = inlined
        self.nodes = {node.name: node for node in sweep.nodes}
        self.of = {node.name: self.made(node.value) for node in sweep.nodes}
        self.uses: Counter[Element] = Counter()
        self.roots = dict.fromkeys((*sweep.stored, *sweep.partial))
        for name in self.roots:
            self.count(own(self.nodes[name]), self.nodes)

    @contextmanager
    def in_pass(self, nodes: Sequence[Node]) -> Iterator[None]:
        """Count the uses of one pass over a row: the next one computes an entry again."""
        before, self.uses = self.uses, Counter()
        names = {node.name for node in nodes}
        for node in nodes:
            if node.kind or node.name in self.roots:
                self.count(own(node), names)
        yield
        self.uses = before

    def made(self, e: Element) -> Element:
        return self.where_needed(simplified(self.moved(e)), ())

    def moved(self, e: Element) -> Element:
        """Recompute values that are read at another place than they are computed."""

        def change(part: Element) -> Element | None:
            node = self.nodes.get(part.name) if part.kind == "entry" else None
            if node is None or part == own(node):
                return None
            if node.kind:
                raise QuestionError(
                    f"{node.name} is read elsewhere than in its row",
                    "leave --target triton out",
                )
            return self.moved(
                with_indices(node.value, dict(zip(node.axes, part.args, strict=True)))
            )

        return e.replaced(change)

    def where_needed(self, e: Element, tests: tuple[Element, ...]) -> Element:
        """Load values that are needed under a condition only where it holds."""
        if e.kind == "guard":
            condition, yes, no = (self.where_needed(arg, tests) for arg in e.args)
            yes = self.where_needed(e.args[1], (*tests, condition))
            return Element("choose", (condition, yes, no))
        args = tuple(self.where_needed(arg, tests) for arg in e.args)
        e = e if args == e.args else replace(e, args=args)
        if e.kind in ("entry", "label") and e.name not in self.nodes:
            tests = tuple(part for test in tests for part in _along(test, axes_in(e)))
            if tests:
                test = reduce(lambda one, other: Element("and", (one, other)), tests)
                return Element("guard", (test, e))
        return e

    def count(self, e: Element, names: Collection[str]) -> None:
        """Count the uses in an element, and in the nodes of these ``names``."""
        for part in self.counted(e):
            self.uses[part] += 1
            if self.uses[part] == 1 and (not self.is_own(part) or part.name in names):
                inside = [self.of[part.name]] if self.is_own(part) else part.args
                for other in inside:
                    self.count(other, names)

    def counted(self, e: Element) -> Iterator[Element]:
        """The largest parts that may be variables."""
        if e.kind in ("entry", "label", "guard") or e in self.inlined:
            yield e
        else:
            for arg in e.args:
                yield from self.counted(arg)

    def is_own(self, e: Element) -> bool:
        return e.kind == "entry" and e.name in self.nodes

    def axes(self, parts: Sequence[Element]) -> frozenset[str]:
        """The axes along which a value made of ``parts`` varies."""
        found = frozenset().union(*(self.axes(part.args) for part in parts))
        return found | {part.name for part in parts if part.kind == "index"}

    def reads(self, e: Element, names: Collection[str]) -> bool:
        """True if it depends on one of these nodes."""
        read = [part for part in e.parts() if self.is_own(part)]
        return any(p.name in names or self.reads(self.of[p.name], names) for p in read)
