"""What is asked of a kernel beside what it computes: what it may leave out, and what is usual."""

from __future__ import annotations

from dataclasses import dataclass, replace

from codegen.schedule.dropping import of_one_number
from codegen.schedule.elements import ZERO, Element, decided
from codegen.schedule.inlining import needed
from codegen.schedule.nodes import Flat, Node, Whole


@dataclass(frozen=True)
class Asked:
    """``left_out`` are results that may be left out; ``repeated`` arrays that are often one number
    everywhere, as what arrives at a loss is. Usually the arguments ``filled`` are left out, which
    makes them one number too, and the numbers ``zero`` are 0. ``several`` are the sizes of axes
    that stand for any number of dimensions.
    """

    left_out: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    filled: tuple[str, ...] = ()
    zero: tuple[str, ...] = ()
    several: tuple[str, ...] = ()


NOTHING = Asked()


def usually(flat: Flat, asked: Asked) -> Flat | None:
    """The same computation with what is usual; None where that is no less to do, counted in
    reductions and in arrays that are read.
    """

    results = {made for _, made in flat.results}
    numbers: dict[str, Element] = {}  # nodes that are one number then

    def change(e: Element) -> Element | None:
        if e.kind == "scalar" and e.name in asked.zero:
            return ZERO
        return numbers.get(e.name) if e.kind == "entry" else None

    nodes: list[Node | Whole] = []
    for node in flat.nodes:
        if isinstance(node, Node):
            value = decided(_without_zeros(decided(node.value.replaced(change))))
            node = replace(node, value=value)
            if value.kind == "number" and not node.kind and node.name not in results:
                numbers[node.name] = value
        nodes.append(node)
    nodes = needed(nodes, results)
    if not asked.zero or _work(nodes) == _work(needed(flat.nodes, results)):
        return None
    found = replace(flat, nodes=tuple(nodes))
    for array in asked.filled:
        found = of_one_number(found, array)
    return found


def _work(nodes: list[Node | Whole]) -> tuple[int, int]:
    return sum(bool(getattr(n, "kind", "")) for n in nodes), sum(len(n.reads) for n in nodes)


def _without_zeros(e: Element) -> Element:
    """With what is added to 0, or multiplied by it, done."""
    args = tuple(map(_without_zeros, e.args))
    if e.kind in ("multiply", "divide") and args[0] == ZERO:
        return ZERO
    if e.kind == "multiply" and args[1] == ZERO:
        return ZERO
    if e.kind == "negate" and args[0] == ZERO:
        return ZERO
    if e.kind in ("add", "subtract") and args[1] == ZERO:
        return args[0]
    if e.kind == "add" and args[0] == ZERO:
        return args[1]
    if e.kind == "subtract" and args[0] == ZERO:
        return Element("negate", (args[1],))
    return e if args == e.args else replace(e, args=args)
