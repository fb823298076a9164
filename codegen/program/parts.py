"""What values and steps are made of."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from codegen.program.arrays import Expand, OneHotOf, Positions, Zeros
from codegen.program.shards import OwnPositions
from codegen.program.steps import Step
from codegen.program.values import Load, Value


def operands(node: Value | Step) -> list[Value]:
    """The values that a value or a step is directly made of."""
    return list(_values_among(vars(node).values()))


def values_in(node: Value | Step) -> Iterator[Value]:
    """All values that a value or a step is made of, at any depth."""
    for value in operands(node):
        yield value
        yield from values_in(value)


def _values_among(items) -> Iterator[Value]:
    for item in items:
        if isinstance(item, Value):
            yield item
        elif isinstance(item, tuple):
            yield from _values_among(item)


def is_number(value: Value, numbers: Collection[str]) -> bool:
    """Whether a value is a Python number when the code runs, where the arguments called ``numbers``
    are: it is made of those, and is no tensor that is made of numbers.
    """
    if isinstance(value, Load):
        return value.name in numbers
    if isinstance(value, (Zeros, Positions, Expand, OneHotOf, OwnPositions)):
        return False
    return all(is_number(operand, numbers) for operand in operands(value))
