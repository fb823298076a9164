"""Powers beside a factor that is 0: ``p*u**(p - 1)`` is 0 where p is 0, whatever u is.

The derivative of ``u**p`` by u has the factor p, the next one p - 1 as well. Where one of them is 0
the power was a constant or a straight line, and its derivative is 0 at u = 0 too, where the lower
power is infinite: there the exponent is held at 0, as in torch's own derivative of a power. A power
with a name is held where it is computed, if every line that reads it has the factor.
"""

from __future__ import annotations

from dataclasses import fields, replace
from fractions import Fraction

from codegen.lowering.bounded import is_positive
from codegen.lowering.frames import broadcast
from codegen.program import Function
from codegen.program.parts import values_in
from codegen.program.steps import AddAt, Assign, Step
from codegen.program.values import (
    Apply,
    Bend,
    Choose,
    Compare,
    Gate,
    Load,
    MulAdd,
    Number,
    Plus,
    Power,
    Slope,
    Times,
    Value,
)

ZERO = Number(Fraction(0))
Factors = tuple[Value, ...]


def with_exponents_held(function: Function) -> Function:
    """``function`` with finite powers beside factors that are 0."""
    held = _Held()
    steps = []
    for step in function.steps:
        if isinstance(step, (Assign, AddAt)):
            step = replace(step, value=held.value(step.value, ()))
        if isinstance(step, Assign):
            held.made[step.name] = step.value
        steps.append(step)
    return replace(function, steps=tuple(held.named(step) for step in steps))


class _Held:
    def __init__(self):
        self.made: dict[str, Value] = {}  # the values before, by their names
        self.zeros: dict[str, list[Value]] = {}  # of every power with a name, beside all its uses

    def value(self, value: Value, beside: Factors) -> Value:
        """``value``, as multiplied by the factors ``beside``."""
        if isinstance(value, Load):
            self._note_use(value.name, beside)
        if isinstance(value, Power):
            value = _held_at(value, self._zeros(value, beside))
        changed = {}
        for field in fields(value):
            before = getattr(value, field.name)
            if isinstance(value, Times) and field.name == "factors":
                after = tuple(
                    (self.value(f, () if divides else beside + _others(value, f)), divides)
                    for f, divides in value.factors
                )
            else:
                after = self._part(before, self._beside(value, field.name, beside))
            if after != before:
                changed[field.name] = after
        return replace(value, **changed) if changed else value

    def _part(self, part, beside: Factors):
        if isinstance(part, tuple):
            return tuple(self._part(each, beside) for each in part)
        return self.value(part, beside) if isinstance(part, Value) else part

    def _beside(self, value: Value, field: str, beside: Factors) -> Factors:
        """The factors of a part of a value."""
        match value, field:
            case MulAdd(right=right), "left":
                return (*beside, right)
            case MulAdd(left=left), "right":
                return (*beside, left)
            case (Plus(), _) | (MulAdd(), "addend"):
                return beside
            case ((Gate() | Bend() | Slope()), "value") | (Choose(), "yes" | "no"):
                return beside
        return ()

    def named(self, step: Step) -> Step:
        """A step that computes a power, held if all its readers have the factor."""
        if not isinstance(step, Assign) or not isinstance(step.value, Power):
            return step
        return replace(step, value=_held_at(step.value, self.zeros.get(step.name, [])))

    def _note_use(self, name: str, beside: Factors) -> None:
        power = self.made.get(name)
        if isinstance(power, Power):
            zeros = self._zeros(power, beside)
            self.zeros[name] = [z for z in self.zeros.get(name, zeros) if z in zeros]

    def _zeros(self, power: Power, beside: Factors) -> list[Value]:
        """Factors that may be 0 with the exponent, as they are made of its names."""
        names = self._names(power.exponent)
        if isinstance(power.exponent, (Number, Choose)) or not names or is_positive(power.base):
            return []
        factors = dict.fromkeys(f for each in beside for f in _factors(each))
        return [f for f in reversed(factors) if f != power.exponent and self._may(f, names)]

    def _may(self, factor: Value, names: set[str]) -> bool:
        """True if a factor depends on the names in the exponent alone, so both may be 0 at once."""
        own = self._names(factor)
        whole = self.made.get(factor.name) if isinstance(factor, Load) else factor
        return bool(own) and own <= names and not isinstance(whole, (Power, Apply, Gate, Choose))

    def _names(self, value: Value) -> set[str]:
        found: set[str] = set()
        for v in (value, *values_in(value)):
            if isinstance(v, Load):
                found |= self._names(self.made[v.name]) if v.name in self.made else {v.name}
        return found


def _held_at(power: Power, zeros: list[Value]) -> Power:
    for zero in zeros:
        dims = broadcast([zero.dims, power.exponent.dims])
        test = Compare(zero, "==", ZERO, dims=zero.dims)
        power = replace(power, exponent=Choose(test, ZERO, power.exponent, dims=dims))
    return power


def _others(product: Times, factor: Value) -> Factors:
    return tuple(f for f, divides in product.factors if f is not factor and not divides)


def _factors(value: Value) -> list[Value]:
    if isinstance(value, Times):
        return [part for f, divides in value.factors if not divides for part in _factors(f)]
    return [value]
