"""Reductions and recurrences that are the definition of a value, solved for."""

from __future__ import annotations

from collections.abc import Iterator

from sympy import Expr, Mul, Pow, S

from derive.gradient.values.naming import NamedValue
from derive.gradient.values.solving import Known, Solution
from derive.language.nodes import Max, Recurrence, RecurrenceBefore, Sum, Whole
from derive.language.symbols import is_number_or_size, tensors_in


def reduction(value: NamedValue, known: Known) -> Iterator[Solution]:
    found = _lone_reduction(value)
    if found is not None:
        yield found[0], value.tensor / found[1]


def reduction_of_powers(value: NamedValue, known: Known) -> Iterator[Solution]:
    """Read the reduction of diff2 also as the reduction of diff**2."""
    found = _lone_reduction(value)
    if found is None:
        return
    reduction, rest = found
    if isinstance(reduction, Whole):
        return
    powers = {
        tensor: known.by_name[tensor.name].expression
        for tensor in tensors_in(reduction.operand)
        if tensor.name in known.by_name and tensor.axes == tensor.home
    }
    powers = {tensor: power for tensor, power in powers.items() if isinstance(power, Pow)}
    if powers:
        yield reduction.on(reduction.operand.xreplace(powers)), value.tensor / rest


def _lone_reduction(value: NamedValue) -> tuple[Expr, Expr] | None:
    """The only reduction or recurrence in a product with numbers and sizes, and their product."""
    kinds = Sum, Max, Whole
    reductions = [f for f in Mul.make_args(value.expression) if isinstance(f, kinds)]
    if len(reductions) != 1:
        return None
    rest = value.expression / reductions[0]
    return (reductions[0], rest) if is_number_or_size(rest) and rest.is_zero is False else None


def state_before(value: NamedValue, known: Known) -> Iterator[Solution]:
    """The states before those of a recurrence."""
    found = _lone_reduction(value)
    if found is None or type(found[0]) is not Recurrence:
        return
    node, rest = found
    state, before = value.tensor / rest, RecurrenceBefore
    yield (
        before.over(*node.operands, node.axes),
        before.over(state, S.Zero, node.initial, node.axes),
    )
