"""Creation of tensors: zeros, ones, arange and the like."""

from __future__ import annotations

from sympy import Integer

from derive.language.torch_ops.shaping import REST
from derive.language.torch_ops.table import SAME, Number, Size, Sizes, Tensor, Tensors, Word, op


@op("zeros", forms="torch", gives=SAME, makes=True)
def _zeros(a, *size: Sizes):
    return a.filled(size, 0)


@op("ones", forms="torch", gives=SAME, makes=True)
def _ones(a, *size: Sizes):
    return a.filled(size, 1)


@op("full", forms="torch", gives=SAME, makes=True)
def _full(a, size: Sizes, fill_value: Number):
    return a.filled(size, fill_value)


@op("zeros_like", gives=SAME, makes=True)
def _zeros_like(a, input: Tensor):
    return a.like(input, 0)


@op("ones_like", gives=SAME, makes=True)
def _ones_like(a, input: Tensor):
    return a.like(input, 1)


@op("full_like", gives=SAME, makes=True)
def _full_like(a, input: Tensor, fill_value: Number):
    return a.like(input, fill_value)


@op("new_zeros", forms="method", gives=SAME, makes=True)
def _new_zeros(a, input: Tensor, *size: Sizes):
    return a.filled(size, 0)


@op("new_ones", forms="method", gives=SAME, makes=True)
def _new_ones(a, input: Tensor, *size: Sizes):
    return a.filled(size, 1)


@op("new_full", forms="method", gives=SAME, makes=True)
def _new_full(a, input: Tensor, size: Sizes, fill_value: Number):
    return a.filled(size, fill_value)


@op("eye", forms="torch", gives=SAME, makes=True)
def _eye(a, n: Size, m: Size | None = None):
    return a.identity(a.filled([n, n if m is None else m], 0), 0, 1)


@op("arange", forms="torch", called="positions", gives=SAME, makes=True)
def _arange(a, start: Size = 0, end: Size | None = None, step: Size = 1):
    """A single argument is the end; in ATen it is passed by name."""
    start, end = (Integer(0), start) if end is None else (start, end)
    if step == 0:
        a.refuse("arange with step 0", "give it another step")
    count = end - start if step == 1 else a.divided_up(end - start, step)
    places = a.counting(count)
    return places if start == 0 and step == 1 else a.each(lambda k: start + step * k, places)


@op("linspace", forms="torch", called="positions", makes=True)
def _linspace(a, start: Number, end: Number, steps: Size):
    if steps == 1:
        return a.filled([steps], start)
    return a.each(lambda k, s, e: s + k * ((e - s) / (steps - 1)), a.counting(steps), start, end)


@op("logspace", forms="torch", called="positions", makes=True)
def _logspace(a, start: Number, end: Number, steps: Size, base: Number = 10):
    return a.each(lambda b, k: b**k, base, _linspace(a, start, end, steps))


@op("meshgrid", forms="torch", gives=SAME)
def _meshgrid(a, *tensors: Tensors, indexing: Word = "ij"):
    values = [a.reshaped(x, [REST]) for x in tensors]
    order = list(range(len(values)))
    if indexing == "xy" and len(values) > 1:
        order[:2] = 1, 0
    sizes = [a.shape(values[k])[0] for k in order]
    found = []
    for k, x in enumerate(values):
        for _ in range(len(values) - 1 - order.index(k)):
            x = a.unsqueezed(x, x.rank)
        found.append(a.expanded(x, sizes))
    return tuple(found)
