"""How a value changes when the maximum that it is measured from changes.

``degree(value, m)`` is d where value(m) = exp(d*(m - m')) * value(m') for all m and m': 0 if it
does not depend on m, None for neither. A sum measured from a running maximum is kept right by it:
the sum so far times exp(d*(m - m')), plus the new terms.

    exp(x - m)           -1        sum, matrix product   of the operands together
    a*b, a/b, a**n       sum, difference, n times
    a + b, choice        of both, where these are alike
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from codegen.chunking.nodes import ChunkNode
from codegen.program.arrays import Arrange, Contract, Expand, Reduce
from codegen.program.parts import values_in
from codegen.program.shards import OwnPick, Unshifted
from codegen.program.steps import Assign
from codegen.program.values import Apply, Choose, Load, Number, Plus, Power, Times, Value

Nodes = Mapping[str, ChunkNode]
OF_OPERAND = (Arrange, Expand)  # the same entries in other places


def degree(value: Value, largest: str, nodes: Nodes) -> Fraction | None:
    """d, by the kind of the value."""
    if not reads(value, largest, nodes):
        return Fraction(0)
    if isinstance(value, Load):
        told = _assigned(value, nodes)
        return None if told is None else degree(told, largest, nodes)
    if isinstance(value, Apply) and value.function == "exp" and not value.others:
        return shift(value.operand, largest, nodes)
    if isinstance(value, Times):
        return _together(value.factors, [degree(v, largest, nodes) for v, _ in value.factors])
    if isinstance(value, Power):
        of_base = degree(value.base, largest, nodes)
        known = of_base is not None and isinstance(value.exponent, Number)
        return of_base * value.exponent.value if known else None
    if isinstance(value, Contract):
        pair = [degree(v, largest, nodes) for v in (value.left, value.right)]
        return None if None in pair else sum(pair)
    is_sum = isinstance(value, Reduce) and value.kind == "sum"
    if isinstance(value, OF_OPERAND) or is_sum:
        return degree(value.operand, largest, nodes)
    if isinstance(value, OwnPick) and not reads(value.index, largest, nodes):
        return degree(value.operand, largest, nodes)
    if isinstance(value, Plus):
        return _alike([v for v, _ in value.terms], largest, nodes)
    if isinstance(value, Choose) and not reads(value.condition, largest, nodes):
        return _alike([value.yes, value.no], largest, nodes)
    return None


def shift(value: Value, largest: str, nodes: Nodes) -> Fraction | None:
    """d where value(m) = value(m') + d*(m - m')."""
    if not reads(value, largest, nodes):
        return Fraction(0)
    if isinstance(value, Load):
        if value.name == largest:
            return Fraction(1)
        told = _assigned(value, nodes)
        return None if told is None else shift(told, largest, nodes)
    if isinstance(value, (*OF_OPERAND, Unshifted)):  # 0 for -oo: of a row whose terms are all 0
        return shift(value.operand, largest, nodes)
    if isinstance(value, Plus):
        return _together(value.terms, [shift(v, largest, nodes) for v, _ in value.terms])
    return None


def reads(value: Value, name: str, nodes: Nodes) -> bool:
    """True if a value depends on the one called ``name``."""
    return any(other == name for other in _names_behind(value, nodes))


def _names_behind(value: Value, nodes: Nodes) -> Iterator[str]:
    seen: set[str] = set()
    waiting = [v.name for v in (value, *values_in(value)) if isinstance(v, Load)]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            yield name
            waiting += nodes[name].reads if name in nodes else ()


def _assigned(value: Load, nodes: Nodes) -> Value | None:
    """The value of a name that one line computes."""
    node = nodes.get(value.name)
    step = node.steps[0] if node is not None and len(node.steps) == 1 else None
    return step.value if isinstance(step, Assign) else None


def _together(parts, degrees) -> Fraction | None:
    """The sum of degrees, negative for a divisor or a term that is subtracted."""
    if None in degrees:
        return None
    return sum(-d if turned else d for d, (_, turned) in zip(degrees, parts, strict=True))


def _alike(values, largest: str, nodes: Nodes) -> Fraction | None:
    """The degree that all values have that are not 0, which has every degree."""
    there = [v for v in values if not (isinstance(v, Number) and v.value == 0)]
    found = {degree(v, largest, nodes) for v in there}
    return found.pop() if len(found) == 1 else None
