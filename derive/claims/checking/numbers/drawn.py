"""Random data for which a claim differs from the gradient, or is undefined.

In: a `GradientQuestion`. Out: the smallest sizes, each with such data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sympy import Max as PointwiseMax
from sympy import Min as PointwiseMin
from sympy import Piecewise

from derive.claims.checking.numbers.arithmetic import Floating, Unevaluable
from derive.claims.checking.numbers.comparison import GradientQuestion
from derive.claims.checking.numbers.evaluation import Point
from derive.claims.checking.numbers.points import (
    RANGES,
    RandomData,
    generic_point,
    random_points,
    shrunk,
    smallest_sizes,
)
from derive.claims.checking.numbers.search import SearchBudget
from derive.language.functions import KINKED
from derive.language.nodes import ArgMax, Max
from derive.language.symbols import Axis

CHOICES = (Max, ArgMax, Piecewise, *KINKED, PointwiseMax, PointwiseMin)
MOST_SIZES = 8  # at which rational data are searched for
FOR_SIZES = 8000  # operations
FOR_LARGE_SIZES = 200_000  # operations, if small sizes are known to show nothing
UNEVALUABLE = 50  # approximate operations before an arithmetic refuses
SEEDS = 3  # random data sets per size if there are choices, to reach several branches
Revealing = list[tuple[Mapping[Axis, int], Point]]


def revealing(question: GradientQuestion, settled, at) -> tuple[Revealing, Revealing]:
    """The smallest sizes with random data for which the claim differs, and those for which it is
    undefined.
    """
    different, undefined = [], []
    limit = FOR_SIZES if at is None else FOR_LARGE_SIZES
    budget = SearchBudget(limit)
    for sizes, point in _random_data(question, settled, at):
        try:
            found = question.compared(point, Floating(), limit)
        except Unevaluable:
            budget.spend(UNEVALUABLE)
            continue
        budget.spend(found.operations)
        if not found.is_defined or found.at_kink:
            continue
        if found.different:
            if sizes not in [known for known, _ in different]:
                different.append((sizes, point))
        elif found.undefined:
            undefined.append((sizes, point))
        if len(different) == MOST_SIZES or budget.left < 0:
            break
    return different, undefined


def _random_data(
    question: GradientQuestion, settled, at
) -> Iterator[tuple[Mapping[Axis, int], Point]]:
    """Small sizes with random data, several sets if there are choices; finally a few
    larger sizes.
    """
    definition = question.chain.definition
    seeds = SEEDS if chooses(question) else 1
    kind = range_of_data(question, settled)
    for sizes in smallest_sizes(definition) if at is None else shrunk(definition, at):
        for seed in range(seeds):
            drawing = RandomData(seed, kind)
            yield sizes, generic_point(definition, sizes, settled, drawing)
    for point in random_points(definition, 1, settled) if at is None else ():
        sizes = dict(point.sizes)
        yield {axis: sizes[axis.name] for axis in definition.independent_axes}, point


def chooses(question: GradientQuestion) -> bool:
    """Whether there is a choice between entries that depends on the data."""
    statements = question.chain.definition.statements
    return any(e.has(*CHOICES) for e in [question.claimed, *(s.expression for s in statements)])


def range_of_data(question: GradientQuestion, settled) -> int:
    """The first of `RANGES` in which the gradient is defined."""
    definition = question.chain.definition
    sizes = next((s for s in smallest_sizes(definition) if set(s.values()) - {1}), {})
    if set(sizes) != set(definition.independent_axes):
        return 0
    for kind in range(len(RANGES)):
        point = generic_point(definition, sizes, settled, RandomData(0, kind))
        try:
            if question.compared(point, Floating()).is_defined:
                return kind
        except Unevaluable:
            continue
    return 0
