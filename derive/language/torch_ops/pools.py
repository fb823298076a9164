"""Pooling: sums and maxima of windows."""

from __future__ import annotations

from collections.abc import Callable

from sympy import Integer, ceiling, prod

from derive.language.torch_ops.convolutions import ONE, ZERO, each_of, rounded_down
from derive.language.torch_ops.formulas import both, held, where
from derive.language.torch_ops.norms import behind
from derive.language.torch_ops.reducing import mean
from derive.language.torch_ops.table import (
    FLOAT,
    AnyTensor,
    Default,
    Flag,
    Numbers,
    Order,
    Size,
    Sizes,
    Tensor,
    Word,
    op,
)
from derive.language.torch_ops.trees import MINUS_INFINITY

CUT = "windows cut off at the end", "pad first, with F.pad"


def _pooled(a, input, shape, ceil_mode, fill):
    """The windows as last dimensions, and whether the last window is cut off."""
    kernel, steps, pads, holes = shape
    x, count, cut = input, len(kernel), False
    for k, (wide, step, pad, hole) in enumerate(zip(kernel, steps, pads, holes, strict=True)):
        dim = input.rank - count + k
        size = a.count(input, [dim])
        span = (size + 2 * pad - hole * (wide - 1) - 1) / step
        places = rounded_down(span) + 1
        if ceil_mode and places != span + 1:
            if not span.is_number:
                a.refuse(*CUT)
            places = ceiling(span) + 1
            places -= 1 if (places - 1) * step >= size + pad else 0
            cut = True
        x = a.windows(x, dim, (places, wide), (step, hole, -pad), fill)
    return x, cut


def _shape(a, kernel_size, stride, padding, dilation, count):
    kernel = each_of(a, kernel_size, count)
    steps = each_of(a, stride or kernel, count)
    return kernel, steps, each_of(a, padding, count, ZERO), each_of(a, dilation, count, ONE)


def _counts(a, x, input, shape, with_pads):
    """The number of entries that count in each window, with or without padding."""
    kernel, steps, pads, _ = shape
    count, found = len(kernel), None
    for k, (step, pad) in enumerate(zip(steps, pads, strict=True)):
        size = a.count(input, [input.rank - count + k])
        low, high = (-pad, size + pad) if with_pads else (0, size)
        is_one = lambda i, j, s=step, p=pad, low=low, high=high: where(  # noqa: E731
            both(s * i + j - p >= low, s * i + j - p < high), 1, 0
        )
        place = a.position(x, input.rank - count + k), a.position(x, input.rank + k)
        ones = a.each(is_one, *place)
        found = ones if found is None else a.each(lambda m, n: m * n, found, ones)
    return a.sum(found, tuple(range(found.rank - count, found.rank)))


def _averages(a, input, shape, options):
    ceil_mode, with_pads, divisor = options
    kernel, _, pads, _ = shape
    x, cut = _pooled(a, input, shape, ceil_mode, 0)
    total = a.sum(x, tuple(range(input.rank, x.rank)))
    if divisor is None and (cut or (any(pads) and not with_pads)):
        counts = _counts(a, x, input, shape, with_pads)
        return a.each(lambda s, n: s / n, total, counts)
    entries = prod(kernel) if divisor is None else divisor
    return a.each(lambda s: s / entries, total)


def _largest(a, input, shape, ceil_mode):
    reaches = ceil_mode or any(shape[2])
    x, _ = _pooled(a, input, shape, ceil_mode, MINUS_INFINITY if reaches else 0)
    return a.largest(x, tuple(range(input.rank, x.rank)))


def _enter_pools(count: int):
    @op(f"avg_pool{count}d", forms="torch F" if count == 1 else "F", called="pooled", of=FLOAT)
    def _avg_pool(
        a, input: Tensor, kernel_size: Numbers, stride: Numbers | None = None,
        padding: Numbers = ZERO, ceil_mode: Flag = False, count_include_pad: Flag = True,
        divisor_override: Size | None = None,
    ):  # fmt: skip
        shape = _shape(a, kernel_size, stride, padding, ONE, count)
        return _averages(a, input, shape, (ceil_mode, count_include_pad, divisor_override))

    @op(f"max_pool{count}d", forms="torch F", called="pooled", of=FLOAT)
    def _max_pool(
        a, input: Tensor, kernel_size: Numbers, stride: Numbers | None = None,
        padding: Numbers = ZERO, dilation: Numbers = ONE, ceil_mode: Flag = False,
        return_indices: Default = False,
    ):  # fmt: skip
        shape = _shape(a, kernel_size, stride, padding, dilation, count)
        return _largest(a, input, shape, ceil_mode)

    @op(f"lp_pool{count}d", forms="F", called="pooled", of=FLOAT)
    def _lp_pool(a, input: Tensor, norm_type: Order, kernel_size: Numbers,
                 stride: Numbers | None = None, ceil_mode: Flag = False):  # fmt: skip
        """At an all-zero window and an order that is not even, torch sets the gradient to 0."""
        shape = _shape(a, kernel_size, stride, ZERO, ONE, count)
        x, cut = _pooled(a, input, shape, ceil_mode, 0)
        if cut:
            a.refuse(*CUT)
        powers = a.sum(a.each(lambda x: x**norm_type, x), tuple(range(input.rank, x.rank)))
        return a.each(lambda s: held(s, 0) ** (Integer(1) / norm_type), powers)

    @op(f"adaptive_avg_pool{count}d", called="pooled", of=FLOAT,
        forms="torch F" if count == 1 else "F")  # fmt: skip
    def _adaptive_avg_pool(a, input: Tensor, output_size: Sizes):
        return adapted(a, input, output_size, count, mean_between)

    @op(f"adaptive_max_pool{count}d", called="pooled", of=FLOAT,
        forms="torch F" if count == 1 else "F")  # fmt: skip
    def _adaptive_max_pool(a, input: Tensor, output_size: Sizes, return_indices: Default = False):
        return adapted(a, input, output_size, count, _largest_between)


def adapted(a, input, sizes, count: int, between: Callable):
    """Adaptive pooling: part i runs from floor(i*n/m) up to ceil((i + 1)*n/m)."""
    sizes = sizes * count if len(sizes) == 1 else sizes
    x = input
    for k, size in enumerate(sizes):
        dim = input.rank - count + k
        if size is None or size == a.count(input, [dim]):
            continue
        x = between(a, x, dim, size)
    return x


def beside(a, x, dim, size):
    """x with a new dimension of ``size`` positions in front of ``dim``, those positions, and the
    positions along ``dim``.
    """
    return a.unsqueezed(x, dim), behind(a, a.counting(size), x.rank - dim), a.position(x, dim)


def _between(a, x, dim, size, fill):
    """Return (entries of the parts, their dimension, entries in each part)."""
    whole = a.count(x, [dim])
    width = whole / size
    if size == 1:
        return x, dim, whole
    if width.is_Integer:
        return a.windows(x, dim, (size, width), (width, Integer(1), Integer(0))), x.rank, width
    inside = lambda i, j: both(i * whole < size * (j + 1), size * j < (i + 1) * whole)  # noqa: E731
    x, i, j = beside(a, x, dim, size)
    counts = a.sum(a.each(lambda i, j: where(inside(i, j), 1, 0), i, j), 1)
    return a.each(lambda x, i, j: where(inside(i, j), x, fill), x, i, j), dim + 1, counts


def mean_between(a, x, dim, size):
    parts, along, counts = _between(a, x, dim, size, 0)
    return a.each(lambda s, n: s / n, a.sum(parts, along, keepdim=parts.rank == x.rank), counts)


def _largest_between(a, x, dim, size):
    parts, along, _ = _between(a, x, dim, size, MINUS_INFINITY)
    return a.largest(parts, along, keepdim=parts.rank == x.rank)


@op("embedding_bag", forms="F", called="vectors", of=FLOAT, aten={"indices": "input"})
def _embedding_bag(
    a, input: AnyTensor, weight: Tensor, offsets: AnyTensor | None = None,
    max_norm: Default = None, norm_type: Default = 2, scale_grad_by_freq: Default = False,
    mode: Word = "mean", sparse: Flag = False, per_sample_weights: Tensor | None = None,
    include_last_offset: Default = False, padding_idx: Default = None,
):  # fmt: skip
    if input.rank != 2 or offsets is not None:
        a.refuse("bags of their own lengths", "pass a matrix of indices, a row for each bag")
    found = a.selected(weight, 0, input)
    if per_sample_weights is not None:
        faced = a.unsqueezed(per_sample_weights, 2)
        found = a.each(lambda w, x: w * x, faced, found)
    if mode == "max":
        return a.largest(found, 1)
    return a.sum(found, 1) if mode == "sum" else mean(a, found, 1)


for _count in (1, 2, 3):
    _enter_pools(_count)
