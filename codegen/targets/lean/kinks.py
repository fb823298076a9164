"""Bounds that pass no gradient where the statements pass none, in lines differentiated again.

torch's clamp passes one where its operand is the bound. So ``max(x, 0) + expm1(min(x, 0))`` has the
derivative 2 at 0 by its lines; the statement with ``x <= 0`` takes one branch alone there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from codegen.lowering.differentiated import at_equality, decisions_of
from codegen.program import Function, Program
from codegen.program.parts import values_in, with_replaced
from codegen.program.steps import Assign
from codegen.program.values import Clamp, Compare, Load, Value


@dataclass(frozen=True)
class Beyond(Clamp):
    """A clamp with one bound that passes no gradient where the operand equals it."""


def with_kinks_as_stated(program: Program) -> Program:
    """``program`` with such bounds in all values that the backward computes or reads."""
    stated = {step.name for step in program.atoms.steps}
    written = decisions_of(program.atoms, stated)
    forward = _with_bounds(program.forward, stated, written, _read_by_the_backward(program))
    every = {step.name for step in program.backward.steps}
    backward = _with_bounds(program.backward, stated, written, every)
    return replace(program, forward=forward, backward=backward)


def _with_bounds(
    function: Function, stated: Collection[str], written: Collection, names: Collection[str]
) -> Function:
    """``function`` with such bounds in the lines of these ``names``."""
    named: dict[str, Value] = {}  # values of lines between statements, in names of statements

    def inlined(value: Value) -> Value:
        return with_replaced(value, lambda v: named.get(v.name) if isinstance(v, Load) else None)

    def change(value: Value) -> Value | None:
        if not isinstance(value, Clamp) or (value.low is None) == (value.high is None):
            return None
        operand, bound = value.operand, value.high if value.low is None else value.low
        left, right = at_equality(
            Compare(inlined(operand), "<=" if value.low is None else ">=", bound)
        )
        if (left, right) in written or (right, left) not in written:
            return None
        operand = with_replaced(operand, change)
        return Beyond(operand, value.low, value.high, dims=value.dims)

    steps = []
    for step in function.steps:
        steps.append(with_replaced(step, change) if step.name in names else step)
        if isinstance(step, Assign) and step.name not in stated:
            named[step.name] = inlined(step.value)
    return replace(function, steps=tuple(steps))


def _read_by_the_backward(program: Program) -> Collection[str]:
    """Names behind the backward's needs in the forward, up to the outputs, which autograd knows."""
    read = {p.name for p in program.needs} - {*program.outputs}
    for step in reversed(program.forward.steps):
        if step.name in read:
            read |= {v.name for v in values_in(step) if isinstance(v, Load)} - {*program.outputs}
    return read
