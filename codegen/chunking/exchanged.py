"""Exchanges two sums, where that saves a pass: with ``y = sum over S of p*v``,

    sum over S of p * (sum over F of g*v)  =  sum over F of g*y

so that a sum of a product with an adjoint, which would run over the chunks of S, is one of the
output and its upstream gradient, which are there before. It holds where g does not lie along S,
nor p along F; factors that lie along neither stay outside.

It never needs a pass more, so no cost is asked: y is known one pass behind p and v, as every sum
over S is, and the sum on the left is known one pass behind p, v and g. Which of the two has fewer
operations depends on the sizes of S and F alone, which nobody knows; so the closed form, which is
for whole arrays, does not exchange them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from codegen.program.arrays import Arrange, Contract, Reduce
from codegen.program.values import Load, Times, Value
from codegen.sharding.values import in_place
from derive.language.notation.layout import Dim, Layout


def exchanged(
    value: Reduce, defined: Mapping[str, Value], chunked: Collection[str]
) -> Value | None:
    """The same sum over other axes; None where no value that is ``defined`` permits it."""
    along = {value.operand.dims[i].axis.name for i in value.along}
    product = value.operand
    if not along & {*chunked} or not isinstance(product, Times):
        return None
    if any(divides for _, divides in product.factors):
        return None
    factors = [factor for factor, _ in product.factors]
    for inner in factors:
        summed = _told(inner, defined)
        if not isinstance(summed, Contract) or inner.dims != product.dims:
            continue
        rest = [factor for factor in factors if factor is not inner]
        for other in rest:
            outside = [factor for factor in rest if factor is not other]
            if along & {name for f in outside for name in _axes(f.dims)}:
                continue
            found = _of_output(summed, other, along, defined)
            if found is not None:
                return _placed(found, outside, value)
    return None


def _of_output(
    inner: Contract, other: Value, along: set[str], defined: Mapping[str, Value]
) -> Value | None:
    """The sum of ``inner`` times ``other``, by the name of a sum of ``other`` along the axes."""
    for g, v in ((inner.left, inner.right), (inner.right, inner.left)):
        if along & _axes(g.dims) or {*inner.summed} & _axes(other.dims):
            continue
        for name, known in defined.items():
            if not isinstance(known, Contract) or {*known.summed} != along:
                continue
            pair = [_core(known.left), _core(known.right)]
            met = [_core(other), _core(v)]
            if None not in met and met in (pair, pair[::-1]):
                return _product_summed(g, Load(name, dims=known.dims), inner.summed)
    return None


def _product_summed(left: Value, right: Value, summed: Collection[str]) -> Value | None:
    turned = in_place(right, left.dims) if left.dims != right.dims else right
    if turned is None or any(d.one for d in left.dims):
        return None
    product = Times(((left, False), (turned, False)), dims=left.dims)
    along = tuple(i for i, d in enumerate(left.dims) if d.axis.name in summed)
    kept = tuple(d for i, d in enumerate(left.dims) if i not in along)
    return Reduce("sum", product, along, False, dims=kept)


def _placed(found: Value, outside: list[Value], value: Reduce) -> Value | None:
    """The sum in the dimensions of ``value``, times the factors outside of it."""
    placed = found if found.dims == value.dims else in_place(found, value.dims)
    if placed is None or not outside:
        return placed
    if any(_axes(f.dims) - _axes(value.dims) or len(f.dims) > len(value.dims) for f in outside):
        return None
    if not value.keep and any(f.dims for f in outside):
        return None
    return Times(tuple((f, False) for f in (placed, *outside)), dims=value.dims)


def _told(value: Value, defined: Mapping[str, Value]) -> Value | None:
    return defined.get(value.name) if isinstance(value, Load) else value


def _core(value: Value) -> tuple[str, frozenset[str]] | None:
    """The name of a value and its axes, in whatever order; None for others. Along renamed axes it
    is another value.
    """
    while isinstance(value, Arrange):
        value = value.operand
    return (value.name, frozenset(_axes(value.dims))) if isinstance(value, Load) else None


def _axes(dims: Layout | tuple[Dim, ...]) -> set[str]:
    return {d.axis.name for d in dims if not d.one}
