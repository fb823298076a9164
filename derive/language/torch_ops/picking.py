"""Indexing: gather, scatter, index_add and the like."""

from __future__ import annotations

from sympy import S

from derive.language.torch_ops.shaping import REST, together
from derive.language.torch_ops.table import (
    INT,
    KEPT,
    SAME,
    Default,
    Dim,
    Flag,
    Number,
    Size,
    Tensor,
    Word,
    op,
)


@op("select", gives=SAME)
def _select(a, input: Tensor, dim: Dim, index: Size):
    return a.entry(input, dim, index)


@op("narrow", gives=SAME)
def _narrow(a, input: Tensor, dim: Dim, start: Size, length: Size):
    size = a.shape(input)[dim]
    start = size + start if start.is_negative else start
    return a.part(input, dim, start, start + length)


@op("gather", called="picked", gives=SAME)
def _gather(a, input: Tensor, dim: Dim, index: Tensor, *, sparse_grad: Default = False):
    return a.picked(input, dim, index)


@op("take_along_dim", called="picked", gives=SAME)
def _take_along_dim(a, input: Tensor, indices: Tensor, dim: Dim | None = None):
    """The other dimensions of the two tensors are broadcast."""
    if dim is None:
        shape = a.shape(indices)
        input, indices = (a.reshaped(x, [REST]) for x in (input, indices))
        return a.reshaped(a.picked(input, 0, indices), shape)
    shape = together(a, [a.shape(input), a.shape(indices)])
    shape[dim] = REST
    return a.picked(a.expanded(input, shape), dim, a.expanded(indices, shape))


@op("index_select", called="picked", gives=SAME)
def _index_select(a, input: Tensor, dim: Dim, index: Tensor):
    return a.selected(input, dim, index)


@op("take", called="picked", gives=SAME)
def _take(a, input: Tensor, index: Tensor):
    """Index the flattened tensor."""
    return a.selected(a.reshaped(input, [REST]), 0, index)


@op("embedding", forms="F", called="vectors", gives=SAME, aten={"indices": "input"})
def _embedding(
    a, input: Tensor, weight: Tensor, padding_idx: Default = None, max_norm: Default = None,
    norm_type: Default = 2.0, scale_grad_by_freq: Default = False, sparse: Default = False,
):  # fmt: skip
    return a.selected(weight, 0, input)


@op("one_hot", forms="torch F", gives=INT, aten={"self": "tensor"})
def _one_hot(a, tensor: Tensor, num_classes: Size = -1):
    if num_classes == -1:
        a.refuse("one_hot: how many classes?", "write F.one_hot(labels, C)")
    return a.hots(tensor, a.filled([num_classes], 0), 0)


# Writes along a dimension at a one-dimensional index


def along_index(a, x, dim: int, index, source):
    """The sum written to each entry, and the number of writes, by sums over the index."""
    hot = a.hots(index, x, dim)  # the place in the index, the place in x
    letters = "abcdefgh"[: x.rank]
    at = letters[:dim] + "i" + letters[dim + 1 :]
    often = a.sum(hot, 0)
    for _ in range(x.rank - 1 - dim):
        often = a.unsqueezed(often, 1)
    if source is None:
        return None, often
    return a.contracted([at, "i" + letters[dim]], letters, [source, hot]), often


@op("index_add", gives=KEPT)
def _index_add(a, input: Tensor, dim: Dim, index: Tensor, source: Tensor, *, alpha: Number = 1):
    more, _ = along_index(a, input, dim, index, a.source(input, source))
    alpha = a.source(input, alpha)
    return a.each(lambda x, m, k: x + k * m, input, more, alpha)


@op("index_fill", gives=KEPT)
def _index_fill(a, input: Tensor, dim: Dim, index: Tensor, value: Number):
    _, often = along_index(a, input, dim, index, None)
    return a.chosen(a.compared(">", often, 0), value, input)


# Writes along a dimension at an index of equal rank


def beside(a, x, dim: int, index, source):
    """The sum written to each entry at an index of equal rank, and the number of writes."""
    hot = a.hots(index, x, dim)
    move = lambda y: a.permuted(y, [*range(dim), x.rank - 1, *range(dim, x.rank - 1)])  # noqa: E731
    often = move(a.sum(hot, dim))
    if source is None:
        return None, often
    spread = a.each(lambda h, s: h * s, hot, a.unsqueezed(source, x.rank))
    return move(a.sum(spread, dim)), often


@op("scatter_add", gives=KEPT)
def _scatter_add(a, input: Tensor, dim: Dim, index: Tensor, src: Tensor):
    more, _ = beside(a, input, dim, index, a.source(input, src))
    return a.each(lambda x, m: x + m, input, more)


@op("scatter", gives=KEPT)
def _scatter(a, input: Tensor, dim: Dim, index: Tensor, src: Number | None = None,
             value: Number | None = None, *, reduce: Word | None = None):  # fmt: skip
    """Long: torch's arguments, for all overloads."""
    value = a.source(input, src if value is None else value)
    if reduce == "add":
        is_tensor = getattr(value, "rank", 0)
        source = value if is_tensor else a.each(lambda s, v: s + v, a.like(index, 0), value)
        return _scatter_add(a, input, dim, index, source)
    if reduce is not None:
        a.refuse(f"scatter by {reduce}", "write scatter_add, or scatter_reduce")
    if a.known(a.shape(index)[dim]) != 1:
        lost = getattr(value, "rank", 0) and a.known(a.shape(value)[dim]) != 1
        said = a.misfit if lost else a.refuse
        kept = "of entries with the same index torch keeps one and drops the rest"
        said(kept, "write scatter_add")
    if getattr(value, "rank", 0):
        more, often = beside(a, input, dim, index, value)
        return a.each(lambda x, h, m: (1 - h) * x + m, input, often, more)
    _, often = beside(a, input, dim, index, None)
    return a.each(lambda x, h, v: (1 - h) * x + h * v, input, often, value)


REDUCED = ("sum", "mean")


@op("scatter_reduce", gives=KEPT)
def _scatter_reduce(a, input: Tensor, dim: Dim, index: Tensor, src: Tensor, reduce: Word, *,
                    include_self: Flag = True):  # fmt: skip
    """Long: torch's arguments."""
    if reduce not in REDUCED:
        a.refuse(f"scatter_reduce by {reduce}", "supported are sum and mean")
    more, often = beside(a, input, dim, index, src)
    own = 1 if include_self else 0
    if not include_self:
        met = a.compared(">", often, 0)
        whole = more if reduce == "sum" else a.each(lambda m, n: m / n, more, often)
        return a.chosen(met, whole, input)
    total = a.each(lambda x, m: x + m, input, more)
    return total if reduce == "sum" else a.each(lambda t, n: t / (n + own), total, often)


# At a constant index


@op("select_scatter", gives=SAME)
def _select_scatter(a, input: Tensor, src: Tensor, dim: Dim, index: Size):
    size = a.shape(input)[dim]
    at = size + index if index.is_negative else index
    a.need(size - at, 1)
    here = a.compared("==", a.position(input, dim), at)
    return a.chosen(here, a.unsqueezed(src, dim), input)


@op("slice_scatter", gives=SAME)
def _slice_scatter(a, input: Tensor, src: Tensor, dim: Dim = 0, start: Size | None = None,
                   end: Size | None = None, step: Size = 1):  # fmt: skip
    """Long: torch's arguments."""
    size = a.shape(input)[dim]
    start, end = S.Zero if start is None else start, size if end is None else end
    low, high = (size + n if n.is_negative else n for n in (start, end))
    return a.written(input, dim, (low, high, int(step)), src)
