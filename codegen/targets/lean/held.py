"""Lines that torch may differentiate again, where choices exclude infinite derivatives.

Autograd multiplies gradients through a branch that is not taken by 0, which is NaN where a
derivative is infinite. So arguments are held in such branches (``lowering/bounded.py``), and a root
that is only read away from 0 is made of a constant at 0. A value of full size is held only while a
gradient is asked for, so that training pays nothing.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from codegen.lowering.bounded import with_bounded_arguments
from codegen.program import NUMBERS, Function, Program
from codegen.program.arrays import Detached
from codegen.program.loops import Looped
from codegen.program.parts import operands, values_in, with_replaced
from codegen.program.steps import Assign, Step
from codegen.program.values import (
    Choose,
    Clamp,
    Combine,
    Compare,
    Load,
    Number,
    Power,
    Value,
)
from codegen.targets.lean.kept import is_small
from codegen.targets.torch.wrapping import free

RELATIONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
Numbers = Mapping[str, object]  # the defaults of arguments that are numbers


@dataclass(frozen=True)
class Graded(Value):
    """``differentiated`` while autograd records, else ``plain``, for all readers."""

    differentiated: Value
    plain: Value


@dataclass(frozen=True)
class RootOffZero(Value):
    """The square root, differentiated only where it is not 0."""

    square: Value


@dataclass(frozen=True)
class Held(Choose):
    """A choice that holds an argument."""


def with_arguments_held(program: Program) -> Program:
    """``program`` with lines that may be differentiated twice in more places."""
    backward = with_bounded_arguments(program.backward, choice=Held)
    roots = _Roots(program)
    return replace(
        program,
        forward=roots.held(program.forward),
        atoms=roots.held(program.atoms),
        backward=replace(backward, steps=tuple(_at_no_cost(backward, program))),
    )


def _at_no_cost(function: Function, program: Program) -> Iterator[Step]:
    """The steps, with a line before each held value of full size."""
    taken = {s.name for s in function.steps} | {p.name for p in function.parameters}
    named: dict[Value, str] = {}
    numbers = _defaults(program)
    for step in function.steps:
        lines: list[Step] = []

        def held(value: Value, step=step, lines=lines) -> Value | None:
            if not isinstance(value, Held):
                return None
            chosen = _as_choice(value, numbers)
            if is_small(value.dims, program):
                return chosen
            if value not in named:
                plain = value
                while isinstance(plain, Held):  # by several conditions
                    plain = plain.no if isinstance(plain.yes, Number) else plain.yes
                name = plain.name if isinstance(plain, Load) else step.name
                named[value] = free(f"{name}_held", {*taken, *named.values()})
                graded = Graded(chosen, plain, dims=value.dims)
                lines.append(Assign(named[value], graded))
            return Load(named[value], dims=value.dims)

        changed = with_replaced(step, held)
        yield from (*lines, changed)


def _as_choice(value: Value, numbers: Numbers) -> Value:
    """A held value, in terms of a `Program`: a clamp if the condition is that bound."""
    if not isinstance(value, Held):
        return value
    match value.condition:
        case Compare(left=low, relation="<=", right=u) | Compare(left=u, relation=">=", right=low):
            if u == value.yes and _number(low, numbers) > 0:
                return Clamp(u, low, None, dims=value.dims)
    yes, no = _as_choice(value.yes, numbers), _as_choice(value.no, numbers)
    return Choose(value.condition, yes, no, dims=value.dims)


def _defaults(program: Program) -> Numbers:
    return {p.name: p.default for p in program.forward.parameters if p.role in NUMBERS}


def _number(value: Value, numbers: Numbers) -> float:
    """The numeric value of a constant, or of a default; NaN for others."""
    if isinstance(value, Number):
        return float(value.value)
    default = numbers.get(value.name) if isinstance(value, Load) else None
    return float(default) if isinstance(default, (int, float)) else math.nan


class _Roots:
    """The roots of a program whose gradients flow only where they are not 0."""

    def __init__(self, program: Program):
        every = (program.forward, program.atoms, program.backward)
        self.numbers = _defaults(program)
        steps = [step for function in every for step in function.steps]
        looped = any(isinstance(v, Looped) for step in steps for v in values_in(step))
        roots = {s.name for s in steps if _is_root(s) and not looped} - {*program.outputs}
        roots -= {s.name for s in steps if not isinstance(s, Assign)}
        self.names = {name for name in roots if self._is_read_away_from_zero(name, steps)}

    def _is_read_away_from_zero(self, name: str, steps: Sequence[Step]) -> bool:
        reads = [away for step in steps for v in operands(step) for away in self._reads(v, name)]
        return bool(reads) and all(reads)

    def _reads(self, value: Value, name: str, away: bool = False) -> Iterator[bool]:
        """For each read that a gradient flows through, True if the root is not 0 there."""
        match value:
            case Compare() | Combine() | Detached():
                return
            case Load():
                yield from [away] * (value.name == name)
            case Clamp(operand=Load(), low=low) if (
                low is not None and _number(low, self.numbers) > 0
            ):
                return
            case Choose(condition=test, yes=yes, no=no):
                for branch, holds in ((yes, True), (no, False)):
                    known = self._at_zero(test, name)
                    yield from self._reads(branch, name, away or known == (not holds))
            case _:
                for part in operands(value):
                    yield from self._reads(part, name, away)

    def _at_zero(self, test: Value, name: str) -> bool | None:
        """The truth of a condition where the root is 0; None if unknown."""
        if not isinstance(test, Compare):
            return None
        sides = [
            0.0 if isinstance(v, Load) and v.name == name else _number(v, self.numbers)
            for v in (test.left, test.right)
        ]
        return None if any(map(math.isnan, sides)) else RELATIONS[test.relation](*sides)

    def held(self, function: Function) -> Function:
        """``function`` with these roots as `RootOffZero`: made of 1, and 0 again, at 0."""
        steps = (
            replace(s, value=RootOffZero(s.value.base, dims=s.value.dims))
            if s.name in self.names and _is_root(s)
            else s
            for s in function.steps
        )
        return replace(function, steps=tuple(steps))


def _is_root(step: Step) -> bool:
    """True if its value is a square root, whose derivative is infinite at 0."""
    if not (isinstance(step, Assign) and isinstance(step.value, Power)):
        return False
    return step.value.exponent == Number(Fraction(1, 2))
