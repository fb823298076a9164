"""Scalar expressions inside loops: one entry of a value, by the indices of named axes.

An `Element` is a tree. Its leaves are numbers, sizes, indices and entries of arrays; a view of an
array is only other indices of its entries.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

from codegen.targets.functions import COSTLY_CALL, IN_TARGETS

Axes = tuple[str, ...]


@dataclass(frozen=True)
class Element:
    """An operation ``kind`` on ``args``, with a ``name`` or a number where it needs one.

    Leaves: 'number' (``number``), 'scalar' (an argument that is a number), 'size' (the length of an
    axis), 'index' (of the loop over the axis ``name``), 'entry' (of the array ``name``, at
    ``args``, an index for each of its axes), 'label' (the same of an integer array). Others: 'add',
    'subtract', 'multiply', 'divide', 'negate', 'power', 'call' (of the function ``name``),
    'compare' (by the relation ``name``), 'and', 'or', 'not', 'choose' (condition, yes, no), 'guard'
    (the same, but only the chosen branch is read), 'real' (an integer as a float), 'floor divide'
    and 'remainder' (of indices), 'counts' (whether a label is not the argument ``name``), 'counted'
    (the label, 0 where it does not count).
    """

    kind: str
    args: tuple[Element, ...] = ()
    name: str = ""
    number: Fraction | float | None = None

    def parts(self) -> Iterator[Element]:
        """The element and all elements inside it."""
        yield self
        for arg in self.args:
            yield from arg.parts()

    @property
    def entries(self) -> list[Element]:
        """The entries of arrays in it, at every depth."""
        return [part for part in self.parts() if part.kind in ("entry", "label")]

    def replaced(self, change: Callable[[Element], Element | None]) -> Element:
        """The element with every part replaced by its ``change``, unless that is None."""
        other = change(self)
        if other is not None:
            return other
        args = tuple(arg.replaced(change) for arg in self.args)
        return self if args == self.args else replace(self, args=args)


def number(value: Fraction | float) -> Element:
    return Element("number", number=value)


def index(axis: str) -> Element:
    return Element("index", name=axis)


def size(axis: str) -> Element:
    return Element("size", name=axis)


def entry(array: str, *indices: Element) -> Element:
    return Element("entry", indices, array)


def call(function: str, *args: Element) -> Element:
    return Element("call", args, function)


def choose(condition: Element, yes: Element, no: Element) -> Element:
    return Element("choose", (condition, yes, no))


def guarded(condition: Element, yes: Element, no: Element) -> Element:
    """As `choose`, but the other branch is not read."""
    return Element("guard", (condition, yes, no))


def compare(left: Element, relation: str, right: Element) -> Element:
    return Element("compare", (left, right), relation)


ZERO, ONE = number(Fraction(0)), number(Fraction(1))
RELATIONS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def scalars_of(elements: Iterable[Element]) -> set[str]:
    """The names of scalar arguments in the elements."""
    return {e.name for e in elements if e.kind in ("scalar", "counts", "counted")}


def plus(a: Element, b: Element) -> Element:
    return b if a == ZERO else a if b == ZERO else Element("add", (a, b))


def less(a: Element, b: Element) -> Element:
    return a if b == ZERO else Element("subtract", (a, b))


def times(a: Element, b: Element) -> Element:
    return b if a == ONE else a if b == ONE else Element("multiply", (a, b))


def over(a: Element, b: Element) -> Element:
    return Element("divide", (a, b))


def minus(a: Element) -> Element:
    return Element("negate", (a,))


@cache
def axes_in(element: Element) -> frozenset[str]:
    """The axes of the loops that an element needs."""
    if element.kind == "index":
        return frozenset({element.name})
    return frozenset().union(*(axes_in(arg) for arg in element.args))


@cache
def is_whole(element: Element) -> bool:
    """True if it is an integer: an index, or the length of an axis."""
    if element.kind in ("index", "size", "floor divide", "remainder", "label", "counted"):
        return True
    if element.kind == "number":
        return isinstance(element.number, Fraction) and element.number.denominator == 1
    if element.kind in ("add", "subtract", "multiply", "negate"):
        return all(map(is_whole, element.args))
    return False


@cache
def is_number(element: Element) -> bool:
    """True if it is made of numbers alone: known before any loop, in float64."""
    if element.kind in ("entry", "index", "label"):
        return False
    return all(map(is_number, element.args))


# Costs of operations relative to an addition: roughly its cycles for a vector.
COSTS = {"divide": 4, "power": 12, "number": 0, "scalar": 0, "size": 0, "index": 0}
CHEAP_CALLS = {"larger": 1, "smaller": 1, "sqrt": 5}
CHEAP_CALLS |= {name: row.cost for name, row in IN_TARGETS.items() if row.cost < COSTLY_CALL}


@cache
def cost(element: Element, inside: frozenset[str]) -> int:
    """The cost of computing it in loops over the axes ``inside``, plus one for each load. Values
    that are constant in all of these loops cost only a load.
    """
    if is_number(element):
        return 0
    if not inside <= axes_in(element):
        return 1
    own = COSTS.get(element.kind, 1)
    if element.kind == "call":
        own = CHEAP_CALLS.get(element.name, COSTLY_CALL)
    if element.kind == "power":
        own = power_cost(element.args[1])
    if element.kind in ("entry", "label"):
        return 1  # finding the place costs nothing beside the load
    return own + sum(cost(arg, inside) for arg in element.args)


def power_cost(exponent: Element) -> int:
    """The cost of a power: small integer exponents are products."""
    n = exponent.number
    if n in (2, 3):
        return int(n) - 1
    if n in (-1, Fraction(1, 2)):
        return CHEAP_CALLS["sqrt"]
    return COSTLY_CALL


def with_indices(element: Element, at: Mapping[str, Element]) -> Element:
    """The element with the indices of some axes replaced."""
    if not at:
        return element
    found = element.replaced(lambda e: at.get(e.name) if e.kind == "index" else None)
    return decided(found) if any(other.kind == "number" for other in at.values()) else found


def decided(e: Element) -> Element:
    """The element with conditions on numbers decided, by 1 and 0 for those that hold or do not."""
    args = tuple(map(decided, e.args))
    first = args[0] if args else None
    if e.kind == "compare" and all(arg.kind == "number" for arg in args):
        return ONE if RELATIONS[e.name](*(arg.number for arg in args)) else ZERO
    if e.kind in ("real", "not") and first in (ONE, ZERO):
        return first if e.kind == "real" else ONE if first == ZERO else ZERO
    if e.kind in ("and", "or"):
        none, every = (ONE, ZERO) if e.kind == "and" else (ZERO, ONE)
        if every in args:
            return every
        if none in args:
            return args[args[0] == none]
    if e.kind in ("choose", "guard") and first in (ONE, ZERO):
        return args[1 if first == ONE else 2]
    if e.kind == "multiply" and ONE in args:
        return times(*args)
    return e if args == e.args else replace(e, args=args)
