"""A claim at further sizes: 1, 5 to 12, some large ones, and around every comparison of sizes.

Three small batches prove nothing about other sizes. Where no proof for every size is found, claim
and gradient are compared at these, in exact arithmetic (``residues.py``) with random data: if they
are the same there, they agree *exactly at those sizes*, and are said to; if they differ, there is a
counterexample.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice

from sympy import Expr, Integer, Poly, PolynomialError, Symbol, sign
from sympy import Max as PointwiseMax
from sympy import Min as PointwiseMin
from sympy.core.relational import Relational

from derive.claims.checking.numbers.arithmetic import Unevaluable
from derive.claims.checking.numbers.comparison import GradientQuestion
from derive.claims.checking.numbers.points import RANGES, RandomData, data_of, generic_point
from derive.claims.checking.numbers.residues import Residues
from derive.language.functions import KINKED
from derive.language.symbols import Axis, is_number_or_size

ALIKE = (1, 2, 5, 7)  # used for all axes alike
UNLIKE = (1, 5, 6, 7, 8, 9, 10, 11, 12)  # assigned in turn, each axis starting elsewhere
LARGE = ((13, 40), (41, 200))  # one is drawn for each axis, beside small sizes
MOST_ENTRIES = 2500  # in all data of a point
MOST_OPERATIONS = 600_000  # for all points together
LARGEST = 1200  # largest size around which comparisons are tested
FIRST_POWER = 7  # of 2; above it, changes are searched for between powers
FIRST = 2 ** (FIRST_POWER - 1)  # smaller sizes are all examined
LARGEST_SCANNED = 2**30  # largest size examined
DIGITS = 30  # for the sign of an expression in sizes
STRIDE = 4  # offset between neighbouring axes in `UNLIKE`: coprime to its length
SMALL = (2, 5)  # the other sizes, beside a large one
BESIDE = (1, 2, 5)  # sizes of the other axes when one is compared
SEEDS_APART = 100  # difference of seeds between two attempts at the same sizes
FINE = 2**61 - 1  # random data are one of so many numbers

Sizes = Mapping[Axis, int]


@dataclass(frozen=True)
class ExactAgreement:
    """Claim and gradient agree exactly at ``sizes``, which has a size for every axis.

    ``differs``: sizes at which they differ; ``unknown``: why some sizes were not decided, or ''.
    """

    sizes: tuple[tuple[tuple[str, int], ...], ...]
    differs: Sizes | None = None
    unknown: str = ""

    @property
    def is_exact(self) -> bool:
        return self.differs is None and not self.unknown


def agreement(question: GradientQuestion) -> ExactAgreement:
    """Compare claim and gradient at further sizes."""
    definition = question.chain.definition
    agreed, left = [], MOST_OPERATIONS
    critical, unknown = _around_comparisons(question)
    for number, sizes in enumerate(_distinct((*critical, *_further(question)))):
        found, operations = _compared(question, sizes, number, left)
        left -= operations
        if found == DIFFERENT:
            return ExactAgreement(tuple(agreed), sizes)
        if found != SAME:
            unknown = unknown or f"{_written(definition, sizes)}: {found}"
            continue
        agreed.append(tuple((a.name, int(sizes[a])) for a in definition.independent_axes))
    return ExactAgreement(tuple(agreed), None, unknown if agreed else unknown or "no size fits")


SAME, DIFFERENT = "the same", "different"


def _compared(question: GradientQuestion, sizes: Sizes, seed: int, left: int) -> tuple[str, int]:
    """`SAME`, `DIFFERENT`, or why that is unknown; and the number of operations used."""
    why, spent = "the gradient is undefined there", 0
    for attempt in range(2 * len(RANGES)):
        kind = (seed + attempt) % len(RANGES)
        point = generic_point(
            question.chain.definition,
            sizes,
            {},
            RandomData(seed + SEEDS_APART * attempt, kind, FINE),
        )
        try:
            found = question.compared(point, Residues(seed), max(left - spent, 0))
        except Unevaluable as error:
            why = str(error)
            continue
        spent += found.operations
        if not found.is_defined:
            continue
        if found.undefined:
            why = "the formula is undefined there"
            continue
        if not found.different:
            return SAME, spent
        return (DIFFERENT if found.is_visibly_different else INVISIBLE), spent
    return why, spent


INVISIBLE = "they agree to fifty digits but were not shown to be equal"


def _further(question: GradientQuestion) -> Iterator[Sizes]:
    """Further sizes: equal ones, unequal ones, and large ones for each axis in turn."""
    definition = question.chain.definition
    axes = definition.independent_axes
    draw = random.Random(str(question.claimed))
    for size in ALIKE:
        yield _fitting(question, dict.fromkeys(axes, size))
    for start in range(len(UNLIKE) if axes else 0):
        turned = (UNLIKE[(start + STRIDE * i) % len(UNLIKE)] for i in range(len(axes)))
        yield _fitting(question, dict(zip(axes, turned, strict=True)))
    for large in axes:
        for low, high in LARGE:
            small = {axis: draw.randint(*SMALL) for axis in axes}
            yield _fitting(question, small | {large: draw.randint(low, high)}, large)


def _fitting(question: GradientQuestion, sizes: Sizes, kept: Axis | None = None) -> Sizes | None:
    """The sizes, increased until the forward allows them, then decreased until the data are few
    enough; ``kept`` is fixed. None if that is impossible.
    """
    definition = question.chain.definition
    sizes = definition.fitting(sizes, kept={kept} - {None})
    if not definition.fit(sizes):
        return None
    for _ in range(LARGEST):
        if _entries(question, sizes) <= MOST_ENTRIES:
            return sizes
        others = [axis for axis in sizes if axis != kept and sizes[axis] > 1]
        if not others:
            return None
        largest = max(others, key=lambda axis: sizes[axis])
        smaller = {**sizes, largest: sizes[largest] - 1}
        if not definition.fit(smaller):
            return None
        sizes = smaller
    return None


def _entries(question: GradientQuestion, sizes: Sizes) -> int:
    """The number of entries of the largest tensor among data and statements."""
    definition = question.chain.definition
    tensors = data_of(definition)
    whole = definition.sizes_from(sizes)
    most = 1
    for t in (*tensors, *(s.tensor for s in definition.statements)):
        entries = 1
        for axis in t.home:
            entries *= whole[axis]
        most = max(most, entries)
    return most


def _distinct(found: Sequence[Sizes | None]) -> list[Sizes]:
    return [s for i, s in enumerate(found) if s is not None and s not in found[:i]]


def _written(definition, sizes: Sizes) -> str:
    return ", ".join(f"{axis} = {sizes[axis]}" for axis in definition.independent_axes)


# Comparisons of sizes


def _around_comparisons(question: GradientQuestion) -> tuple[list[Sizes | None], str]:
    """Sizes around which a comparison of sizes changes; and those too large to try, if any."""
    definition = question.chain.definition
    found, beyond = [], ""
    formulas = [question.claimed, *(s.expression for s in definition.statements)]
    for compared in dict.fromkeys(e for f in formulas for e in compared_sizes(f)):
        for axis in sorted(compared.atoms(Axis), key=str):
            chosen = definition.size(axis)
            if chosen not in definition.independent_axes:
                continue
            for others in BESIDE:
                base = dict.fromkeys(definition.independent_axes, others)
                for place in changes_of_sign(compared, definition, base, chosen):
                    for size in (place - 1, place, place + 1):
                        if size > LARGEST:
                            beyond = f"sizes are compared at {chosen} = {size}, too large to try"
                        elif size > 0:
                            found.append(_fitting(question, base | {chosen: size}, chosen))
    return found, beyond


def compared_sizes(e: Expr) -> list[Expr]:
    """The expressions in sizes alone whose sign ``e`` depends on."""
    found = []
    for node in e.atoms(Relational, *KINKED, PointwiseMax, PointwiseMin):
        if isinstance(node, Relational):
            pairs = [node.lhs - node.rhs]
        elif isinstance(node, (PointwiseMax, PointwiseMin)):
            pairs = [a - b for i, a in enumerate(node.args) for b in node.args[:i]]
        else:
            pairs = [node.args[0]]
        found += [p for p in pairs if is_number_or_size(p) and p.atoms(Axis)]
    return sorted(set(found), key=str)


def changes_of_sign(e: Expr, definition, base: Sizes, axis: Axis) -> list[int]:
    """The sizes of ``axis`` at or after which ``e`` changes sign."""

    def at(size) -> Expr:
        whole = definition.sizes_from({**base, axis: size})
        return e.xreplace({a: Integer(1) * whole[a] for a in e.atoms(Axis)})

    variable = Symbol("size", positive=True)
    try:
        roots = Poly(at(variable), variable).real_roots()
        return sorted({int(root) for root in roots if root >= 1})
    except (PolynomialError, NotImplementedError, TypeError):
        return list(islice(_scanned(at), 2 * FIRST))


def _scanned(at) -> Iterator[int]:
    """The sign changes up to `FIRST`, then those between powers of 2."""

    def side(size: int) -> int:
        value = at(size).evalf(DIGITS)
        return int(sign(value)) if value.is_comparable else 0

    before = side(1)
    for size in range(2, FIRST):
        after = side(size)
        if after != before:
            yield size
        before = after
    low = FIRST - 1
    for power in count(FIRST_POWER):
        high = 2**power
        if high > LARGEST_SCANNED:
            return
        after = side(high)
        if after != before:
            below, above = low, high
            while above - below > 1:
                middle = (below + above) // 2
                below, above = (middle, above) if side(middle) == before else (below, middle)
            yield above
        low, before = high, after
