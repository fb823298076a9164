"""Convolutions: windows times weights, summed over the channels and what is in a window."""

from __future__ import annotations

import sympy

from codegen.importing.operations.along import each, size_of, windows
from codegen.importing.operations.table import rule
from codegen.importing.values import Refused, Value
from derive.torch_ops import trees

AS_PRODUCT = "write it as a product of its own: each entry of a window at its place"


def convolved(r, x, weight, bias, how: tuple, groups: int) -> Value:
    """Windows times weights, summed over the channels and what is in a window."""
    strides, paddings, dilations = how
    count = weight.rank - 2
    x, weight = r.as_number(x), r.as_number(weight)
    single = x.rank == count + 1
    x = x.along(((), *x.dims)) if single else x
    for k in range(count):
        weight = r.plain(weight, 2 + k)
        (inner,) = weight.dims[2 + k] or ("",)
        wide = size_of(r, weight, 2 + k)
        if inner in x.axes or not inner:
            other = r.sizes.axis_of(wide, {*x.axes, *weight.axes, *r.windows})
            weight = weight.of(trees.renamed(weight.tree, {inner: other}))
            inner, weight = other, weight.with_dim(2 + k, (other,))
        x = windows(r, x, 2 + k, (inner, wide, strides[k], paddings[k], dilations[k]))
    x, weight = _by_groups(r, x, weight, groups, count)
    whole = r.pointwise(trees.product, x, weight)
    places = list(range(4, 4 + count))
    summed = r.sum(whole, [3, *(p + count for p in places)])
    batch, group, own, *ends = summed.dims
    y = summed.along((batch, (*group, *own), *ends))
    y = y.without(0) if single else y
    if bias is None:
        return y
    aside = bias.along((*bias.dims, *((),) * count))
    return r.sum_like(trees.sum_of, r.single(y, y.rank - count - 1), aside)


def _by_groups(r, x: Value, weight: Value, groups: int, count: int) -> tuple[Value, Value]:
    """(batch, group, (), channels, ends, inside), and the weights beside it."""
    batch, channels, *ends = x.dims[: 2 + count]
    own, into, *inside = weight.dims
    if groups == 1:
        sides = ((), channels), ((), own)
    else:
        number = sympy.sympify(groups, strict=True)
        pairs = []
        for value, i in ((x, 1), (weight, 0)):
            (axis,) = r.single(value, i).dims[i]
            size = sympy.simplify(size_of(r, value, i) / number)
            first, rest = r.split(axis, number, {*x.axes, *weight.axes} - {axis})
            pairs.append(((first,), (rest,)) if r.sizes.hint(size) != 1 else ((axis,), ()))
            tree = r.unflattened(value, axis, (first, rest)) if pairs[-1][1] else value.tree
            x, weight = (x.of(tree), weight) if value is x else (x, weight.of(tree))
        sides = tuple(pairs)
    (group, part), (other, outside) = sides
    first = (batch, group, (), part, *ends, *x.dims[2 + count :])
    second = ((), other, outside, into, *((),) * count, *inside)
    return x.along(first), weight.along(second)


def _convolution(count: int):
    def of(r, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        """Long: torch's arguments."""
        dilations = each(dilation, count, 1)
        wide = [size_of(r, weight, 2 + k) for k in range(count)]
        pads = {"valid": [0] * count}.get(padding) if isinstance(padding, str) else None
        if padding == "same":
            pads = [d * (w - 1) / 2 for d, w in zip(dilations, wide, strict=True)]
            if not all(sympy.sympify(p, strict=True).is_Integer for p in pads):
                raise Refused("padding that depends on the size of the window", "write padding=1")
        how = (each(stride, count, 1), pads or each(padding, count), dilations)
        return convolved(r, x, weight, bias, how, groups)

    return of


for _count in (1, 2, 3):
    rule(f"conv{_count}d", called="convolved")(_convolution(_count))


@rule("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _transposed(r, **given):
    raise Refused("a transposed convolution", AS_PRODUCT)
