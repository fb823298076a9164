"""The smallest example in which a claimed gradient is not the gradient.

In: a `Chain`, the tensor whose gradient is claimed, and the claim. Out: a `Counterexample` in exact
numbers, or None.

1. *sizes*: the first at which the claim differs for random data. A difference that is there at all
   is there for almost all data, so nothing simpler need be tried at smaller sizes;
2. *rational data*: simple integers; where a statement is not rational on them, the data that it is
   computed from are chosen otherwise, so that roots and exponentials come out;
3. *less to read*: every entry in turn is made simpler, as long as the difference stays;
4. where 2 finds nothing, 3 starts from the random data, and the numbers may be irrational;
5. where random data show nothing, data on both sides of all that is compared (``conditions.py``);
6. *confirmed*: SymPy's own derivative on explicit scalars is what is expected.

Every search is bounded by a count of operations, so the answer is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Expr

from derive.claims.checking.numbers.arithmetic import Floating
from derive.claims.checking.numbers.comparison import GradientQuestion
from derive.claims.checking.numbers.comparison import largest_difference as largest_difference
from derive.claims.checking.numbers.conditions import (
    FOR_SHORTENING,
    at_kink,
    beyond_conditions,
    simplified,
    where_conditions_change,
)
from derive.claims.checking.numbers.confirmation import confirm
from derive.claims.checking.numbers.drawn import CHOICES as CHOICES
from derive.claims.checking.numbers.drawn import Revealing, revealing
from derive.claims.checking.numbers.exact_numbers import Exact
from derive.claims.checking.numbers.example import Counterexample as Counterexample
from derive.claims.checking.numbers.example import rows as rows
from derive.claims.checking.numbers.example import stated
from derive.claims.checking.numbers.points import random_points as random_points
from derive.claims.checking.numbers.search import DataSearch, SearchBudget
from derive.claims.checking.numbers.thresholds import compared
from derive.gradient.chain.chain import Chain
from derive.language.symbols import Axis, Tensor

FOR_RATIONALS = 6000  # operations
FOR_A_GLANCE = 8000  # the same, before a proof is tried
GLANCES = 2  # sizes tried then


def counterexample(
    chain: Chain,
    of: Tensor,
    claimed: Expr,
    settled: Mapping[str, Expr] | None = None,
    at: Mapping[Axis, int] | None = None,
) -> Counterexample | None:
    """The smallest example in which ``claimed`` is not the gradient of ``of``, or None if none was
    found.

    ``settled`` are fixed values of scalars or the upstream gradient; ``at`` are sizes at which it
    is known to differ, if it does not at the smallest.
    """
    question, settled = GradientQuestion(chain, of, claimed), dict(settled or {})
    different, undefined = revealing(question, settled, at)
    found = (
        _rational(question, settled, different)
        or _shortest(question, settled, different[:1])
        or beyond_conditions(question, settled, at)
        or _shortest(question, settled, undefined[:1], undefined=True)
    )
    return _confirmed(chain, found)


def at_a_glance(chain: Chain, of: Tensor, claimed: Expr) -> Counterexample | None:
    """A counterexample found quickly by changing a condition of the claim; it saves the search for
    a proof of something false.
    """
    question = GradientQuestion(chain, of, claimed)
    if set(compared([claimed])) <= set(compared(question.formulas()[1:])):
        return None
    for search, found in where_conditions_change(question, {}, None, FOR_A_GLANCE, GLANCES):
        if not found.comparison.at_kink:
            return _confirmed(chain, simplified(search, found))
    return None


def between_equals(chain: Chain, of: Tensor, claimed: Expr) -> Counterexample | None:
    """A counterexample at equal entries, or zeros."""
    return at_kink(GradientQuestion(chain, of, claimed), {})


def _confirmed(chain: Chain, found: Counterexample | None) -> Counterexample | None:
    """The counterexample, confirmed by SymPy's own derivative unless it is at a kink."""
    if found is not None and not found.at_kink:
        confirm(chain, found.point, found.of, found.index, found.expected)
    return found


def _rational(question: GradientQuestion, settled, different: Revealing) -> Counterexample | None:
    """A counterexample with rational gradient and claim, at the first sizes that have one; else
    with a rational gradient.
    """
    left = 2 * FOR_RATIONALS
    for of_claim in (Exact(), Exact(irrational=True)):
        for sizes, _ in different if not of_claim.irrational else different[:1]:
            budget = SearchBudget(min(left, FOR_RATIONALS))
            left -= budget.left
            search = DataSearch(question, sizes, settled, Exact(), budget, of_claim)
            values = search.rational_data()
            if values is not None:
                search.budget = SearchBudget(FOR_SHORTENING)
                return stated(question, search.point(search.shortened(values)))
            left += max(budget.left, 0)
    return None


def _shortest(
    question: GradientQuestion, settled, revealing: Revealing, undefined: bool = False
) -> Counterexample | None:
    """The random data that revealed the difference, simplified with fifty digits."""
    for sizes, point in revealing:
        budget = SearchBudget(FOR_SHORTENING)
        search = DataSearch(question, sizes, settled, Floating(), budget, undefined=undefined)
        point = search.point(search.shortened(dict(point.values)))
        return stated(question, point, undefined=undefined)
    return None
