"""Postpones division: a sum of shares, ``sum of (a / sum(a)) * v``, is ``(sum of a*v) / sum(a)``;
both sums may then travel together. It applies to shares alone: the terms of the sum are then at
most the largest ``v`` times the sum that is formed anyway, so there is no new overflow.

A sum of their logarithms, ``sum of f*(a - log(sum of exp(a)))`` where the largest ``a`` is 0, is
``sum of f*a - log(sum of exp(a))*sum of f``, for the same reason. It applies to these alone: ``a``
is at most 0 and the logarithm at least 0, so the two terms have one sign and nothing cancels, as it
would where a mean is subtracted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from codegen.program.arrays import Arrange, Contract, Reduce
from codegen.program.parts import values_in
from codegen.program.values import Apply, Load, Plus, SizeOf, Times, Value
from codegen.sharding.values import MAXIMA, in_place
from derive.language.notation.layout import Dim, Layout


def divided_later(product: Contract, defined: Mapping[str, Value]) -> Value | None:
    """The product of ``a`` and ``v``, divided by the sum; None where neither operand, ``defined``
    by name, is a share along all summed dimensions.
    """
    for operand in (product.left, product.right):
        share = defined.get(operand.name) if isinstance(operand, Load) else None
        if share is None or share.dims != operand.dims or not isinstance(share, Times):
            continue
        if [divides for _, divides in share.factors] != [False, True]:
            continue
        part, whole = (factor for factor, _ in share.factors)
        along = {dim.axis.name for dim in whole.dims if not dim.one}
        if part.dims != share.dims or along & {*product.summed}:
            continue
        if not _is_sum_of(whole, part, defined):
            continue
        left = part if operand is product.left else product.left
        right = part if operand is product.right else product.right
        later = Contract(left, right, product.summed, dims=product.dims)
        divisor = in_place(whole, product.dims)
        if divisor is not None:
            return Times(((later, False), (divisor, True)), dims=product.dims)
    return None


def of_logarithms(value: Reduce, defined: Mapping[str, Value]) -> Value | None:
    """The sum with the logarithm moved out of it; None where no factor, ``defined`` by name, is the
    logarithm of shares along all summed dimensions.
    """
    product = value.operand
    factors = product.factors if isinstance(product, Times) else ((product, False),)
    if value.kind != "sum" or any(divides for _, divides in factors):
        return None
    for i, (factor, _) in enumerate(factors):
        found = _logarithm_of_shares(factor, value, defined)
        if found is not None:
            part, whole = found
            rest = [other for other, _ in (*factors[:i], *factors[i + 1 :])]
            outside = in_place(whole, value.dims)
            if outside is None:
                continue
            first = replace(value, operand=_times([*rest, part], product.dims))
            often = Times(tuple((f, False) for f in (outside, *_summed(rest, value))))
            terms = ((first, False), (replace(often, dims=value.dims), True))
            return Plus(terms, dims=value.dims)
    return None


def _summed(factors: Sequence[Value], value: Reduce) -> Iterator[Value]:
    """Factors of the sum of a product: factors that do not vary along the sum are multiplied by its
    number of entries.
    """
    dims = _met([factor.dims for factor in factors])
    before = len(value.operand.dims) - len(dims)
    along = tuple(i - before for i in value.along if i >= before)
    if factors:
        kept = tuple(
            Dim(d.axis, d.one or i in along)
            for i, d in enumerate(dims)
            if value.keep or i not in along
        )
        product = _times(factors, dims)
        yield Reduce("sum", product, along, value.keep, dims=kept) if along else product
    for i in value.along:
        if i < before or dims[i - before].one:
            yield SizeOf(value.operand.dims[i].axis.name)


def _logarithm_of_shares(
    factor: Value, value: Reduce, defined: Mapping[str, Value]
) -> tuple[Value, Value] | None:
    """A value that is at most 0, and the logarithm that is subtracted from it; None for others."""
    found = _difference(factor, defined)
    if found is None or factor.dims != value.operand.dims:
        return None
    part, whole = found
    shifted = _difference(part, defined)
    if shifted is None or not (isinstance(whole, Apply) and whole.function == "log"):
        return None
    total = _told(whole.operand, defined)
    top = _told(shifted[1], defined)
    if not (isinstance(total, Reduce) and isinstance(top, Reduce) and total.kind == "sum"):
        return None
    exp = _told(total.operand, defined)
    of_part = isinstance(exp, Apply) and exp.function == "exp" and exp.operand == part
    at_most_0 = top.kind in MAXIMA and top.operand == shifted[0] and top.along == total.along
    return found if of_part and at_most_0 and {*value.along} <= {*total.along} else None


def _difference(value: Value, defined: Mapping[str, Value]) -> tuple[Value, Value] | None:
    """The two terms of a value or name that is a pointwise difference."""
    found = defined.get(value.name) if isinstance(value, Load) else None
    if not isinstance(found, Plus) or [minus for _, minus in found.terms] != [False, True]:
        return None
    (first, _), (second, _) = found.terms
    return (first, second) if first.dims == value.dims else None


def _told(value: Value, defined: Mapping[str, Value]) -> Value:
    """The definition of a name, ignoring the order of its dimensions."""
    while isinstance(value, Arrange) or (isinstance(value, Load) and value.name in defined):
        value = value.operand if isinstance(value, Arrange) else defined[value.name]
    return value


def _times(factors: Sequence[Value], dims: Layout) -> Value:
    if len(factors) == 1:
        return factors[0]
    return Times(tuple((factor, False) for factor in factors), dims=dims)


def _met(layouts: Sequence[Layout]) -> Layout:
    """The dimensions of a pointwise result."""
    longest = max(map(len, layouts), default=0)
    found = []
    for back in range(longest, 0, -1):
        here = [dims[-back] for dims in layouts if len(dims) >= back]
        found.append(next((dim for dim in here if not dim.one), here[0]))
    return tuple(found)


def _is_sum_of(whole: Value, part: Value, defined: Mapping[str, Value]) -> bool:
    found = [whole, *values_in(whole)]
    found += [defined[v.name] for v in found if isinstance(v, Load) and v.name in defined]
    return any(isinstance(v, Reduce) and v.kind == "sum" and v.operand == part for v in found)
