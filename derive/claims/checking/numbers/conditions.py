"""Examples that random data miss: where a condition changes, and at ties.

In: a `GradientQuestion`, and what is settled. Out: a `Counterexample`, or None.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from sympy import Integer

from derive.claims.checking.numbers.arithmetic import Floating
from derive.claims.checking.numbers.comparison import GradientQuestion
from derive.claims.checking.numbers.drawn import chooses, range_of_data
from derive.claims.checking.numbers.example import Counterexample, stated
from derive.claims.checking.numbers.points import (
    RandomData,
    Values,
    generic_point,
    smallest_sizes,
)
from derive.claims.checking.numbers.search import DataSearch, SearchBudget
from derive.claims.checking.numbers.thresholds import Evaluated, Thresholds
from derive.language.symbols import Axis, Tensor

FOR_SHORTENING = 6000  # operations
FOR_CONDITIONS = 30_000  # operations at one size, where conditions change
BASES = 2  # random data sets from which the search starts
LONG = 12  # a size at which an entry can be 3 standard deviations from the mean
SIZES_OF_KINKS = 6  # sizes at which ties are tried


def beyond_conditions(question: GradientQuestion, settled, at) -> Counterexample | None:
    """An example where a condition takes another value than for random data; one at ties or zeros
    only if there is no other.
    """
    at_kinks = None
    for search, found in where_conditions_change(question, settled, at, FOR_CONDITIONS):
        if not found.comparison.at_kink:
            return simplified(search, found)
        at_kinks = at_kinks or (search, found)
    simple = at_kink(question, settled)
    return simplified(*at_kinks) if simple is None and at_kinks else simple


def where_conditions_change(
    question: GradientQuestion, settled, at, operations: int, most_sizes: int | None = None
) -> Iterator[tuple[DataSearch, Evaluated]]:
    """Data at which the claim differs, starting from random data and from zeros."""
    if not chooses(question):
        return
    kind = range_of_data(question, settled)
    for sizes in islice(_sizes_for_conditions(question, at), most_sizes):
        search = DataSearch(question, sizes, settled, Floating(), SearchBudget(operations))
        first, *others = (
            _random_values(question, sizes, settled, RandomData(k, kind)) for k in range(BASES)
        )
        thresholds = Thresholds(search)
        for found in thresholds.around([first, first | _zeros(search, thresholds.moved), *others]):
            if found.comparison.different:
                yield search, found


def _zeros(search: DataSearch, tensors: Sequence[Tensor]) -> Values:
    zeros = search.all_equal(Integer(0))
    return {t.name: zeros[t.name] for t in tensors if t.role == "input"}


def _sizes_for_conditions(question: GradientQuestion, at) -> Iterator[Mapping[Axis, int]]:
    """The smallest sizes, the smallest without a 1, then each axis long in turn."""
    definition = question.chain.definition
    if at is not None:
        yield dict(at)
        return
    small = list(smallest_sizes(definition))
    beyond_one = [sizes for sizes in small if 1 not in sizes.values()]
    yield from small[:1]
    yield from (sizes for sizes in beyond_one[:1] if sizes != small[0])
    for axis in definition.independent_axes:
        long = {**small[0], axis: LONG}
        if definition.fit(long):
            yield long


def _random_values(question: GradientQuestion, sizes, settled, drawing: RandomData) -> Values:
    chain = question.chain
    return dict(generic_point(chain.definition, sizes, settled, drawing).values)


def simplified(search: DataSearch, found: Evaluated) -> Counterexample | None:
    """The data simplified as far as possible."""
    at_kink = found.comparison.at_kink
    search.arithmetic, search.kinks = found.arithmetic, at_kink
    search.budget = SearchBudget(FOR_SHORTENING)
    point = search.point(search.shortened(found.values))
    return stated(search.question, point, at_kink=at_kink, last=found.arithmetic)


def at_kink(question: GradientQuestion, settled) -> Counterexample | None:
    """An example at equal entries or zeros, if any choice is made."""
    definition = question.chain.definition
    if not chooses(question):
        return None
    for sizes in islice(smallest_sizes(definition), SIZES_OF_KINKS):
        search = DataSearch(
            question, sizes, settled, Floating(), SearchBudget(FOR_SHORTENING), kinks=True
        )
        for number in (0, 1):
            for changed in search.variations(search.all_equal(Integer(number))):
                if search.shows(changed):
                    point = search.point(changed)
                    is_kink = question.compared(point, search.arithmetic).at_kink
                    return stated(question, point, at_kink=is_kink)
    return None
