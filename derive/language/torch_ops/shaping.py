"""Permute, insert, merge, split and repeat dimensions."""

from __future__ import annotations

from sympy import Integer, Mul

from derive.language.torch_ops.table import (
    SAME,
    Dim,
    Dims,
    NewDim,
    Size,
    Sizes,
    Tensor,
    Tensors,
    op,
)

REST = Integer(-1)  # inferred from the other sizes; in expand, unchanged


@op("permute", gives=SAME)
def _permute(a, input: Tensor, *dims: Dims):
    return a.permuted(input, dims)


@op("transpose", "swapaxes", "swapdims", gives=SAME, aten={"axis0": "dim0", "axis1": "dim1"})
def _transpose(a, input: Tensor, dim0: Dim, dim1: Dim):
    places = list(range(input.rank))
    places[dim0], places[dim1] = places[dim1], places[dim0]
    return a.permuted(input, places)


@op("t", gives=SAME)
def _t(a, input: Tensor):
    if input.rank > 2:
        a.refuse("t of more than two dimensions", "write .mT, or .transpose(0, 1)")
    return a.permuted(input, range(input.rank)[::-1])


@op("movedim", "moveaxis", gives=SAME)
def _movedim(a, input: Tensor, source: Dims, destination: Dims):
    moved = dict(zip(destination, source, strict=True))
    rest = iter(i for i in range(input.rank) if i not in moved.values())
    return a.permuted(input, [moved[i] if i in moved else next(rest) for i in range(input.rank)])


@op("unsqueeze", gives=SAME)
def _unsqueeze(a, input: Tensor, dim: NewDim):
    return a.unsqueezed(input, dim)


@op("squeeze", gives=SAME)
def _squeeze(a, input: Tensor, dim: Dims = None):
    return a.squeezed(input, range(input.rank) if dim is None else dim)


def at_least(a, x, rank: int):
    """Add dimensions of size 1 in front; for rank 3 the last one goes behind, as in numpy."""
    if x.rank == 0 and rank:
        return at_least(a, a.unsqueezed(x, 0), rank)
    if x.rank < min(rank, 2):
        x = a.unsqueezed(x, 0)
    return a.unsqueezed(x, 2) if x.rank < rank else x


def _atleast(rank: int):
    @op(f"atleast_{rank}d", forms="torch", gives=SAME, aten={"tensors": "input"})
    def of(a, input: Tensor):
        return at_least(a, input, rank)


for _rank in (1, 2, 3):
    _atleast(_rank)


# Reshapes


@op("view", "reshape", "_unsafe_view", gives=SAME, aten={"size": "shape"})
def _view(a, input: Tensor, *shape: Sizes):
    return a.reshaped(input, shape)


@op("view_as", "reshape_as", forms="method", gives=SAME)
def _view_as(a, input: Tensor, other: Tensor):
    return a.reshaped(input, a.shape(other))


@op("flatten", gives=SAME)
def _flatten(a, input: Tensor, start_dim: Dim = 0, end_dim: Dim = -1):
    shape = a.shape(input)
    return a.reshaped(input, [*shape[:start_dim], REST, *shape[end_dim + 1 :]])


@op("ravel", gives=SAME)
def _ravel(a, input: Tensor):
    return a.reshaped(input, [REST])


@op("unflatten", gives=SAME)
def _unflatten(a, input: Tensor, dim: Dim, sizes: Sizes):
    shape = a.shape(input)
    if REST in sizes:  # before the sizes of the other dimensions are resolved
        rest = a.divided(shape[dim], Mul(*(size for size in sizes if size != REST)))
        sizes = [rest if size == REST else size for size in sizes]
    return a.reshaped(input, [*shape[:dim], *sizes, *shape[dim + 1 :]])


# Repetition


@op("expand", "broadcast_to", gives=SAME)
def _expand(a, input: Tensor, *size: Sizes):
    return a.expanded(input, size)


@op("expand_as", forms="method", gives=SAME)
def _expand_as(a, input: Tensor, other: Tensor):
    return a.expanded(input, a.shape(other))


def together(a, shapes):
    """The broadcast shape."""
    rank = max(map(len, shapes))
    columns = zip(*([Integer(1)] * (rank - len(shape)) + list(shape) for shape in shapes))  # noqa: B905
    return [next((size for size in column if size != 1), column[0]) for column in columns]


@op("broadcast_tensors", forms="torch", gives=SAME)
def _broadcast_tensors(a, *tensors: Tensors):
    shape = together(a, [a.shape(x) for x in tensors])
    return tuple(a.expanded(x, shape) for x in tensors)


@op("repeat", forms="method", gives=SAME)
def _repeat(a, input: Tensor, *repeats: Sizes):
    """Insert a dimension before each repeated one, and merge the two."""
    x = input
    for _ in range(len(repeats) - x.rank):
        x = a.unsqueezed(x, 0)
    if len(repeats) < x.rank:
        a.refuse("repeat with fewer numbers than dimensions", "write a number for each dimension")
    for dim, times in enumerate(repeats):
        x = repeated(a, x, dim, times, dim)
    return a.copied(x)


@op("tile", gives=SAME)
def _tile(a, input: Tensor, *dims: Sizes):
    return _repeat(a, input, *[Integer(1)] * (input.rank - len(dims)), *dims)


@op("repeat_interleave", gives=SAME)
def _repeat_interleave(a, input: Tensor, repeats: Size, dim: Dim | None = None, *,
                       output_size: Size | None = None):  # fmt: skip
    x = a.reshaped(input, [REST]) if dim is None else input
    dim = dim or 0
    return a.copied(repeated(a, x, dim, repeats, dim + 1))


def repeated(a, x, dim: int, times, place: int):
    """Repeat the entries along a dimension: the whole sequence, or each entry."""
    if times == 1:
        return x
    shape = a.shape(x)
    sizes = [REST] * (x.rank + 1)
    sizes[place] = times
    whole = a.expanded(a.unsqueezed(x, place), sizes)
    return a.reshaped(whole, [*shape[:dim], times * shape[dim], *shape[dim + 1 :]])
