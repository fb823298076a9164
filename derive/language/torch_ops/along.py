"""Move entries along dimensions: flips, shifts, diagonals, windows."""

from __future__ import annotations

from sympy import Integer, Mul, S, floor

from derive.language.torch_ops.formulas import where
from derive.language.torch_ops.shaping import REST
from derive.language.torch_ops.table import SAME, Dim, Dims, NewDim, Size, Sizes, Tensor, op


@op("flip", called="reversed", gives=SAME)
def _flip(a, input: Tensor, *dims: Dims):
    x = input
    for dim in dims:
        x = a.flipped(x, dim)
    return x


@op("fliplr", called="reversed", gives=SAME)
def _fliplr(a, input: Tensor):
    return a.flipped(input, 1)


@op("flipud", called="reversed", gives=SAME)
def _flipud(a, input: Tensor):
    return a.flipped(input, 0)


@op("rot90", gives=SAME)
def _rot90(a, input: Tensor, k: Size = 1, dims: Dims = (0, 1)):
    one, other = dims
    x, turns = input, int(k) % 4
    if turns in (1, 2):
        x = a.flipped(x, other)
    if turns in (2, 3):
        x = a.flipped(x, one)
    if turns == 2:
        return x
    places = list(range(x.rank))
    places[one], places[other] = other, one
    return a.permuted(x, places)


@op("roll", called="rolled", gives=SAME)
def _roll(a, input: Tensor, shifts: Sizes, dims: Dims = None):
    """Without dims, roll the flattened tensor."""
    if dims is None and input.rank != 1:
        return a.reshaped(_roll(a, a.reshaped(input, [REST]), shifts, (0,)), a.shape(input))
    x, dims = input, (0,) if dims is None else dims
    if len(shifts) != len(dims):
        a.refuse("roll: a shift for each dimension", "write torch.roll(x, 1, 0)")
    for by, dim in zip(shifts, dims, strict=True):
        x = _rolled(a, a.let("x", x), dim, by) if by != 0 else x
    return x


def _rolled(a, x, dim: int, by):
    """Shift cyclically along one dimension."""
    size, back = a.shape(x)[dim], by.could_extract_minus_sign()
    a.need(size - (-by if back else by), 0)
    offsets = -by, (-size if back else size) - by
    return a.each(lambda p, q: p + q, *(a.read(x, dim, size, 1, offset) for offset in offsets))


# Diagonals


def main_diagonal(a, x, one: int, other: int):
    """The main diagonal, as a new last dimension."""
    shape = a.shape(x)
    if not a.same(shape[one], shape[other]):
        a.refuse(
            f"the diagonal of dimensions of the sizes {shape[one]} and {shape[other]}",
            "take the part that is square, or name axes of one size alike",
        )
    product = a.each(lambda x, i: i * x, x, a.identity(x, one, other))
    found = a.sum(product, other)
    place = one - (other < one)
    rest = [i for i in range(found.rank) if i != place]
    return a.permuted(found, [*rest, place])


@op("diagonal", gives=SAME)
def _diagonal(a, input: Tensor, offset: Size = 0, dim1: Dim = 0, dim2: Dim = 1):
    x = input
    for dim, above in ((dim1, -offset), (dim2, offset)):
        size = a.shape(x)[dim]
        if offset != 0:
            a.need(size - abs(offset), 1)
            x = a.read(x, dim, size - abs(offset), 1, max(above, S.Zero))
    return main_diagonal(a, x, dim1, dim2)


@op("diag_embed", gives=SAME)
def _diag_embed(a, input: Tensor, offset: Size = 0, dim1: NewDim = -2, dim2: NewDim = -1):
    rank, size = input.rank, a.shape(input)[-1]
    x = a.on_diagonal(input)
    if offset != 0:
        for dim, before in ((rank - 1, -offset), (rank, offset)):
            x = a.read(x, dim, size + abs(offset), 1, -max(before, S.Zero))
    rest = iter(range(rank - 1))
    places = {dim1: rank - 1, dim2: rank}
    return a.permuted(x, [places[i] if i in places else next(rest) for i in range(rank + 1)])


@op("diag", gives=SAME)
def _diag(a, input: Tensor, diagonal: Size = 0):
    if input.rank not in (1, 2):
        a.refuse(f"diag of {input.rank} dimensions", "write .diag_embed() or .diagonal()")
    if input.rank == 2:
        return _diagonal(a, input, diagonal)
    return _diag_embed(a, input, diagonal, 0, 1)


@op("diagflat", gives=SAME)
def _diagflat(a, input: Tensor, offset: Size = 0):
    return _diag_embed(a, a.reshaped(input, [REST]), offset, 0, 1)


@op("diagonal_scatter", gives=SAME)
def _diagonal_scatter(a, input: Tensor, src: Tensor, offset: Size = 0, dim1: Dim = 0,
                      dim2: Dim = 1):  # fmt: skip
    """Subtract the old diagonal, and add the new one."""
    whole = _diag_embed(a, src, offset, dim1, dim2)
    ones = _diag_embed(a, a.like(src, 1), offset, dim1, dim2)
    return a.each(lambda x, y, i: (1 - i) * x + y, input, whole, ones)


def triangle(a, x, relation):
    places = (a.position(x, x.rank - k) for k in (2, 1))
    return a.each(lambda x, i, j: where(relation(i, j), x, 0), x, *places)


@op("tril", gives=SAME)
def _tril(a, input: Tensor, diagonal: Size = 0):
    if diagonal == -1:  # strictly above or below the main diagonal
        return triangle(a, input, lambda i, j: j < i)
    return triangle(a, input, lambda i, j: j <= i + diagonal)


@op("triu", gives=SAME)
def _triu(a, input: Tensor, diagonal: Size = 0):
    if diagonal == 1:
        return triangle(a, input, lambda i, j: j > i)
    return triangle(a, input, lambda i, j: j >= i + diagonal)


@op("trace", gives=SAME)
def _trace(a, input: Tensor):
    return a.sum(main_diagonal(a, input, 0, 1))


# Windows


@op("unfold", forms="method", called="windows", gives=SAME)
def _unfold(a, input: Tensor, dimension: Dim, size: Size, step: Size):
    if step < 1:
        a.refuse(f"unfold with step {step}", "it takes a step above 0")
    return windows(a, input, dimension, size, (int(step), 1))


def windows(a, x, dim: int, wide, steps: tuple[int, int]):
    step, hole = steps
    span = a.shape(x)[dim] - hole * (wide - 1) - 1
    a.need(span, 0)
    count = span + 1 if step == 1 else floor(span / Integer(step)) + 1
    return a.windows(x, dim, (count, wide), (step, hole, S.Zero))


def pair(value) -> tuple[int, int]:
    numbers = tuple(map(int, value))
    return numbers * 2 if len(numbers) == 1 else numbers


@op("F_unfold", forms="F", also="im2col", called="windows")
def _im2col(a, input: Tensor, kernel_size: Sizes, dilation: Sizes = (1,), padding: Sizes = (0,),
            stride: Sizes = (1,)):  # fmt: skip
    x, rank = input, input.rank
    sizes = zip(*map(pair, (kernel_size, dilation, padding, stride)), strict=True)
    for dim, (wide, apart, pad, step) in zip((rank - 2, rank - 1), sizes, strict=True):
        if pad:
            x = a.read(x, dim, a.shape(x)[dim] + 2 * pad, 1, Integer(-pad))
        x = windows(a, x, dim, Integer(wide), (step, apart))
    x = a.permuted(x, [*range(rank - 2), rank, rank + 1, rank - 2, rank - 1])
    *batch, channels = a.shape(x)[: rank - 2]
    *_, high, wide = a.shape(x)
    return a.reshaped(x, [*batch, channels * Mul(*pair(kernel_size)), high * wide])
