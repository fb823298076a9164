"""Second computation of a gradient at a point: by SymPy's own derivative on explicit scalars,
independent of the chain and of the evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Add, DiracDelta, Expr, Integer, Symbol, nan, zoo
from sympy.core.evalf import PrecisionExhausted

from derive.claims.checking.numbers.arithmetic import DIGITS, Unevaluable
from derive.claims.checking.numbers.evaluation import Evaluation, Point
from derive.claims.checking.numbers.exact_numbers import Exact
from derive.claims.checking.numbers.points import indexed_axis
from derive.claims.checking.numbers.tables import Index
from derive.gradient.chain.chain import Chain
from derive.language.symbols import Tensor
from derive.proof.proving.small_batch import LargestOf, SmallBatch, indicators
from derive.proof.zero.indicator import Indicator

MOST_SCALARS = 30  # more would take too long
MOST_DIGITS = 400  # with which a derivative is computed
AGREES = 1e-30  # relative; well within the digits that are computed


class Contradiction(AssertionError):
    """Two of gradform's own derivations disagree: a bug in gradform, not in the question."""


def confirm(chain: Chain, point: Point, of: Tensor, index: Index, expected: Expr) -> bool:
    """Whether SymPy confirms the value; False if that would take too long.

    Raises `Contradiction` if SymPy finds another value.
    """
    if of in chain.definition.outputs or _scalars(point) > MOST_SCALARS:
        return False
    derivative = _own_derivative(chain, point, of, index)
    if derivative is None or derivative.has(DiracDelta):  # at a jump there is no derivative
        return False
    try:
        own = derivative.evalf(DIGITS, maxn=MOST_DIGITS, strict=True)
    except PrecisionExhausted:  # 1 - tanh(300)**2 cancels
        return False
    ours = expected.evalf(DIGITS)
    if not own.is_comparable or abs(own - ours) > AGREES * (1 + abs(ours)):
        raise Contradiction(
            f"{chain.definition.name}: d{of.name}{list(index)} at {dict(point.sizes)} is "
            f"{expected} by the chain rule and {derivative} by SymPy; please report this"
        )
    return True


def _scalars(point: Point) -> int:
    return sum(map(len, point.values.values()))


def _own_derivative(chain: Chain, point: Point, of: Tensor, index: Index) -> Expr | None:
    """The derivative of the sum of all d<output>*output with respect to one entry, at the point."""
    definition, sizes = chain.definition, dict(point.sizes)
    batch = SmallBatch(
        definition,
        {axis: sizes[axis.name] for axis in definition.independent_axes},
        free=frozenset({of.name}),
    )
    arithmetic = Exact(irrational=True)
    try:
        known = Evaluation(chain, point, arithmetic).entries(of, of.home)
    except Unevaluable:
        return None
    variable = batch.entries(of)[index]
    numbers = {batch.entries(of)[i]: arithmetic.sympy(n) for i, n in known.items()}
    free = [t for t in definition.inputs if t.role != "label"]
    for t in (*free, *(t for t, _ in definition.scalars)):
        if t.name != of.name:
            numbers |= {batch.entries(t)[i]: n for i, n in point.values[t.name].items()}
    for t in definition.labels:
        numbers |= _label_numbers(batch, chain, t, point.values[t.name])
    at = numbers.pop(variable)
    terms = []
    for output, upstream in zip(definition.outputs, chain.upstreams, strict=True):
        arriving = point.values[upstream.name]
        computed = batch.computed(output.name)
        terms += [arriving[i] * e for i, e in computed.items() if arriving[i] != 0]
    objective = Add(*terms)
    objective = _with_maxima_chosen(objective.xreplace(numbers), variable, at)
    if objective.has(nan, zoo):  # 0*log(0): the output is undefined there, its gradient may not be
        return None
    return objective.diff(variable).xreplace({variable: at})


def _label_numbers(batch: SmallBatch, chain: Chain, label: Tensor, values: Mapping[Index, Expr]):
    axis = indexed_axis(chain.definition, label)
    numbers: dict[Symbol, Expr] = {}
    for i, value in values.items() if axis else ():
        place = ", ".join(str(k + 1) for k in i)
        group = indicators(f"{label.name}[{place}] of {axis}", batch.sizes[axis])
        for k, one in enumerate(group):
            if isinstance(one, Indicator):
                numbers[one] = Integer(int(value == k))
    return numbers


def _with_maxima_chosen(e: Expr, variable: Symbol, at: Expr) -> Expr:
    """``e`` with every maximum replaced by its first largest entry."""

    def largest(node):
        values = [arg.xreplace({variable: at}).evalf(DIGITS) for arg in node.args]
        return node.args[values.index(max(values))]

    return e.replace(lambda node: isinstance(node, LargestOf), largest)
