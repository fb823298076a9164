"""Which tiles add nothing, found from the conditions on positions: those are skipped.

A condition is one of the difference of two positions and a number. Where it does not hold, each sum
of the kernel has to add 0, and each maximum to take minus infinity: that is followed through its
lines, with the numbers in them taken as finite.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from codegen.program.arrays import (
    Arrange,
    AsNumber,
    Contract,
    Detached,
    Expand,
    Own,
    Positions,
    Reduce,
)
from codegen.program.parts import is_number, values_in
from codegen.program.shards import OwnLargest
from codegen.program.steps import Assign, Step
from codegen.program.values import (
    Apply,
    Choose,
    Combine,
    Compare,
    Constant,
    Gate,
    Load,
    MulAdd,
    Number,
    Plus,
    Power,
    Pullback,
    Times,
    Value,
)
from codegen.schedule.elements import RELATIONS
from codegen.tiles.records import TileBound, TileSum

LOWEST = "-oo"
SAME = (Arrange, Expand, AsNumber, Detached, Own)  # the entries of their operand
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
Known = Fraction | bool | str | None  # a number, whether it holds, minus infinity, or unknown


def bounds_of(
    body: Sequence[Step | TileSum], written: Sequence[str], own: str, loop: str, numbers: set[str]
) -> tuple[TileBound, ...]:
    """The conditions without which a tile adds nothing to the sums, and is 0 where written."""
    found: dict[Compare, TileBound] = {}
    for value in _conditions(body):
        bound = _bound(value, own, loop, numbers)
        if bound and value not in found and _adds_nothing(value, body, written):
            found[value] = bound
    return tuple(found.values())


def _conditions(body: Sequence[Step | TileSum]) -> Iterator[Compare]:
    for step in body:
        for value in values_in(step) if isinstance(step, Step) else ():
            if isinstance(value, Compare):
                yield value


def _bound(value: Compare, own: str, loop: str, numbers: set[str]) -> TileBound | None:
    """The condition as one of the difference of the positions, if it is one."""
    if value.relation not in TURNED:
        return None
    terms = [*_terms(value.left, False), *_terms(value.right, True)]
    places = {own: 0, loop: 0}
    rest = []
    for part, minus in terms:
        if isinstance(part, Positions) and part.dims[0].axis.name in places:
            places[part.dims[0].axis.name] += -1 if minus else 1
        elif is_number(part, numbers):
            rest.append((part, minus))
        else:
            return None
    if places == {own: -1, loop: 1}:
        return TileBound(value, value.relation, tuple(rest))
    if places == {own: 1, loop: -1}:
        return TileBound(value, TURNED[value.relation], tuple((v, not minus) for v, minus in rest))
    return None


def _terms(value: Value, minus: bool) -> Iterator[tuple[Value, bool]]:
    while isinstance(value, SAME):
        value = value.operand
    if isinstance(value, Plus):
        for part, subtracted in value.terms:
            yield from _terms(part, minus != subtracted)
    else:
        yield value, minus


def _adds_nothing(
    condition: Compare, body: Sequence[Step | TileSum], written: Sequence[str]
) -> bool:
    made: dict[str, Known] = {}
    look = _Look(condition, made)
    for step in body:
        if isinstance(step, TileSum):
            nothing = LOWEST if step.kind == "largest" else 0
            if not _is(look(step.value), nothing):
                return False
        elif isinstance(step, Assign):
            made[step.name] = look(step.value)
        else:
            made[step.name] = None
    return all(_is(made.get(name), 0) for name in written)


def _is(known: Known, other: Known) -> bool:
    return (
        known is not None
        and type(known) is type(Fraction(0) if other == 0 else other)
        and (known == other)
    )


class _Look:
    """The value where the condition does not hold."""

    def __init__(self, condition: Compare, made: Mapping[str, Known]):
        self.condition, self.made = condition, made

    def __call__(self, value: Value) -> Known:
        if value == self.condition:
            return False
        if isinstance(value, Load):
            return self.made.get(value.name)
        method = getattr(self, f"_{type(value).__name__.lower()}", None)
        if isinstance(value, (*SAME, OwnLargest)):
            return self(value.operand)
        return method(value) if method else None

    def _number(self, value: Number) -> Known:
        return value.value

    def _constant(self, value: Constant) -> Known:
        return LOWEST if value.value == -float("inf") else None

    def _compare(self, value: Compare) -> Known:
        sides = self(value.left), self(value.right)
        if all(isinstance(side, Fraction) for side in sides):
            return bool(RELATIONS[value.relation](*sides))
        return None

    def _combine(self, value: Combine) -> Known:
        parts = [self(part) for part in value.operands]
        if value.operator == "not":
            return None if parts[0] is None else not parts[0]
        decides = value.operator == "or"
        if any(part is decides for part in parts):
            return decides
        return None if None in parts else not decides

    def _choose(self, value: Choose) -> Known:
        condition, yes, no = (self(v) for v in (value.condition, value.yes, value.no))
        if condition is None:
            return yes if yes == no else None
        return yes if condition else no

    def _times(self, value: Times) -> Known:
        return self._product([self(factor) for factor, divides in value.factors if not divides])

    def _product(self, parts: list[Known]) -> Known:
        return Fraction(0) if any(_is(part, 0) for part in parts) else None

    def _plus(self, value: Plus) -> Known:
        return self._sum([(self(term), minus) for term, minus in value.terms])

    def _sum(self, terms: list[tuple[Known, bool]]) -> Known:
        lowest = [minus for part, minus in terms if part == LOWEST]
        if lowest:
            return None if any(lowest) else LOWEST
        return Fraction(0) if all(_is(part, 0) for part, _ in terms) else None

    def _muladd(self, value: MulAdd) -> Known:
        product = self._product([self(value.left), self(value.right)])
        return self._sum([(self(value.addend), False), (product, value.negative)])

    def _power(self, value: Power) -> Known:
        exponent = self(value.exponent)
        grows = isinstance(exponent, Fraction) and exponent > 0
        return Fraction(0) if grows and _is(self(value.base), 0) else None

    def _apply(self, value: Apply) -> Known:
        return Fraction(0) if value.function == "exp" and self(value.operand) == LOWEST else None

    def _pullback(self, value: Pullback) -> Known:
        return self._product([self(value.upstream), self(value.derivative)])

    def _gate(self, value: Gate) -> Known:
        return self._product([self(value.value)])

    def _contract(self, value: Contract) -> Known:
        return self._product([self(value.left), self(value.right)])

    def _reduce(self, value: Reduce) -> Known:
        inner = self(value.operand)
        return inner if value.kind != "sum" or _is(inner, 0) else None
