"""A sum of shares, ``sum of (a / sum(a)) * v``, is ``(sum of a*v) / sum(a)``: both sums may then
travel together. It is taken for shares alone: what is added up is then at most the largest ``v``
times the sum that is formed anyway, so nothing overflows that did not before.
"""

from __future__ import annotations

from collections.abc import Mapping

from codegen.program.arrays import Arrange, Contract, Reduce
from codegen.program.parts import values_in
from codegen.program.values import Load, Times, Value
from derive.notation.layout import Dim, Layout


def divided_later(product: Contract, defined: Mapping[str, Value]) -> Value | None:
    """The product of ``a`` and ``v``, divided by the sum; None where neither operand, ``defined``
    by name, is a share along all that is summed.
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
        divisor = _in_place(whole, product.dims)
        if divisor is not None:
            return Times(((later, False), (divisor, True)), dims=product.dims)
    return None


def _is_sum_of(whole: Value, part: Value, defined: Mapping[str, Value]) -> bool:
    found = [whole, *values_in(whole)]
    found += [defined[v.name] for v in found if isinstance(v, Load) and v.name in defined]
    return any(isinstance(v, Reduce) and v.kind == "sum" and v.operand == part for v in found)


def _in_place(value: Value, dims: Layout) -> Value | None:
    """``value`` with the dimensions of the result, of size 1 where it does not vary."""
    places = {dim.axis: i for i, dim in enumerate(value.dims) if not dim.one}
    order = tuple(places.get(dim.axis) for dim in dims)
    if {i for i in order if i is not None} != {*places.values()}:
        return None
    whole = tuple(Dim(d.axis, i is None) for d, i in zip(dims, order, strict=True))
    return Arrange(value, order, dims=whole)
