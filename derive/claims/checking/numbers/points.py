"""Sizes and data at which formulas are tested: random ones, and the simplest ones.

In: a `Definition`. Out: `Point` records, the same on every run.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod

from sympy import Expr, Integer, Rational, log

from derive.claims.checking.numbers.evaluation import Point
from derive.claims.checking.numbers.tables import Index
from derive.gradient.chain.chain import adjoint_of
from derive.language.nodes import OneHot
from derive.language.notation.definition import Definition
from derive.language.symbols import Axis, Tensor

Values = dict[str, dict[Index, Expr]]

LARGEST = 12  # largest product of independent sizes tried in order
THREE_DIGITS = 997  # a prime, so that few fractions cancel and data stay readable
LARGEST_DIVISOR = 10**9  # of a default: 1e-9 stays exact
ONE_IGNORED_IN = 4  # labels, if labels may be ignored
SEEDS_APART = 10  # offset between the seeds of two lists of random points, each shorter than this
MOST_SINGLE = 4  # positions at which a single upstream gradient is tried
A_FRACTION, A_LOGARITHM, UNREADABLE = 5, 8, 200  # cost in `complexity`
ROUNDED = (1, 2, 4, 10)  # denominators used when rounding a number to shorten it
MOST_ENTRIES = 4000  # in all data of a random point together, and for a sum over all axes

# Ranges of random data, so that logarithms, roots and arcs are defined too: any sign, positive, and
# between 0 and 1.
RANGES = ((-2, 2), (Fraction(1, 4), 2), (Fraction(1, 20), Fraction(19, 20)))


def data_of(definition: Definition) -> tuple[Tensor, ...]:
    """The tensors that a point assigns: inputs, labels, scalars and upstream gradients."""
    upstreams = map(adjoint_of, definition.outputs)
    return (*definition.inputs, *(t for t, _ in definition.scalars), *upstreams)


def indexed_axis(definition: Definition, label: Tensor) -> Axis | None:
    """The axis that a label indexes."""
    for statement in definition.statements:
        for hot in sorted(statement.expression.atoms(OneHot), key=str):
            if isinstance(hot.operand, Tensor) and hot.operand.name == label.name:
                return hot.axis
    return None


def indices(definition: Definition, sizes: Mapping[Axis, int], t: Tensor) -> list[Index]:
    whole = definition.sizes_from(sizes)
    return list(product(*(range(whole[axis]) for axis in t.home)))


def point_of(definition: Definition, sizes: Mapping[Axis, int], values: Values) -> Point:
    return Point(tuple((a.name, int(sizes[a])) for a in definition.independent_axes), values)


def smallest_sizes(definition: Definition, largest: int = LARGEST) -> Iterator[dict[Axis, int]]:
    """Sizes ordered by product, then by sum: from 1 up if the forward allows it."""
    axes = definition.independent_axes
    for total in range(1, largest + 1):
        of_total = _factorisations(total, len(axes))
        for sizes in sorted(of_total, key=lambda s: (sum(s), tuple(-n for n in s))):
            chosen = dict(zip(axes, sizes, strict=True))
            if definition.fit(chosen):
                yield chosen


def shrunk(definition: Definition, sizes: Mapping[Axis, int]) -> Iterator[dict[Axis, int]]:
    """The sizes with all but the largest as small as allowed, then increasingly less so."""
    largest = max(sizes, key=lambda axis: sizes[axis])
    for small in (1, 2, 3):
        chosen = {a: n if a == largest else min(n, small) for a, n in sizes.items()}
        if definition.fit(chosen):
            yield chosen
    yield dict(sizes)


def _factorisations(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 0:
        if total == 1:
            yield ()
        return
    for first in range(1, total + 1):
        if total % first == 0:
            for rest in _factorisations(total // first, parts - 1):
                yield (first, *rest)


@dataclass(frozen=True)
class RandomData:
    """Settings for random data: drawn from the range ``kind`` of `RANGES`, as one of ``grain``
    numbers.
    """

    seed: int
    kind: int = 0
    grain: int = THREE_DIGITS


def generic_point(
    definition: Definition,
    sizes: Mapping[Axis, int],
    settled: Mapping[str, Expr],
    drawing: RandomData,
) -> Point:
    """Random rationals, except for ``settled`` values."""
    seed, kind, grain = drawing.seed, drawing.kind, drawing.grain
    draw = random.Random(f"{seed} {[sizes[axis] for axis in definition.independent_axes]}")
    low, high = RANGES[kind]
    whole = definition.sizes_from(sizes)

    def entry(t: Tensor, i: Index) -> Expr:
        if t.name in settled:
            return settled[t.name]
        if t.role == "kept":  # not all ignored: the mean over the rest would be undefined
            return Integer(bool(draw.randrange(ONE_IGNORED_IN)) or not any(i))
        if t.role == "label":
            axis = indexed_axis(definition, t)
            return Integer(draw.randrange(whole[axis] if axis else 1))
        share = Fraction(draw.randint(1, grain), grain + 1)
        if t.role == "scalar" and kind == 0:
            default = float(definition.default_at(defaults[t.name], sizes))
            near_default = Rational(Fraction(default).limit_denominator(LARGEST_DIVISOR))
            near_default = near_default if seed % 2 else Integer(1)
            number = near_default * Rational(1 + 2 * share) / 2
        else:
            bottom, top = RANGES[0] if t.role == "adjoint" else (low, high)
            number = Rational(bottom + (top - bottom) * share)
        return _allowed(definition, whole, t, number, share)

    defaults = {t.name: default for t, default in definition.scalars}
    data = data_of(definition)
    values = {t.name: {i: entry(t, i) for i in indices(definition, sizes, t)} for t in data}
    return point_of(definition, sizes, values)


def _allowed(definition, sizes: Mapping[Axis, int], t: Tensor, number: Expr, share: Fraction):
    """The number, or another one if it is outside the domain of ``t``."""

    def at_sizes(limit: Expr) -> Expr:
        return limit.xreplace({a: Integer(n) for a, n in sizes.items()})

    domains = (d.domain.mapped(at_sizes) for d in definition.demands if d.expression == t)
    for domain in domains:
        number = number if domain.holds(number) else domain.at(Rational(share))
    return number


# For each random point: the sizes assigned to axes in turn, and the range of the data.
RANDOM = (
    ((3, 2, 4, 5), 0),
    ((11, 3, 2, 4), 0),
    ((4, 7, 3, 2), 1),
    ((5, 4, 2, 3), 2),
    ((2, 5, 3, 4), 0),
)


# The same, with sizes that cannot be mistaken for numbers, as n - 1 can at n = 2.
UNLIKE_NUMBERS = tuple(((5, 4, 3, 6), kind) for kind in range(len(RANGES)))


def random_points(
    definition: Definition,
    seed: int = 0,
    settled: Mapping[str, Expr] = {},
    patterns: Sequence[tuple[tuple[int, ...], int]] = RANDOM,
) -> list[Point]:
    """A point for each pattern; by default five of unequal sizes from 2 to 7, one with 11 along the
    first axis.
    """
    found = []
    for number, (pattern, kind) in enumerate(patterns):
        axes = definition.independent_axes
        sizes = {axis: pattern[i % len(pattern)] for i, axis in enumerate(axes)}
        data = data_of(definition)
        for _ in range(LARGEST):
            sizes = definition.fitting(sizes)
            entries = sum(len(indices(definition, sizes, t)) for t in data)
            if not definition.fit(sizes):
                sizes = {axis: n + 1 for axis, n in sizes.items()}
            elif max(entries, prod(sizes.values())) > MOST_ENTRIES:
                sizes = {axis: max(2, n - 1) for axis, n in sizes.items()}
        drawing = RandomData(seed * SEEDS_APART + number, kind)
        found.append(generic_point(definition, sizes, settled, drawing))
    return found


# Vectors of a given length, the simplest for each use first. A vector with a single nonzero entry n
# has variance n (or n - 1), so with a simple scalar added its root is rational; exponentials of
# logarithms are rational.
VECTORS: tuple[Callable[[int], list[Expr]], ...] = (
    lambda n: [Integer(0)] * (n - 1) + [Integer(n)],
    lambda n: [Integer(0)] + [log(k + 1) for k in range(1, n)] if n > 1 else [log(2)],
    lambda n: [Integer(0)] + [2 * log(k + 1) for k in range(1, n)] if n > 1 else [log(4)],
    lambda n: [Integer(k) for k in range(n)],
    lambda n: [Integer(0)] * n,
    lambda n: [Integer(0)] * (n - 1) + [Integer(1)],
    lambda n: [Integer(1)] * n,
    lambda n: [Integer(0)] * (n - 1) + [Integer(2)],
    lambda n: [Rational(1, k + 2) for k in range(n)],
    lambda n: [Rational(1, k % 2 + 1) for k in range(n)],
)
SCALARS = tuple(Rational(*n) for n in ((1,), (2,), (3,), (4,), (5,), (1, 2), (7,), (3, 4), (1, 4)))


def fillings(t: Tensor, whole: Mapping[Axis, int]) -> Iterator[dict[Index, Expr]]:
    """The simplest data for an input: a vector along one axis, rotated along the others, so that
    every line along that axis holds the same numbers in another order.
    """
    shape = [whole[axis] for axis in t.home]
    places = list(product(*map(range, shape)))
    along = sorted(range(len(shape)), key=lambda k: -shape[k]) or [0]
    seen = []
    if t.role == "kept":
        yield from ({i: Integer(i != ignored) for i in places} for ignored in (None, *places))
        return
    for vector in VECTORS:
        for k in along:
            length = shape[k] if shape else 1
            numbers = vector(length)
            filled = {i: numbers[sum(i) % length] for i in places}
            if filled not in seen:
                seen.append(filled)
                yield filled


def upstream_fillings(places: list[Index]) -> Iterator[dict[Index, Expr]]:
    """A single 1 first, which is easiest to read; then all different, then all zero."""
    for one in places[:MOST_SINGLE]:
        yield {i: Integer(int(i == one)) for i in places}
    yield dict.fromkeys(places, Integer(0))
    yield {i: Integer(k + 2) for k, i in enumerate(places)}


def start(t: Tensor, whole: Mapping[Axis, int], axis: Axis | None) -> dict[Index, Expr]:
    """Data that are all different, or as different as labels of ``axis`` can be."""
    places = list(product(*(range(whole[a]) for a in t.home)))
    if t.role == "label":
        return {i: Integer(sum(i) % (whole[axis] if axis else 1)) for i in places}
    if t.role == "kept":
        return dict.fromkeys(places, Integer(1))
    return {i: Integer(k + 1) for k, i in enumerate(places)}


def complexity(e: Expr) -> int:
    """Rank a number by ease of reading: 0 < 1 < 2 < -1 < 3 < 1/2 < log(2), then all others."""
    if e.is_Rational:
        return 2 * abs(int(e.p)) + A_FRACTION * (e.q != 1) + 2 * int(e.q) - 2 + 3 * bool(e.p < 0)
    share, rest = e.as_coeff_Mul()
    if isinstance(rest, log) and rest.args[0].is_Rational:
        return A_LOGARITHM + complexity(rest.args[0]) + complexity(share)
    return UNREADABLE + 2 * e.count_ops()


SIMPLE = (*map(Integer, (0, 1, 2, -1, 3)), Rational(1, 2), log(2), log(3))


def simpler(e: Expr, t: Tensor) -> list[Expr]:
    """Simpler numbers to try in place of ``e``, an entry of ``t``."""
    if t.role == "label":
        return [Integer(k) for k in range(min(int(e), 2))]
    if t.role == "kept":
        return [Integer(1)] if e == 0 else []
    numbers = SIMPLE
    if t.role == "scalar":
        numbers = [n for n in SCALARS if e > 0]
    elif t.role == "adjoint":
        numbers = SIMPLE[:2]
    rounded = []
    if e.is_Rational and e.q > ROUNDED[2]:
        exact = Fraction(int(e.p), int(e.q))
        rounded = [Rational(exact.limit_denominator(d)) for d in ROUNDED]
    tried = dict.fromkeys([*numbers, *rounded])
    if t.role == "scalar":
        tried = [n for n in tried if n > 0]
    return sorted((n for n in tried if complexity(n) < complexity(e)), key=complexity)
