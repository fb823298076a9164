"""Concatenate, stack and split tensors."""

from __future__ import annotations

from itertools import pairwise

from sympy import Integer, S

from derive.language.torch_ops.shaping import REST, at_least
from derive.language.torch_ops.table import (
    SAME,
    Dim,
    NewDim,
    Number,
    Parts,
    Size,
    Sizes,
    Tensor,
    Tensors,
    Word,
    op,
)


@op("cat", "concat", "concatenate", forms="torch", called="joined", gives=SAME)
def _cat(a, tensors: Tensors, dim: Dim = 0):
    return a.joined(tensors, dim)


@op("stack", forms="torch", gives=SAME)
def _stack(a, tensors: Tensors, dim: NewDim = 0):
    return a.stacked(tensors, dim)


@op("hstack", forms="torch", called="joined", gives=SAME)
def _hstack(a, tensors: Tensors):
    values = [at_least(a, x, 1) for x in tensors]
    return a.joined(values, min(values[0].rank - 1, 1))


@op("vstack", "row_stack", forms="torch", called="joined", gives=SAME)
def _vstack(a, tensors: Tensors):
    return a.joined([at_least(a, x, 2) for x in tensors], 0)


@op("dstack", forms="torch", called="joined", gives=SAME)
def _dstack(a, tensors: Tensors):
    return a.joined([at_least(a, x, 3) for x in tensors], 2)


@op("column_stack", forms="torch", called="joined", gives=SAME)
def _column_stack(a, tensors: Tensors):
    columns = [a.reshaped(x, [REST, Integer(1)]) if x.rank < 2 else x for x in tensors]
    return a.joined(columns, 1)


# Parts


def parts(a, x, dim: int, widths):
    found, before = [], S.Zero
    for width in widths:
        found.append(a.part(x, dim, before, before + width))
        before += width
    return tuple(found)


def evenly(a, x, dim: int, count: int):
    width = a.divided(a.shape(x)[dim], Integer(count))
    return parts(a, x, dim, [width] * count)


def of_width(a, x, dim: int, width):
    """Parts of one width; the last may be shorter."""
    size = a.shape(x)[dim]
    known, wide = a.known(size), a.known(width)
    if known is not None and wide is not None:
        ends = [*range(0, known, wide), known]
        return parts(a, x, dim, [Integer(q - p) for p, q in pairwise(ends)])
    count = a.known(a.divided(size, width))
    if count is None:
        a.refuse(
            f"the number of parts of width {width} in {size} is not known", "slice it: x[:, 1:]"
        )
    return parts(a, x, dim, [width] * count)


@op("split", "split_with_sizes", "unsafe_split", gives=SAME,
    aten=dict.fromkeys(("split_size", "split_sizes"), "split_size_or_sections"))  # fmt: skip
def _split(a, input: Tensor, split_size_or_sections: Sizes, dim: Dim = 0):
    widths = split_size_or_sections
    if len(widths) == 1:
        return of_width(a, input, dim, widths[0])
    if not a.same(sum(widths, S.Zero), a.shape(input)[dim]):
        a.refuse(
            f"the parts {list(widths)} do not add up to the dimension",
            "make their sum equal to its size",
        )
    return parts(a, input, dim, widths)


@op("chunk", "unsafe_chunk", gives=SAME)
def _chunk(a, input: Tensor, chunks: Size, dim: Dim = 0):
    size, count = a.known(a.shape(input)[dim]), int(chunks)
    if size is not None and count > 0:
        return of_width(a, input, dim, Integer(-(-size // count)))
    return evenly(a, input, dim, max(count, 1))


ENDS = dict.fromkeys(("sections", "indices"), "indices_or_sections")


@op("tensor_split", gives=SAME, aten=ENDS)
def _tensor_split(a, input: Tensor, indices_or_sections: Parts, dim: Dim = 0):
    """Split into a number of parts, the first of which are longer by one; or at given indices."""
    ends = indices_or_sections
    if isinstance(ends, tuple):
        starts = [S.Zero, *ends]
        last = a.shape(input)[dim]
        return tuple(a.part(input, dim, p, q) for p, q in zip(starts, [*ends, last], strict=True))
    size, count = a.known(a.shape(input)[dim]), int(ends)
    if size is None:
        return evenly(a, input, dim, count)
    return parts(a, input, dim, [Integer(size // count + (k < size % count)) for k in range(count)])


def _split_along(name: str, dim: int):
    @op(name, gives=SAME, aten=ENDS)
    def of(a, input: Tensor, indices_or_sections: Parts):
        return _tensor_split(a, input, indices_or_sections, min(dim, input.rank - 1))


for _name, _dim in (("hsplit", 1), ("vsplit", 0), ("dsplit", 2)):
    _split_along(_name, _dim)


@op("unbind", gives=SAME)
def _unbind(a, input: Tensor, dim: Dim = 0):
    count = a.known(a.shape(input)[dim])
    if count is None:
        a.refuse(f"unbind along {a.shape(input)[dim]}, of any size", "index it: x[:, 0]")
    return tuple(a.entry(input, dim, Integer(k)) for k in range(count))


# Padding by concatenation


def between(a, x, dim: int, before, behind):
    """Concatenate x with the parts before and behind it that exist."""
    return a.joined([part for part in (before, x, behind) if part is not None], dim)


def _constant(a, x, dim: int, lengths, fill):
    before, behind = lengths
    return a.read(x, dim, a.shape(x)[dim] + before + behind, 1, -before, fill)


def _circular(a, x, dim: int, lengths, fill):
    size, (before, behind) = a.shape(x)[dim], lengths
    last = a.part(x, dim, size - before, size) if before else None
    return between(a, x, dim, last, a.part(x, dim, S.Zero, behind) if behind else None)


def _reflect(a, x, dim: int, lengths, fill):
    size, (before, behind) = a.shape(x)[dim], lengths
    ends = (S.One, before), (size - 1 - behind, behind)
    found = [a.flipped(a.part(x, dim, at, at + n), dim) if n else None for at, n in ends]
    return between(a, x, dim, *found)


def _replicate(a, x, dim: int, lengths, fill):
    size, shape = a.shape(x)[dim], [REST] * x.rank
    places = zip((S.Zero, size - 1), lengths, strict=True)
    ends = [
        a.expanded(a.part(x, dim, at, at + 1), [*shape[:dim], n, *shape[dim + 1 :]]) if n else None
        for at, n in places
    ]
    return between(a, x, dim, *ends)


MODES = {
    "constant": _constant,
    "circular": _circular,
    "reflect": _reflect,
    "replicate": _replicate,
}


@op("pad", "constant_pad_nd", forms="F", called="padded", gives=SAME)
def _pad(a, input: Tensor, pad: Sizes, mode: Word = "constant", value: Number | None = None):
    if len(pad) % 2 or len(pad) > 2 * input.rank or mode not in MODES:
        modes = ", ".join(MODES)
        a.refuse("pad takes two lengths for each dimension, the last first, and a mode", modes)
    x = input
    for k, lengths in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        if mode != "constant" and any(n.is_negative for n in lengths):
            a.refuse(f"a negative length, padding by {mode}", "slice instead")
        if any(n != 0 for n in lengths):
            x = MODES[mode](a, x, x.rank - 1 - k, lengths, 0 if value is None else value)
    return x
