"""Sums over rows that are centred by a mean over the same rows: all in one pass.

A mean needs a pass, a sum of the residuals (its rounding) a second one, and their squares a third.
With v = u - shift, where the shift is one number for each column,

    mean                          = shift + Sum(v)/n
    Sum(u - mean)                 = Sum(v) - n*(mean - shift)
    Sum((u - mean - Sum(u - mean)/n)**2) = Sum(v**2) - Sum(v)**2/n

are sums of v and v**2, exactly so in real numbers. The last line loses a factor of 1 + t**2 in the
last place, where the shift is t standard deviations from the mean: it is the median of three
entries of the column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

from codegen.schedule.costs import Costs
from codegen.schedule.elements import (
    ONE,
    ZERO,
    Axes,
    Element,
    call,
    entry,
    index,
    less,
    number,
    over,
    plus,
    size,
    times,
    with_indices,
)
from codegen.schedule.nodes import Flat, Node
from codegen.schedule.online import computed_again
from codegen.schedule.plan import Sweep
from codegen.schedule.planning import planned

TWO = number(Fraction(2))


@dataclass(frozen=True)
class Moments:
    """The sum of ``of``, its mean, and the sums of the residuals and of their squares."""

    of: Element
    total: Node
    mean: Node
    rest: Node
    squares: Node


def in_one_pass(flat: Flat, costs: Costs) -> Flat:
    """The same, with such sums over rows taken of shifted values."""
    over_rows = _partial(flat, costs)
    while (found := _moments(flat, over_rows)) is not None:
        flat = _shifted(flat, found)
    return flat


def _partial(flat: Flat, costs: Costs) -> Callable[[str], bool]:
    """A predicate for the sums that run over rows."""
    stages = planned(flat, costs).stages
    found = {name for stage in stages if isinstance(stage, Sweep) for name in stage.partial}
    return found.__contains__


def _moments(flat: Flat, over_rows: Callable[[str], bool]) -> Moments | None:
    nodes = [node for node in flat.nodes if isinstance(node, Node)]
    plain = {node.name: node for node in nodes if not node.kind}
    of = {node.name: computed_again(node, plain) for node in nodes}
    for squares in (n for n in nodes if n.kind == "sum" and over_rows(n.name)):
        value = of[squares.name].value
        if value.kind != "power" or value.args[1] != TWO or value.args[0].kind != "subtract":
            continue
        centred, own = value.args[0].args
        rest = _sum_of(own, squares, of)
        if rest is None or of[rest.name].value != centred or centred.kind != "subtract":
            continue
        total = _sum_of(centred.args[1], squares, of)
        if total is None or of[total.name].value != centred.args[0]:
            continue
        means = [n for n in plain.values() if _sum_of(n.value, squares, of) == total]
        readers = {n.name for n in nodes if total.name in n.reads}
        if len(means) == 1 and readers == {means[0].name}:
            return Moments(centred.args[0], total, means[0], rest, squares)
    return None


def _sum_of(e: Element, like: Node, of: Mapping[str, Node]) -> Node | None:
    """The sum behind an element that is a mean over the axes that ``like`` runs along."""
    divisors = []
    while e.kind == "divide":
        e, divisor = e.args
        divisors.append(divisor)
    node = of.get(e.name) if e.kind == "entry" else None
    if node is None or node.kind != "sum" or e.args != tuple(map(index, node.axes)):
        return None
    alike = ({*node.axes}, {*node.along}) == ({*like.axes}, {*like.along})
    named = sorted(d.name for d in divisors if d.kind == "size")
    return node if alike and named == sorted(node.along) and len(named) == len(divisors) else None


def _shifted(flat: Flat, own: Moments) -> Flat:
    axes, along = own.total.axes, own.total.along
    taken = {node.name for node in flat.nodes} | {array.name for array in flat.arrays}
    taken |= {*flat.scalars}

    def named(name: str) -> str:
        return name if name not in taken else named(f"{name}_")

    def here(name: str) -> Element:
        return entry(name, *map(index, axes))

    def mean_of(e: Element) -> Element:
        return reduce(over, map(size, along), e)

    shift, sums, squares = map(named, ("shift", "sum_shifted", "sum_squares"))
    value = less(own.of, here(shift))
    count = reduce(times, map(size, along))
    left = less(here(squares), mean_of(times(here(sums), here(sums))))
    made = {
        own.total.name: (
            Node(shift, axes, _median(own.of, along)),
            Node(sums, axes, value, "sum", along),
            Node(squares, axes, Element("power", (value, TWO)), "sum", along),
        ),
        own.mean.name: (replace(own.mean, value=plus(here(shift), mean_of(here(sums)))),),
        own.rest.name: (
            Node(
                own.rest.name,
                axes,
                less(here(sums), times(count, less(here(own.mean.name), here(shift)))),
            ),
        ),
        own.squares.name: (Node(own.squares.name, axes, call("larger", left, ZERO)),),
    }
    nodes = [new for node in flat.nodes for new in made.get(node.name, (node,))]
    return replace(flat, nodes=tuple(nodes))


def _median(e: Element, along: Axes) -> Element:
    """The median of the first entry, the last one and one between."""

    def at(place: Callable[[Element], Element]) -> Element:
        return with_indices(e, {axis: place(size(axis)) for axis in along})

    first = at(lambda _: ZERO)
    middle = at(lambda length: Element("floor divide", (length, TWO)))
    last = at(lambda length: less(length, ONE))
    least, most = call("smaller", first, last), call("larger", first, last)
    return call("larger", least, call("smaller", most, middle))
