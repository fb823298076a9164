"""A value with other operands, and the values that are computed entry by entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace

from codegen.program import values
from codegen.program.arrays import AsNumber, Own
from codegen.program.parts import operands, values_in
from codegen.program.shards import Exchange
from codegen.program.steps import Step
from codegen.program.values import Value
from derive.notation.layout import Layout

MAXIMA = ("max", "peak", "subtracted peak")  # kinds of reductions
POINTWISE = (
    values.Plus,
    values.Times,
    values.MulAdd,
    values.Power,
    values.Apply,
    values.Pullback,
    values.Compare,
    values.Combine,
    values.Choose,
    values.Extreme,
    values.Clamp,
    values.Gate,
    values.Bend,
    values.Slope,
    AsNumber,
    Own,
)


def with_operands(value: Value, new: Sequence[Value], dims: Layout | None = None) -> Value:
    """``value`` made of ``new`` in the place of its operands, in their order."""
    left = list(new)
    changed = {
        field.name: _filled(getattr(value, field.name), left)
        for field in fields(value)
        if field.name != "dims"
    }
    return replace(value, **changed, dims=value.dims if dims is None else dims)


def _filled(item, left: list[Value]):
    if isinstance(item, Value):
        return left.pop(0)
    if isinstance(item, tuple):
        return tuple(_filled(part, left) for part in item)
    return item


def rewritten(value: Value, rule: Callable[[Value], Value | None]) -> Value:
    """``value`` with every part for which ``rule`` gives another one replaced, the outermost
    first.
    """
    found = rule(value)
    if found is not None:
        return found
    parts = operands(value)
    return with_operands(value, [rewritten(part, rule) for part in parts]) if parts else value


def values_of(step: Step) -> Iterator[Value]:
    """All values of a step, with what it sends."""
    yield from values_in(step)
    for sent in step.sent if isinstance(step, Exchange) else ():
        if sent.value is not None:
            yield sent.value
            yield from values_in(sent.value)
