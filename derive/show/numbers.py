"""Numbers in a graph: a small batch of random data, and what it makes of every tensor.

In: a `Numbered`. Out: for every tensor its entries and those of its
gradient, as matrices, and a sentence on the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sympy import Expr, Float, Integer

from derive.claims.checking.numbers.arithmetic import Floating, Undefined, Unevaluable
from derive.claims.checking.numbers.evaluation import Evaluation
from derive.claims.checking.numbers.points import (
    RANGES,
    RandomData,
    data_of,
    generic_point,
    indexed_axis,
)
from derive.gradient.chain.chain import Chain, adjoint_of
from derive.language.errors import QuestionError
from derive.language.formulas.words import Words
from derive.language.symbols import Axis, Tensor
from derive.show.document import Matrix, Numbered
from derive.show.small import matrix_of, sizes_of

GRAIN = 24  # the data are -2 and a multiple of 4/25: of two decimals, and none is zero
SEEDS = range(3)
DIGITS = 3  # as many as fit beside each other
ROUNDING = 1e-30  # of the largest number; the arithmetic has fifty digits
MOST_OPERATIONS = 10**5  # of one evaluation: a page is a second's work
Numbers = Mapping[str, tuple[Matrix, ...]]


def numbers_of(numbered: Numbered) -> tuple[Numbers, Words]:
    """Nothing, where no data are found at which everything has a value: better away from kinks,
    where the gradient is no convention.
    """
    chain = numbered.chain
    try:
        sizes = sizes_of(chain.definition, numbered.entries)
    except QuestionError:  # which the small batch tells about, where it is asked for
        return {}, ""
    found: Numbers = {}
    for evaluation in _evaluations(chain, sizes):
        try:
            numbers = _numbers(evaluation)
        except (Unevaluable, Undefined):
            continue
        found = found or numbers
        if not evaluation.at_kink:
            found = numbers
            break
    return found, _said(chain, sizes) if found else ""


def _evaluations(chain: Chain, sizes: Mapping[Axis, int]) -> Iterator[Evaluation]:
    definition = chain.definition
    whole = {a: sizes[a] for a in definition.independent_axes}
    defaults = definition.defaults_at(whole)
    settled = defaults if definition.permits(defaults, whole) else {}
    settled = settled | {t.name: Integer(1) for t in chain.upstreams if not t.home}
    for kind in range(len(RANGES)):
        for seed in SEEDS:
            point = generic_point(definition, whole, settled, RandomData(seed, kind, GRAIN))
            yield Evaluation(chain, point, Floating(), MOST_OPERATIONS)


def _numbers(evaluation: Evaluation) -> Numbers:
    chain = evaluation.chain
    made = [s.tensor for s in chain.definition.statements]
    arriving = {t.name for t in chain.upstreams}
    found = {}
    for t in dict.fromkeys((*data_of(chain.definition), *made)):
        if t.role == "adjoint":
            continue
        gradient = adjoint_of(t)
        has = gradient.name in chain.by_name or gradient.name in arriving
        shown = (t, gradient) if has else (t,)
        found[t.name] = tuple(_matrix(evaluation, e, t) for e in shown)
    return found


def _matrix(evaluation: Evaluation, e: Tensor, at: Tensor) -> Matrix:
    """The entries of ``e``, which has the axes of ``at``; a label counts from 1, as the entries of
    the small batch do.
    """
    definition = evaluation.chain.definition
    first = e.role == "label" and indexed_axis(definition, e) is not None
    entries = evaluation.entries(e, at.home)
    least = ROUNDING * evaluation.largest
    numbers = {i: _rounded(value + first, least) for i, value in entries.items()}
    return matrix_of(e, numbers, [evaluation.size(a) for a in at.home])


def _rounded(value, least) -> Expr:
    """The value to three digits; zero where it is less than what is rounded."""
    value = value if abs(value) > least else 0
    return Integer(int(value)) if value == int(value) else Float(value, DIGITS)


def _said(chain: Chain, sizes: Mapping[Axis, int]) -> Words:
    at = ", ".join(f"{axis} = {size}" for axis, size in sizes.items())
    drawn = f"Random data{' for ' * bool(at)}{at}, and what they become, rounded to three digits"
    labels = any(t.role == "label" for t in chain.definition.inputs)
    return f"{drawn}{'; labels are counted from 1' * labels}."
