"""Risks of a way of writing the gradients where the forward is finite: closed forms are compared by
their number, and then by the cost.

A value may be divided by that is 0 there, or may underflow, or an exponential may
be too large. The forward divides by some values itself, others lie away from 0 (``bounds.py``), and
a condition may keep one from it; where an exponential is too large, the output may be so as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from sympy import Basic, Expr, Ge, Gt, Le, Lt, Mul, Ne, Piecewise, Pow, S, exp, log

from derive.gradient.closing.cost import Cost, cost_of
from derive.gradient.range.scaled import Scales
from derive.gradient.values.naming import in_full
from derive.gradient.values.relations import Relations
from derive.language.choices import branches_of, written_in
from derive.language.formulas.text import formula
from derive.language.nodes import ArgMax, Peak, Sum, along
from derive.language.operations import operations_in
from derive.language.symbols import (
    MINUS_INFINITY,
    Tensor,
    axes_of,
    is_constant,
    is_number_or_size,
    tensors_in,
)

LONGEST = 40  # operations of what is written out to see what it risks
Preference = tuple[int, Cost]  # what the forward does not risk, then the cost
Divided = tuple[Expr, frozenset]  # what is divided by, and conditions that hold there


@dataclass(frozen=True)
class Risk:
    """An ``expression`` that is divided by, or else may overflow; then ``names`` have no number."""

    expression: Expr
    divides: bool
    names: tuple[str, ...]

    def __str__(self) -> str:
        if self.divides:
            why = "may be 0 or underflow"
        elif isinstance(self.expression, log):
            why = "may be of what overflows or underflows"
        else:
            why = "may overflow"
        named = ", ".join(self.names)
        return f"{formula(self.expression)} {why}: then {named} may be infinite or NaN"


def preference(pairs: Iterable[tuple[Tensor, Expr]], relations: Relations) -> Preference:
    """Sort key for ways to write the same gradients, the statements ``pairs``: the number of risks,
    then the cost.
    """
    pairs = list(pairs)
    risked = {risk for e in _written_out(pairs, relations) for risk in _risked(e, relations)}
    exposed = {d for _, e in pairs for d in _exposed(e, relations)}
    definition = relations.definition
    cost = cost_of(pairs, definition.at_hand, relations.results, definition.flattened)
    return len(risked), replace(cost, exposed=len(exposed))


def up_to_operations(p: Preference) -> tuple:
    """All that is preferred before fewer operations."""
    risks, cost = p
    return risks, cost.moved, cost.saved, cost.exposed, cost.lines, cost.reductions


def divisors(e: Expr) -> frozenset[Expr]:
    """The tensors, and expressions in tensors, that ``e`` divides by."""
    return frozenset(divisor for divisor, _ in _divided(e))


def _written_out(pairs: Iterable[tuple[Tensor, Expr]], relations: Relations) -> Iterable[Expr]:
    """The expressions, with what is computed on the way where it is read: not with gradients, of
    which nothing is asked, nor with what is long.
    """
    known: dict[str, Expr] = {}
    for tensor, e in pairs:
        met = [(t, known[t.name]) for t in tensors_in(e) if t.name in known]
        e = _inserted(e, tuple(met)) if met else e
        yield e
        if tensor.name[1:] not in relations.position and operations_in(e) <= LONGEST:
            known[tensor.name] = e


@lru_cache(maxsize=8192)  # a search for names meets the same ones again
def _inserted(e: Expr, known: tuple[tuple[Tensor, Expr], ...]) -> Expr:
    return written_in(e, {t: along(value, t) for t, value in known})


def _risked(e: Expr, relations: Relations) -> frozenset[tuple[bool, Expr]]:
    """Risks of ``e``: divisors that may vanish, marked True, and parts that may overflow."""
    if e not in relations.risked:
        divided = {(relations.with_values(divisor), where) for divisor, where in _divided(e)}
        vanishing = {d for d, where in divided if _may_vanish(d, where, relations)}
        growing = {t for t in tensors_in(e) if relations.scales.overflows(t)}
        growing |= relations.scales.risks(e)
        growing -= relations.growing
        relations.risked[e] = frozenset(
            [(True, d) for d in vanishing] + [(False, g) for g in growing]
        )
    return relations.risked[e]


def _exposed(e: Expr, relations: Relations) -> frozenset[Expr]:
    """Divisors in ``e`` outside of a choice that may be 0, in the forward too: where a choice is 0,
    so is the gradient, but 0/0 is not.
    """
    if e not in relations.exposed:
        relations.exposed[e] = frozenset(
            d for d, where in _divided(e) if not where and not relations.bounds(d).is_away_from_zero
        )
    return relations.exposed[e]


def _may_vanish(divisor: Expr, where: frozenset, relations: Relations) -> bool:
    """Whether a divisor may be 0, or may underflow, where the forward is finite and
    these conditions hold.
    """
    if relations.bounds(divisor).is_away_from_zero:
        return False
    chosen = (needed for d, needed in relations.chosen_divisors if d == divisor)
    if any(_excludes_zero(c, divisor) for c in where) or any(needed <= where for needed in chosen):
        return False
    return not relations.is_divided_by(divisor) or relations.scales.may_vanish(divisor)


def _excludes_zero(condition: Basic, e: Expr) -> bool:
    """Whether ``e`` is not 0 where the condition holds: all that it is a product of is not."""
    known = _nonzero(condition)
    factors = {base for base in e.as_powers_dict() if not is_number_or_size(base)}
    return known is not None and factors <= {*known.as_powers_dict()}


def _nonzero(condition: Basic) -> Expr | None:
    """The expression that a condition keeps from 0, or None."""
    if isinstance(condition, Ne) and S.Zero in condition.args:
        return next(side for side in condition.args if side != 0)
    if not isinstance(condition, (Gt, Ge, Lt, Le)):
        return None
    strict = isinstance(condition, (Gt, Lt))
    low, high = condition.lts, condition.gts
    if low.is_positive or (strict and low.is_nonnegative):
        return high
    return low if high.is_negative or (strict and high.is_nonpositive) else None


@lru_cache(maxsize=8192)
def _divided(e: Basic) -> frozenset[Divided]:
    """Divisors in ``e``, each with the conditions under which it divides."""
    found: set[Divided] = set()
    if isinstance(e, Pow) and e.exp.could_extract_minus_sign() and not is_constant(e.base):
        found.add((e.base, frozenset()))
    if not isinstance(e, Piecewise):
        return frozenset(found.union(*map(_divided, e.args)))
    for value, where in branches_of(e):
        found |= {(divisor, met | where) for divisor, met in _divided(value)}
    return frozenset(found.union(*(_divided(condition) for _, condition in e.args)))


def unsafe(
    lines: Iterable[tuple[Tensor, Expr]],
    statements: Iterable[tuple[Tensor, Expr]],
    relations: Relations,
) -> tuple[tuple[Risk, ...], tuple[str, ...]]:
    """Unsafe parts of the ``lines`` of the forward and the ``statements`` of the gradients: risks
    to try with numbers, and others in words. No form was found that is safe.
    """
    found: dict[tuple[Expr, bool], list[str]] = {}
    lines, statements = list(lines), list(statements)
    computed = [*lines, *statements]
    for tensor, e in lines:
        for risk in sorted(relations.scales.risks(e), key=str):
            found.setdefault((risk, False), []).append(tensor.name)
    for (tensor, _), e in zip(statements, _written_out(statements, relations), strict=True):
        for divides, risk in sorted(_risked(e, relations), key=str):
            found.setdefault((risk, divides), []).append(tensor.name)
    risks = [
        Risk(in_full(risk, relations.parts), divides, tuple(dict.fromkeys(names)))
        for (risk, divides), names in found.items()
        if divides or not isinstance(risk, Tensor)  # what a value is made of is named there
    ]
    return tuple(risks), (*_lost(relations), *_weighted_by_nothing(computed, relations))


def first_of_equals(statements: Iterable[tuple[Tensor, Expr]]) -> tuple[str, ...]:
    """Formulas of equal largest entries, of which the first has the whole gradient."""
    return tuple(sorted({formula(a.operand) for _, e in statements for a in e.atoms(ArgMax)}))


def _lost(relations: Relations) -> Iterable[str]:
    """The differences of sums that could not be taken about the means."""
    outputs = [t.name for t in relations.definition.outputs]
    for e in relations.cancelling:
        read = [s.name for s in relations.definition.statements if s.expression.has(e)] or outputs
        yield f"{formula(e)} may cancel: then {', '.join(read)} and its gradients lose their digits"


def _weighted_by_nothing(
    computed: Iterable[tuple[Tensor, Expr]], relations: Relations
) -> Iterable[str]:
    """Sums, under a logarithm or divided by, that are 0 where the largest exponential has the
    weight 0: the others underflow beside it.
    """
    found: dict[Expr, list[str]] = {}
    for tensor, e in computed:
        for total in {node.args[0] for node in e.atoms(log)} | divisors(e):
            if isinstance(total, Tensor) and total.name in relations.by_name:
                total = relations.unfolded(total)
            weight = _weight(total, relations.scales)
            if weight is not None:
                found.setdefault(weight, []).append(tensor.name)
    for weight, names in found.items():
        yield (
            f"where {(words := formula(in_full(weight, relations.parts)))} is 0 or tiny beside the "
            f"largest of the exponentials e that it weights, their sum may underflow: then "
            f"{', '.join(dict.fromkeys(names))} may be infinite or NaN, unless it is written as "
            f"({words})*Piecewise((e, Ne({words}, 0)), (0, True))"
        )


def _weight(e: Expr, scales: Scales) -> Expr | None:
    """The weight in a sum that may be 0 at the largest exponential; None without one, or where the
    exponents are chosen by whether it is 0.
    """
    if not isinstance(e, Sum):
        return None
    shifted = [f for f in Mul.make_args(e.operand) if _is_shifted(f, scales)]
    factors = [f for f in Mul.make_args(e.operand) if f not in shifted]
    varies = axes_of(Mul(*factors)) & {*e.axes}
    away = all(scales.values.bounds(f).is_away_from_zero for f in factors)
    if not shifted or not varies or away:
        return None
    weight = Mul(*map(_chosen, factors))
    where = frozenset().union(*(_chosen_where(f, scales) for f in shifted))
    return None if any(_excludes_zero(condition, weight) for condition in where) else weight


def _is_shifted(e: Expr, scales: Scales) -> bool:
    """Whether ``e`` is an exponential of a difference to the largest."""
    exponential = scales.values.definition_of(e) or e
    if not isinstance(exponential, exp):
        return False
    difference = scales.values.definition_of(exponential.exp) or exponential.exp
    read = [scales.definitions.get(name) for name in scales.made if name in _names(difference)]
    return difference.has(Peak) or any(isinstance(d, Peak) for d in read)


def _chosen_where(e: Expr, scales: Scales) -> frozenset:
    """The conditions under which an exponent in ``e`` is not -oo."""
    read = [d for t in tensors_in(e) if (d := scales.values.definition_of(t)) is not None]
    found = [c.args[0][1] for c in e.atoms(Piecewise) if c.args[-1][0] == MINUS_INFINITY]
    return frozenset(found).union(*(_chosen_where(d, scales) for d in read))


def _names(e: Expr) -> frozenset[str]:
    return frozenset(t.name for t in tensors_in(e))


def _chosen(e: Expr) -> Expr:
    """The value that a choice takes or is 0 instead; else ``e``."""
    either = isinstance(e, Piecewise) and [value for value, _ in e.args[1:]] == [0]
    return e.args[0][0] if either else e
