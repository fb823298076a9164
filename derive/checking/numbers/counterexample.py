"""The smallest example in which a claimed gradient is not the gradient.

In: a `Chain`, the tensor whose gradient is claimed, and the claim. Out: a `Counterexample` in exact
numbers, or None.

1. *sizes*: the first at which the claim differs for random data. A difference that is there at all
   is there for almost all data, so nothing simpler need be tried at smaller sizes;
2. *rational data*: simple integers; where a statement is not rational on them, the data that it is
   computed from are chosen otherwise, so that roots and exponentials come out;
3. *less to read*: every entry in turn is made simpler, as long as the difference stays;
4. where 2 finds nothing, 3 starts from the random data, and the numbers may be irrational;
5. where random data show nothing, data on both sides of all that is compared (``thresholds.py``);
6. *confirmed*: SymPy's own derivative on explicit scalars is what is expected.

Every search is bounded by a count of operations, so the answer is the same on every machine.

Long: the ways in which an example is looked for share their data, budgets and last step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from sympy import Abs, Expr, Heaviside, Integer, Piecewise, cancel, expand, nan, radsimp, sign
from sympy import Max as PointwiseMax
from sympy import Min as PointwiseMin

from derive.chain.chain import Chain
from derive.checking.numbers.arithmetic import DIGITS, Arithmetic, Floating, Unevaluable
from derive.checking.numbers.comparison import Comparison, Question
from derive.checking.numbers.comparison import largest_difference as largest_difference
from derive.checking.numbers.confirmation import confirm
from derive.checking.numbers.evaluation import Point
from derive.checking.numbers.exact_numbers import Exact
from derive.checking.numbers.points import (
    RANGES,
    Drawing,
    Values,
    allows,
    complexity,
    generic_point,
    shrunk,
    smallest_sizes,
)
from derive.checking.numbers.points import random_points as random_points
from derive.checking.numbers.search import Budget, Search
from derive.checking.numbers.tables import UNDEFINED, Index
from derive.checking.numbers.thresholds import Found, Thresholds, compared
from derive.language.nodes import ArgMax, Max
from derive.language.symbols import Axis, Tensor

READABLE = 30  # operations of an irrational number
MOST_SIZES = 8  # at which rational data are looked for
CHOICES = (Max, ArgMax, Piecewise, Abs, sign, Heaviside, PointwiseMax, PointwiseMin)
FOR_SIZES, FOR_RATIONALS, FOR_SHORTENING = 8000, 6000, 6000  # operations
FOR_CONDITIONS = 30_000  # operations at one size, where conditions change
FOR_A_GLANCE = 8000  # the same, before it is tried to prove the claim
GLANCES = 2  # at so many sizes
BASES = 2  # random data from which these are looked for
LONG = 12  # a size at which an entry can be 3 standard deviations from the mean
FOR_LARGE_SIZES = 200_000  # operations, where small sizes are known to show nothing
UNEVALUABLE = 50  # operations, about, until an arithmetic refuses
SIZES_OF_KINKS = 6  # at which equal entries are tried
FLOATING = Floating()
SEEDS = 3  # of random data at one size, where choices are made: so many branches are met


@dataclass(frozen=True)
class Counterexample:
    """At ``point``, the entry ``index`` of the gradient of ``of`` is ``expected``, and the claim
    gives ``got`` (nan: no number).

    ``is_rational`` says that both are. ``at_kink``: the claim differs only where a choice is made
    between equals, and the derivative is a convention. ``called`` is the name by which the gradient
    goes, if not by ``d`` and that of its tensor.
    """

    point: Point
    of: Tensor
    index: Index
    expected: Expr
    got: Expr
    is_rational: bool
    at_kink: bool = False
    called: str = ""


def rows(found: Counterexample) -> dict[str, object]:
    """Names and numbers for display: sizes, data in the order of declaration as nested lists, then
    what was expected and what the claim gives.
    """
    shown: dict[str, object] = dict(found.point.sizes)
    for name, entries in found.point.values.items():
        shown[name] = _nested(entries)
    where = (found.called or f"d{found.of.name}") + (f"{list(found.index)}" if found.index else "")
    return shown | {f"expected {where}": found.expected, f"got {where}": found.got}


def _nested(entries: Mapping[Index, Expr], at: Index = ()):
    if at in entries:
        return entries[at]
    places = sorted({i[len(at)] for i in entries if i[: len(at)] == at})
    return [_nested(entries, (*at, place)) for place in places]


Revealing = list[tuple[Mapping[Axis, int], Point]]


def counterexample(
    chain: Chain,
    of: Tensor,
    claimed: Expr,
    settled: Mapping[str, Expr] | None = None,
    at: Mapping[Axis, int] | None = None,
) -> Counterexample | None:
    """The smallest example in which ``claimed`` is not the gradient of ``of``, or None: none was
    found.

    ``settled`` are numbers for scalars, or the upstream gradient, that are to be kept; ``at`` are
    sizes at which it is known to differ, where it does not at the smallest.
    """
    question, settled = Question(chain, of, claimed), dict(settled or {})
    different, undefined = _revealing(question, settled, at)
    found = (
        _rational(question, settled, different)
        or _shortest(question, settled, different[:1])
        or _beyond_conditions(question, settled, at)
        or _shortest(question, settled, undefined[:1], undefined=True)
    )
    return _confirmed(chain, found)


def at_a_glance(chain: Chain, of: Tensor, claimed: Expr) -> Counterexample | None:
    """One that shows where a condition of the claim changes, if that is found at once: it saves the
    search for a proof of what is not so.
    """
    question = Question(chain, of, claimed)
    if set(compared([claimed])) <= set(compared(question.formulas()[1:])):
        return None
    for search, found in _where_conditions_change(question, {}, None, FOR_A_GLANCE, GLANCES):
        if not found.comparison.at_kink:
            return _confirmed(chain, _simplified(search, found))
    return None


def between_equals(chain: Chain, of: Tensor, claimed: Expr) -> Counterexample | None:
    """One at equal entries, or zeros."""
    return _at_kink(Question(chain, of, claimed), {})


def _confirmed(chain: Chain, found: Counterexample | None) -> Counterexample | None:
    """The same; where it is no convention, after SymPy's own derivative has said so too."""
    if found is not None and not found.at_kink:
        confirm(chain, found.point, found.of, found.index, found.expected)
    return found


def _revealing(question: Question, settled, at) -> tuple[Revealing, Revealing]:
    """The smallest sizes, each with random data, at which the claim differs, and those at which it
    has no number.
    """
    different, undefined = [], []
    limit = FOR_SIZES if at is None else FOR_LARGE_SIZES
    budget = Budget(limit)
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


def _random_data(question: Question, settled, at) -> Iterator[tuple[Mapping[Axis, int], Point]]:
    """Small sizes with random data, several where choices are made; at last a few larger sizes."""
    chain, definition = question.chain, question.chain.definition
    seeds = SEEDS if _chooses(question) else 1
    kind = _range_of_data(question, settled)
    for sizes in smallest_sizes(definition) if at is None else shrunk(definition, at):
        for seed in range(seeds):
            drawing = Drawing(seed, kind)
            yield sizes, generic_point(definition, chain.upstream, sizes, settled, drawing)
    for point in random_points(definition, chain.upstream, 1, settled) if at is None else ():
        sizes = dict(point.sizes)
        yield {axis: sizes[axis.name] for axis in definition.independent_axes}, point


def _chooses(question: Question) -> bool:
    """Whether there is a choice between entries, whose outcome depends on the data."""
    statements = question.chain.definition.statements
    return any(e.has(*CHOICES) for e in [question.claimed, *(s.expression for s in statements)])


def _range_of_data(question: Question, settled) -> int:
    """The first of `RANGES` in which the gradient is defined."""
    definition = question.chain.definition
    sizes = next((s for s in smallest_sizes(definition) if set(s.values()) - {1}), {})
    if set(sizes) != set(definition.independent_axes):
        return 0
    for kind in range(len(RANGES)):
        point = generic_point(definition, question.chain.upstream, sizes, settled, Drawing(0, kind))
        try:
            if question.compared(point, Floating()).is_defined:
                return kind
        except Unevaluable:
            continue
    return 0


def _rational(question: Question, settled, different: Revealing) -> Counterexample | None:
    """One in which gradient and claim are rational, at the first sizes where there is one; else
    one in which the gradient is.
    """
    left = 2 * FOR_RATIONALS
    for of_claim in (Exact(), Exact(irrational=True)):
        for sizes, _ in different if not of_claim.irrational else different[:1]:
            budget = Budget(min(left, FOR_RATIONALS))
            left -= budget.left
            search = Search(question, sizes, settled, Exact(), budget, of_claim)
            values = search.rational_data()
            if values is not None:
                search.budget = Budget(FOR_SHORTENING)
                return _stated(question, search.point(search.shortened(values)))
            left += max(budget.left, 0)
    return None


def _shortest(
    question: Question, settled, revealing: Revealing, undefined: bool = False
) -> Counterexample | None:
    """The random data that showed it, made as simple as is possible by fifty digits."""
    for sizes, point in revealing:
        budget = Budget(FOR_SHORTENING)
        search = Search(question, sizes, settled, Floating(), budget, undefined=undefined)
        point = search.point(search.shortened(dict(point.values)))
        return _stated(question, point, undefined=undefined)
    return None


def _beyond_conditions(question: Question, settled, at) -> Counterexample | None:
    """One at data at which a condition comes out otherwise than at those that were drawn; one
    between equals, or zeros, only if there is no other.
    """
    at_kinks = None
    for search, found in _where_conditions_change(question, settled, at, FOR_CONDITIONS):
        if not found.comparison.at_kink:
            return _simplified(search, found)
        at_kinks = at_kinks or (search, found)
    simple = _at_kink(question, settled)
    return _simplified(*at_kinks) if simple is None and at_kinks else simple


def _where_conditions_change(
    question: Question, settled, at, operations: int, most_sizes: int | None = None
) -> Iterator[tuple[Search, Found]]:
    """Data at which the claim differs, beginning from random ones and from zeros."""
    if not _chooses(question):
        return
    kind = _range_of_data(question, settled)
    for sizes in islice(_sizes_for_conditions(question, at), most_sizes):
        search = Search(question, sizes, settled, Floating(), Budget(operations))
        first, *others = (
            _random_values(question, sizes, settled, Drawing(k, kind)) for k in range(BASES)
        )
        thresholds = Thresholds(search)
        for found in thresholds.around([first, first | _zeros(search, thresholds.moved), *others]):
            if found.comparison.different:
                yield search, found


def _zeros(search: Search, tensors: Sequence[Tensor]) -> Values:
    zeros = search.all_equal(Integer(0))
    return {t.name: zeros[t.name] for t in tensors if t.role == "input"}


def _sizes_for_conditions(question: Question, at) -> Iterator[Mapping[Axis, int]]:
    """The smallest sizes, the smallest without a 1, and one axis after the other long."""
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
        if allows(definition, long):
            yield long


def _random_values(question: Question, sizes, settled, drawing: Drawing) -> Values:
    chain = question.chain
    return dict(generic_point(chain.definition, chain.upstream, sizes, settled, drawing).values)


def _simplified(search: Search, found: Found) -> Counterexample | None:
    """The data with as little to read as is possible."""
    at_kink = found.comparison.at_kink
    search.arithmetic, search.kinks = found.arithmetic, at_kink
    search.budget = Budget(FOR_SHORTENING)
    point = search.point(search.shortened(found.values))
    return _stated(search.question, point, at_kink=at_kink, last=found.arithmetic)


def _at_kink(question: Question, settled) -> Counterexample | None:
    """One at equal entries, or zeros, if choices are made at all."""
    definition = question.chain.definition
    if not _chooses(question):
        return None
    for sizes in islice(smallest_sizes(definition), SIZES_OF_KINKS):
        search = Search(question, sizes, settled, Floating(), Budget(FOR_SHORTENING), kinks=True)
        for number in (0, 1):
            for changed in search.variations(search.all_equal(Integer(number))):
                if search.shows(changed):
                    return _stated(question, search.point(changed), at_kink=True)
    return None


def _stated(
    question: Question,
    point: Point,
    undefined: bool = False,
    at_kink: bool = False,
    last: Arithmetic = FLOATING,
) -> Counterexample | None:
    """The entry with the least to read, as exact as it can be; in the arithmetic ``last``, where
    it is not exact.
    """
    for arithmetic in (Exact(), Exact(irrational=True), last):
        try:
            found = question.compared(point, arithmetic)
        except Unevaluable:
            continue
        wrong = found.undefined if undefined else found.different
        pairs = [(i, _shown(found, found.expected[i]), _shown(found, found.got[i])) for i in wrong]
        if pairs:
            i, expected, got = min(pairs, key=lambda p: complexity(p[1]) + complexity(p[2]))
            rational = bool(expected.is_Rational and got.is_Rational)
            return Counterexample(point, question.of, i, expected, got, rational, at_kink)
    return None


def _shown(found: Comparison, value) -> Expr:
    """A number as SymPy writes it in the fewest operations, or its digits if those are many."""
    if value is UNDEFINED:
        return nan
    e = found.arithmetic.sympy(value)
    if e.is_Rational or e.is_Float:
        return e
    if e.count_ops() > READABLE:
        return e.evalf(DIGITS)
    return min((e, radsimp(e), expand(radsimp(e)), cancel(e)), key=lambda form: form.count_ops())
