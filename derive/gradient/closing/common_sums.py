"""One pass over the data instead of two: the common part of two sums is taken first.

From ``Sum(dy*xhat, N, S)`` and ``Sum(gain*dy*xhat, C, S)`` the inner ``Sum(dy*xhat, S)`` is what
both need of the full size; what is left to sum is smaller. Where it takes that, a product of the
forward is written in its factors: ``Sum(dw*w, K) = g/norm*Sum(dw*v, K)`` for ``w = v*g/norm``.

In: the statements of a closed form. Out: the same statements, in which such sums have a common
part, which ``sharing.py`` names. Only what the forward divides by is divided by.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from sympy import Expr, Mul

from derive.gradient.closing.factoring import factored
from derive.gradient.closing.steps import Pairs, Record
from derive.gradient.values.relations import Relations
from derive.language.nodes import Sum, summed, sums_in
from derive.language.operations import is_contraction
from derive.language.symbols import Tensor, axes_of, tensors_in


def with_common_sums(statements: Pairs, relations: Relations, record: Record) -> Pairs:
    """``statements`` with the sums in them that can be taken from a common one."""
    while (found := _with_a_common_sum(statements, relations)) is not None:
        why = "the sums share a sum, which is computed once"
        statements = [
            (tensor, record.add(tensor, "share", e, factored(e.xreplace(found)), why))
            if e.has(*found)
            else (tensor, e)
            for tensor, e in statements
        ]
    return statements


def _with_a_common_sum(statements: Pairs, relations: Relations) -> dict[Expr, Expr] | None:
    """Two sums in terms of their common sum, or None."""
    sums = dict.fromkeys(
        node
        for _, e in statements
        for node in sums_in(e)
        if not is_contraction(node) and not node.operand.has(Sum)
    )
    for first, second in permutations(sums, 2):
        axes = [axis for axis in first.axes if axis in second.axes]
        if not axes:
            continue
        core, outside = _split(Mul.make_args(first.operand), axes)
        for factors in _written(second.operand, relations):
            other_core, other_outside = _split(factors, axes)
            if core == other_core and core != Mul(*outside):
                inner = Sum.over(core, axes)
                replaced = {
                    first: _sum_of(outside, inner, first),
                    second: _sum_of(other_outside, inner, second),
                }
                if any(old != new for old, new in replaced.items()):
                    return replaced
    return None


def _split(factors, axes) -> tuple[Expr, list[Expr]]:
    """The product of the factors that vary along ``axes``, and that of the others."""
    outside = [f for f in factors if not axes_of(f) & set(axes)]
    return Mul(*(f for f in factors if f not in outside)), outside


def _sum_of(outside: list[Expr], inner: Expr, whole: Sum) -> Expr:
    return summed(Mul(*outside, inner), [axis for axis in whole.axes if axis not in inner.axes])


def _written(product: Expr, relations: Relations) -> Iterator[tuple[Expr, ...]]:
    """The factors of ``product``; then those with a product of the forward in its factors."""
    yield Mul.make_args(product)
    for tensor in tensors_in(product):
        known = relations.by_name.get(tensor.name)
        if tensor not in Mul.make_args(product) or known is None:
            continue
        definition = relations.unfolded(tensor)
        powers = definition.as_powers_dict()
        divisors = {base for base, power in powers.items() if power.is_negative}
        plain = all(isinstance(base, Tensor) or base.is_number for base in powers)
        if definition.is_Mul and plain and divisors <= relations.divisors:
            yield Mul.make_args(product.xreplace({tensor: definition}))
