"""Entrywise choices: where, maximum, minimum, clamp."""

from __future__ import annotations

from derive.language.torch_ops.formulas import held, where
from derive.language.torch_ops.table import SAME, Dim, Flag, Number, Tensor, op
from derive.language.torch_ops.trees import value_of


def larger(x, y):
    return where(x > y, x, y)


def smaller(x, y):
    return where(x < y, x, y)


@op("maximum", called="larger", gives=SAME)
def maximum(a, input: Tensor, other: Tensor):
    return a.each(larger, input, other)


@op("minimum", called="smaller", gives=SAME)
def minimum(a, input: Tensor, other: Tensor):
    return a.each(smaller, input, other)


@op("fmax", called="larger", gives=SAME)
def _fmax(a, input: Tensor, other: Tensor):
    """On a tie, the first one gets the gradient."""
    return a.each(lambda x, y: where(x >= y, x, y), input, other)


@op("fmin", called="smaller", gives=SAME)
def _fmin(a, input: Tensor, other: Tensor):
    return a.each(lambda x, y: where(x <= y, x, y), input, other)


def between(x, low, high):
    """Clamp; the upper bound wins if the bounds are in the wrong order."""
    bounds = [value_of(b) for b in (low, high)]
    if None in bounds or not all(b.is_number for b in bounds):
        return where(low > high, high, held(x, low, high))
    return high if bounds[0] > bounds[1] else held(x, low, high)


@op("clamp", "clip", called="held", gives=SAME)
def clamp(a, input: Tensor, min: Number | None = None, max: Number | None = None):
    if min is None or max is None:
        x = input if min is None else _above(a, input, min)
        return x if max is None else _below(a, x, max)
    return a.each(between, input, min, max)


@op("clamp_min", called="held", gives=SAME)
def _above(a, input: Tensor, min: Number):
    return a.each(lambda x, m: held(x, m, None), input, min)


@op("clamp_max", called="held", gives=SAME)
def _below(a, input: Tensor, max: Number):
    return a.each(lambda x, m: held(x, None, m), input, max)


@op("masked_fill", gives=SAME)
def _masked_fill(a, input: Tensor, mask: Tensor, value: Number):
    return a.chosen(mask, value, input)


@op("Tensor_where", forms="method", gives=SAME)
def _of_tensor(a, input: Tensor, condition: Tensor, other: Number):
    return a.chosen(condition, input, other)


@op("where", forms="torch", gives=SAME)
def _where(a, condition: Tensor, input: Number, other: Number):
    return a.chosen(condition, input, other)


@op("aminmax", called="bounds", gives=SAME)
def _aminmax(a, input: Tensor, *, dim: Dim | None = None, keepdim: Flag = False):
    low = a.largest(a.each(lambda x: -x, input), dim, keepdim)
    return a.each(lambda m: -m, low), a.largest(input, dim, keepdim)
