"""Keeps products of a gradient 0 where a choice makes the gradient 0, whatever multiplies it.

``where(x > 0, dy, 0)`` times ``1/x`` is 0 where x is 0, and not NaN: a branch that is not taken has
no part in a gradient. Where another factor may be infinite or NaN, the product is chosen as its
factor was. This applies to the lines of a backward; where autograd may differentiate lines,
arguments are held instead (``bounded.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction

from codegen.lowering.bounded import SAFE, Origins, is_positive, is_whole, names_in
from codegen.lowering.frames import broadcast
from codegen.lowering.zero_factors import with_exponents_held
from codegen.program import NUMBERS, Function
from codegen.program.arrays import Detached
from codegen.program.parts import is_number
from codegen.program.steps import AddAt, Assign
from codegen.program.values import (
    Apply,
    Bend,
    Choose,
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


@dataclass(frozen=True)
class Left:
    """The zeros of a choice: ``choice`` with another value instead of the one it keeps."""

    choice: Gate | Choose

    def of(self, product: Value) -> Value:
        dims = broadcast([product.dims, self.choice.dims])
        if isinstance(self.choice, Gate):
            return replace(self.choice, value=product, dims=dims)
        kept = "yes" if self.choice.no == ZERO else "no"
        return replace(self.choice, **{kept: product}, dims=dims)


def with_zeros_kept(function: Function, saved: Mapping[str, frozenset[str]]) -> Function:
    """``function`` with zeros of choices kept in products; ``saved`` values, made of other names,
    may be NaN.
    """
    return _Vanishing(with_exponents_held(function), saved).function


class _Vanishing:
    """Walks the steps in order, with known facts about earlier values."""

    def __init__(self, function: Function, saved: Mapping[str, frozenset[str]]):
        self.origins = Origins(function, saved)
        self.inputs = {p.name for p in function.parameters if p.role == "input"}
        self.numbers = {p.name for p in function.parameters if p.role in NUMBERS}
        self.wild = set(saved)  # names of values that may be infinite or NaN
        self.left: dict[str, tuple[Value, frozenset[Left]]] = {}
        steps = []
        for step in function.steps:
            if isinstance(step, (Assign, AddAt)):
                step = replace(step, value=self._kept(step.value, frozenset()))
            if isinstance(step, Assign):
                self._note(step)
            steps.append(step)
        self.function = replace(function, steps=tuple(steps))

    def _note(self, step: Assign) -> None:
        """Record a computed value; forget zeros known by a name that is assigned again."""
        for name, (_, left) in list(self.left.items()):
            if any(step.name in names_in(found.choice) for found in left):
                del self.left[name]
        self.left[step.name] = step.value, self._where_zero(step.value)
        self.origins.note(step)
        if self._may_be_infinite(step.value):
            self.wild.add(step.name)

    def _where_zero(self, value: Value) -> frozenset[Left]:
        of = self._where_zero
        match value:
            case Load(name=name):
                before, left = self.left.get(name, (value, frozenset()))
                return left if before.dims == value.dims else frozenset()
            case Gate(value=kept):
                return of(kept) | {Left(replace(value, value=ZERO, dims=value.measure.dims))}
            case Choose(condition=test, yes=yes, no=no):
                both = of(yes) & of(no)
                if yes == ZERO or no == ZERO:
                    both |= of(no if yes == ZERO else yes)
                if (yes == ZERO) == (no == ZERO) or is_number(test, self.numbers):
                    return both
                return both | {Left(_emptied(value))}
            case Bend(value=kept) | Slope(value=kept):
                return of(kept)
            case Times(factors=factors):
                return frozenset().union(*(of(f) for f, divides in factors if not divides))
            case Plus(terms=terms):
                return frozenset.intersection(*(of(t) for t, _ in terms))
            case MulAdd(addend=addend, left=left, right=right):
                return of(addend) & (of(left) | of(right))
        return frozenset()

    def _kept(self, value: Value, known: frozenset[Left]) -> Value:
        """``value`` with its products chosen where needed, inside choices ``known``."""
        if isinstance(value, MulAdd):
            value = self._apart(value)
        known = known | (self._where_zero(value) if isinstance(value, (Gate, Choose)) else set())
        needed = self._needed(value, known)
        known = known | ({needed} if needed else set())
        changed = {}
        for field in fields(value):
            before = getattr(value, field.name)
            after = self._kept_in(before, known)
            if after != before:
                changed[field.name] = after
        value = replace(value, **changed) if changed else value
        return needed.of(value) if needed else value

    def _kept_in(self, part, known: frozenset[Left]):
        if isinstance(part, tuple):
            return tuple(self._kept_in(each, known) for each in part)
        return self._kept(part, known) if isinstance(part, Value) else part

    def _needed(self, value: Value, known: frozenset[Left]) -> Left | None:
        """The choice that a product needs, because it is 0 times a value that may be infinite."""
        if not isinstance(value, Times):
            return None
        wild = [
            f
            for f, divides in value.factors
            if self._may_be_infinite(f) or (divides and self._may_be_zero(f))
        ]
        if not wild or self._where_zero(value) & known:
            return None
        found = [
            left
            for f, divides in value.factors
            if not divides
            for left in sorted(self._where_zero(f), key=repr)
            if left.choice.dims == value.dims
            and any(w is not f and self._left_out(w, left, value) for w in wild)
        ]
        return found[0] if found else None

    def _left_out(self, wild: Value, left: Left, product: Value) -> bool:
        """True if a factor may be undefined where the choice is 0: same origin, or an input."""
        own, by = self.origins.of(wild), self.origins.of(left.choice)
        return wild.dims == product.dims and bool(own & by or names_in(wild) <= self.inputs)

    def _apart(self, value: MulAdd) -> Value:
        """The product of a fused addition as an operation of its own, where it has to be chosen."""
        dims = broadcast([value.left.dims, value.right.dims])
        product = Times(((value.left, False), (value.right, False)), dims=dims)
        if self._needed(product, frozenset()) is None:
            return value
        return Plus(((value.addend, False), (product, value.negative)), dims=value.dims)

    def _may_be_zero(self, u: Value) -> bool:
        return not is_number(u, self.numbers) and not is_positive(u)

    def _may_be_infinite(self, value: Value) -> bool:
        """True if it may be infinite or NaN for finite inputs where it is not chosen."""
        match value:
            case Gate() | Choose():
                return False
            case Load(name=name):
                return name in self.wild
            case Detached(operand=u):
                return self._may_be_infinite(u)
            case Apply(function=name, operand=u):
                return name in SAFE and not is_number(u, self.numbers)
            case Power(base=u, exponent=n):
                return not is_whole(n) and self._may_be_zero(u)
            case Times(factors=factors):
                return any(
                    self._may_be_zero(f) if divides else self._may_be_infinite(f)
                    for f, divides in factors
                )
            case Plus(terms=terms):
                return any(self._may_be_infinite(t) for t, _ in terms)
            case MulAdd(addend=addend, left=left, right=right):
                return any(map(self._may_be_infinite, (addend, left, right)))
        return False


def _emptied(choice: Choose) -> Choose:
    """The choice with its kept branch removed."""
    kept = "yes" if choice.no == ZERO else "no"
    return replace(choice, **{kept: Number(Fraction(1))}, dims=choice.condition.dims)
