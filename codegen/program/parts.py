"""Parts of values and steps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import fields, replace

from codegen.program.arrays import Arrange, Expand, OneHotOf, Positions, Zeros
from codegen.program.loops import Collected, Looped, LoopInput, Passed
from codegen.program.reads import Geometry, IndexStep, Placement
from codegen.program.shards import OwnPositions
from codegen.program.steps import Step
from codegen.program.values import Constant, Load, Number, Value

HOLDING = (IndexStep, Geometry, Placement, Passed, LoopInput)  # values, and are none
LARGEST_SINGLE = (2 - 2**-23) * 2.0**127  # of float32


def operands(node: Value | Step) -> list[Value]:
    """The direct operands of a value or a step."""
    return list(_values_among(vars(node).values()))


def values_in(node: Value | Step) -> Iterator[Value]:
    """All values inside a value or a step, at any depth."""
    for value in operands(node):
        yield value
        yield from values_in(value)


def with_replaced(node, change: Callable[[Value], Value | None]):
    """``node``, a value or a step, with every value replaced by its ``change``, unless that is
    None; replacements are not searched.
    """
    if isinstance(node, tuple):
        return tuple(with_replaced(each, change) for each in node)
    if isinstance(node, Value) and (other := change(node)) is not None:
        return other
    if not isinstance(node, (Value, Step, *HOLDING)):
        return node
    changed = {}
    for field in fields(node):
        before = getattr(node, field.name)
        after = with_replaced(before, change)
        if after != before:
            changed[field.name] = after
    return replace(node, **changed) if changed else node


def _values_among(items) -> Iterator[Value]:
    for item in items:
        if isinstance(item, Value):
            yield item
        elif isinstance(item, HOLDING):
            yield from _values_among(vars(item).values())
        elif isinstance(item, tuple):
            yield from _values_among(item)


def on_diagonal(index: Value) -> Positions | None:
    """The positions in an index that selects a diagonal, regardless of further dimensions."""
    while isinstance(index, (Arrange, Expand)):
        index = index.operand
    return index if isinstance(index, Positions) else None


def is_number(value: Value, numbers: Collection[str]) -> bool:
    """True if a value is a Python number when the code runs, as the arguments called ``numbers``
    are: it is made of those, and is not a tensor made of numbers.
    """
    if isinstance(value, Load):
        return value.name in numbers
    if isinstance(value, (Zeros, Positions, Expand, OneHotOf, OwnPositions, Looped, Collected)):
        return False
    return all(is_number(operand, numbers) for operand in operands(value))


def is_wide(value: Value) -> bool:
    """True if a number exceeds float32. In arithmetic it is infinite there; as an argument of a
    function, such as a bound of a clamp, torch rejects it.
    """
    numbers = [n for n in (value, *values_in(value)) if isinstance(n, (Number, Constant))]
    return any(LARGEST_SINGLE < abs(n.value) < float("inf") for n in numbers)
