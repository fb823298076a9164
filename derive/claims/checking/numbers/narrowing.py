"""Find where a right formula is undefined although forward and gradient are defined.

The conditions of its operations are known (``literal.py``); whether the forward's own domain
implies them is decided by searching for data that have a gradient, but for which the formula is NaN
in torch's arithmetic. A condition is reported only with such data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sympy import Abs, Expr, Integer, Pow, Rational

from derive.claims.checking.numbers.arithmetic import Floating, Unevaluable
from derive.claims.checking.numbers.evaluation import Evaluation, Point
from derive.claims.checking.numbers.further import changes_of_sign
from derive.claims.checking.numbers.ieee import Ieee
from derive.claims.checking.numbers.points import RANGES, RandomData, data_of, generic_point
from derive.claims.checking.numbers.tables import UNDEFINED
from derive.claims.reading.literal import NOT_NEGATIVE, NOT_ZERO, POSITIVE, Need, needs, with_only
from derive.gradient.chain.chain import Chain, adjoint_of
from derive.language.array_node import ArrayNode
from derive.language.formulas.text import formula
from derive.language.symbols import Axis, Tensor, is_number_or_size

SEEDS = 2  # of random data at each size
HOLDS = {NOT_ZERO: lambda a: a != 0, NOT_NEGATIVE: lambda a: a >= 0, POSITIVE: lambda a: a > 0}
CONSTANTS = tuple(map(Integer, (0, 1, -1)))
TURNED = {POSITIVE: "<", NOT_NEGATIVE: "<="}
NEAR = 1e-6  # relative to the gradient; of numbers of 16 digits
MOST_ROOTS = 4  # roots tried
LARGEST_DIVISOR = 10**4  # of the rational taken for a root found in floating point
MOST_PLACES = 200  # along one axis


@dataclass(frozen=True)
class Narrowing:
    """The condition ``where`` a formula is defined: ``x > 0``. ``is_thin`` if only isolated values
    are excluded, such as x = 0, which random data miss. ``needs`` are the same conditions as
    records.
    """

    where: tuple[str, ...]
    is_thin: bool
    needs: tuple[Need, ...] = ()

    def __str__(self) -> str:
        return " and ".join(self.where)

    def leaves_out(self, values: Mapping[Expr, Expr]) -> bool:
        """Whether the formula is undefined wherever the tensors in ``values`` have these values."""
        for need in self.needs:
            operand = need.operand
            bound = any(node.has(*values) for node in operand.atoms(ArrayNode))
            excludes_zero = need.kind in (NOT_ZERO, POSITIVE) and not bound
            if excludes_zero and operand.xreplace(dict(values)).is_zero:
                return True
        return False


def narrowing(
    chain: Chain, of: Tensor, written: Expr, settled: Mapping[str, Expr] | None = None
) -> Narrowing | None:
    """The conditions under which the formula ``written`` is defined; None if it is wherever the
    gradient of ``of`` is.
    """
    open_needs = needs(written)
    if not open_needs:
        return None
    found: dict[Need, bool] = {}
    alone = {need: with_only(written, nodes) for need, nodes in open_needs.items()}
    for point, is_random in _points(chain, of, open_needs, settled or {}):
        evaluation = Evaluation(chain, point, Floating())  # the gradient is the same for all needs
        for need, e in alone.items():
            if found.get(need) is False or (need in found and not is_random):
                continue
            below = _missing_at(evaluation, of, e, need)
            if below is not None:
                found[need] = found.get(need, True) and not (is_random or below)
    if not found:
        return None
    return Narrowing(_conditions(found), all(found.values()), tuple(found))


def _missing_at(evaluation: Evaluation, of: Tensor, e: Expr, need: Need) -> bool | None:
    """Whether the operand is negative somewhere, if the formula is undefined at a point where the
    forward has a gradient; else None.
    """
    chain, point = evaluation.chain, evaluation.point
    try:
        if UNDEFINED not in evaluation.entries_or_undefined(e, of.home).values():
            return None
        outputs = chain.definition.outputs
        expected = evaluation.entries_or_undefined(adjoint_of(of), of.home)
        forward = [evaluation.entries_or_undefined(t, t.home).values() for t in outputs]
        if any(UNDEFINED in found for found in (expected.values(), *forward)):
            return None
        got = Evaluation(chain, point, Ieee()).entries_or_undefined(e, of.home)
        if all(_is_near(got[i], value) for i, value in expected.items()):
            return None  # such as 1/(1/x), which is 0 for x = 0
        operand = [v for v in evaluation.table(need.operand).entries.values() if v is not UNDEFINED]
    except Unevaluable:
        return None
    if all(HOLDS[need.kind](value) for value in operand):
        return None  # another operation is undefined
    return any(value < 0 for value in operand) and need.kind != NOT_ZERO


def _is_near(got: float, expected) -> bool:
    return math.isfinite(got) and abs(got - expected) <= NEAR * (1 + abs(expected))


def _points(chain: Chain, of: Tensor, open_needs, settled) -> Iterator[tuple[Point, bool]]:
    """Data at which an operand may be 0 or negative, and whether they are random."""
    definition = chain.definition
    for number_of_sizes, sizes in enumerate(_sizes(chain, open_needs)):
        is_random = number_of_sizes == 0
        for kind in range(len(RANGES)):
            base = [
                generic_point(definition, sizes, settled, RandomData(seed, kind))
                for seed in range(SEEDS)
            ]
            yield from ((point, is_random) for point in base)
            for t in data_of(definition):
                if t.name in settled or t.role in ("label", "kept"):
                    continue
                for number in CONSTANTS[:1] if t.role == "scalar" else CONSTANTS:
                    yield _with_constant(base[0], t, number), False
                for number in _roots(chain, base[0], t, open_needs):
                    yield _with_constant(base[0], t, number), False


def _sizes(chain: Chain, open_needs) -> Iterator[dict[Axis, int]]:
    """Small sizes, and sizes at which an operand in sizes only is 0."""
    definition = chain.definition
    axes = definition.independent_axes
    small = definition.fitting({axis: 2 + i % 2 for i, axis in enumerate(axes)})
    yield small
    for need in open_needs:
        for axis in need.operand.atoms(Axis) if is_number_or_size(need.operand) else ():
            chosen = definition.size(axis)
            if chosen in axes:
                for place in changes_of_sign(need.operand, definition, small, chosen):
                    sizes = small | {chosen: place}
                    if place <= MOST_PLACES and definition.fit(sizes):
                        yield sizes


def _with_constant(point: Point, t: Tensor, number: Expr) -> Point:
    values = {**point.values, t.name: dict.fromkeys(point.values[t.name], number)}
    return replace(point, values=values)


def _roots(chain: Chain, point: Point, t: Tensor, open_needs: Sequence[Need]) -> list[Expr]:
    """Constants for ``t`` around which an operand changes sign, as a polynomial of degree 2."""
    found: list[Expr] = []
    for need in open_needs:
        samples = []
        for number in map(Integer, (0, 1, 2)):
            evaluation = Evaluation(chain, _with_constant(point, t, number), Floating())
            try:
                entries = evaluation.table(need.operand).entries
            except Unevaluable:
                break
            samples.append(next(iter(entries.values()), UNDEFINED))
        if len(samples) < 3 or UNDEFINED in samples:
            continue
        c, one, two = samples
        a = (two - 2 * one + c) / 2
        b = one - c - a
        for root in _of_polynomial(a, b, c):
            near = Rational(str(root)).limit_denominator(LARGEST_DIVISOR)
            found += [near, near - 1, near + 1]
    return list(dict.fromkeys(found))[: 3 * MOST_ROOTS]


def _of_polynomial(a, b, c) -> list[float]:
    if abs(a) > NEAR * (abs(b) + abs(c)):
        inside = b * b - 4 * a * c
        if inside < 0:
            return []
        return [float((-b + side * inside**0.5) / (2 * a)) for side in (1, -1)]
    return [float(-c / b)] if abs(b) > NEAR * abs(c) else []


# In words


def _conditions(found: Mapping[Need, bool]) -> tuple[str, ...]:
    """Each condition once, without those implied by another."""
    strict = {need.operand for need, is_thin in found.items() if need.kind == POSITIVE}
    kept = {n: thin for n, thin in found.items() if n.kind == POSITIVE or n.operand not in strict}
    return tuple(dict.fromkeys(_condition(need, is_thin) for need, is_thin in kept.items()))


def _condition(need: Need, is_thin: bool) -> str:
    """``x > 0`` for ``2*x > 0``, ``x != 0`` for ``x**2 > 0``, ``x >= -1`` for ``x + 1 >= 0``."""
    factor, operand = need.operand.as_coeff_Mul()
    kind = need.kind
    if kind == NOT_ZERO or (is_thin and kind == POSITIVE):
        kind = NOT_ZERO
        while isinstance(operand, Abs) or (isinstance(operand, Pow) and operand.exp.is_positive):
            operand = operand.args[0]
    elif factor < 0:
        kind = TURNED[kind]
    number, rest = operand.as_coeff_Add()
    return f"{formula(rest)} {kind} {formula(-number)}"
