"""Dimensions moved, added and joined; tensors that are made of nothing."""

from __future__ import annotations

from sympy import Integer, S

from derive.torch_ops.formulas import equal, where
from derive.torch_ops.table import SAME, Default, Dim, Dims, NewDim, Number, Size, Sizes, Tensor, op


@op("permute", gives=SAME)
def _permute(a, input: Tensor, *dims: Dims):
    return a.permuted(input, dims)


@op("transpose", "swapaxes", "swapdims", gives=SAME, aten={"axis0": "dim0", "axis1": "dim1"})
def _transpose(a, input: Tensor, dim0: Dim, dim1: Dim):
    places = list(range(input.rank))
    places[dim0], places[dim1] = places[dim1], places[dim0]
    return a.permuted(input, places)


@op("movedim", "moveaxis", gives=SAME)
def _movedim(a, input: Tensor, source: Dims, destination: Dims):
    moved = dict(zip(destination, source, strict=True))
    rest = iter(i for i in range(input.rank) if i not in moved.values())
    return a.permuted(input, [moved[i] if i in moved else next(rest) for i in range(input.rank)])


@op("unsqueeze", gives=SAME)
def _unsqueeze(a, input: Tensor, dim: NewDim):
    return a.unsqueezed(input, dim)


@op("narrow", gives=SAME)
def _narrow(a, input: Tensor, dim: Dim, start: Size, length: Size):
    return a.part(input, dim, start, start + length)


@op("select", gives=SAME)
def _select(a, input: Tensor, dim: Dim, index: Size):
    return a.entry(input, dim, index)


@op("gather", called="picked", gives=SAME)
def _gather(a, input: Tensor, dim: Dim, index: Tensor):
    return a.picked(input, dim, index)


@op("index_select", called="picked", gives=SAME)
def _index_select(a, input: Tensor, dim: Dim, index: Tensor):
    return a.selected(input, dim, index)


@op("embedding", forms="F", called="vectors", gives=SAME, aten={"indices": "input"})
def _embedding(
    a, input: Tensor, weight: Tensor, padding_idx: Default = None, max_norm: Default = None,
    norm_type: Default = 2.0, scale_grad_by_freq: Default = False, sparse: Default = False,
):  # fmt: skip
    return a.selected(weight, 0, input)


@op("tril", gives=SAME)
def _tril(a, input: Tensor, diagonal: Size = S.Zero):
    return a.each(
        lambda x, i, j: where(j <= i + diagonal, x, 0),
        input,
        *(a.position(input, input.rank - k) for k in (2, 1)),
    )


@op("triu", gives=SAME)
def _triu(a, input: Tensor, diagonal: Size = S.Zero):
    return a.each(
        lambda x, i, j: where(j >= i + diagonal, x, 0),
        input,
        *(a.position(input, input.rank - k) for k in (2, 1)),
    )


@op("trace", gives=SAME)
def _trace(a, input: Tensor):
    places = a.position(input, 0), a.position(input, 1)
    return a.sum(a.each(lambda x, i, j: where(equal(i, j), x, 0), input, *places))


@op("zeros_like", gives=SAME)
def _zeros_like(a, input: Tensor):
    return a.like(input, 0)


@op("ones_like", gives=SAME)
def _ones_like(a, input: Tensor):
    return a.like(input, 1)


@op("full_like", gives=SAME)
def _full_like(a, input: Tensor, fill_value: Number):
    return a.like(input, fill_value)


@op("new_zeros", forms="method", gives=SAME)
def _new_zeros(a, input: Tensor, *size: Sizes):
    return a.filled(size, 0)


@op("new_ones", forms="method", gives=SAME)
def _new_ones(a, input: Tensor, *size: Sizes):
    return a.filled(size, 1)


@op("new_full", forms="method", gives=SAME)
def _new_full(a, input: Tensor, size: Sizes, fill_value: Number):
    return a.filled(size, fill_value)


@op("cross", "linalg_cross", called="product")
def _cross(a, input: Tensor, other: Tensor, dim: Dim = -1):
    (x, y, z), (u, v, w) = ([a.entry(t, dim, Integer(k)) for k in range(3)] for t in (input, other))
    minor = lambda p, q, r, s: p * q - r * s  # noqa: E731
    parts = [a.each(minor, y, w, z, v), a.each(minor, z, u, x, w), a.each(minor, x, v, y, u)]
    return a.stacked(parts, dim)
