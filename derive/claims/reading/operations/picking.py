"""Indexing in torch: picking entries and writing them.

An index is read as the `OneHot` it stands for: ``x[range(n), labels]`` is ``Sum(OneHot(labels, C) *
x, C)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sympy import Add, Expr, Mul, Piecewise

from derive.claims.reading.broadcasting import aligned, matched
from derive.claims.reading.operations.dtypes import source_of
from derive.claims.reading.operations.entries import Operation, entry, position
from derive.claims.reading.refusals import Mismatch, Refusal
from derive.claims.reading.values import (
    COUNT,
    INDEX,
    MASK,
    NUMBER,
    Space,
    TextValue,
    held_as,
    number,
    product_of,
)
from derive.language.choices import zero_unless
from derive.language.kept_labels import Kept, with_ignored
from derive.language.nodes import OneHot, summed
from derive.language.reshaping import Reindexing
from derive.language.symbols import Axis, Tensor, axes_of

picking: dict[str, Operation] = {}


def hot(index: Expr, axis: Axis) -> Expr:
    """1 where the position along ``axis`` equals the index."""
    return _of_labels(index, lambda label: OneHot.over(label, [axis]), axis)


def _of_labels(index: Expr, make: Callable[[Expr], Expr], axis: Axis | None = None) -> Expr:
    """Apply ``make`` to labels inside slices or reshapes: it is applied to all labels, and is 0
    where there is none.
    """
    if isinstance(index, Add):  # concatenated parts
        return Add(*(_of_labels(part, make, axis) for part in index.args))
    if not isinstance(index, Reindexing):
        return make(index)
    if axis in index.axes:
        raise Refusal(f"a slice of labels along {axis} indexes {axis}", "pick first, then slice")
    return index.through(lambda labels: _of_labels(labels, make, axis))


def indices(x: TextValue, what: str = "this") -> TextValue:
    if x.kind != INDEX:
        raise Refusal(f"{what} is not an index", "an index is a label, or an arg max")
    return x


def equal_to_count(space: Space, index: TextValue, count: TextValue) -> TextValue:
    """``labels[:, None] == torch.arange(C)``"""
    (place,) = (axis for axis in count.dims if axis is not None)
    spread = TextValue(index.expression, index.dims, extent=index.extent)
    expressions, dims = aligned(space, [spread, TextValue(count.expression, count.dims)])
    behind = len(count.dims) - count.dims.index(place)
    axis = dims[len(dims) - behind]
    if len(index.dims) >= behind and index.dims[-behind] is not None:
        raise Mismatch(
            f"an index of shape {index.shape} meets a range of shape {count.shape}",
            "write labels[:, None] == torch.arange(C)",
        )
    return space.made(hot(expressions[0], axis), dims, index.extent.inside(), kind="mask")


def kept_of(space: Space, index: TextValue) -> Expr:
    """1 where a label counts, else 0."""
    ignoring = {i.kept.name: i.kept for i in space.definition.ignoring}

    def kept(label: Expr) -> Expr:
        if isinstance(label, Tensor) and label.role == "label":
            return with_ignored(Kept(label), ignoring)
        raise Refusal("this index is not a label", "write Kept(labels), or labels != ignore_index")

    return _of_labels(index.expression, kept)


def compared_to_ignored(space: Space, index: TextValue, other: TextValue, equal: bool) -> TextValue:
    """``labels != ignore_index``, or the number that it is unless the caller says otherwise."""
    read = index.expression.atoms(Tensor)
    own = [i.default for i in space.definition.ignoring if i.label in read]
    if other.kind == NUMBER and other.expression not in own:
        label = next(iter(read), "labels")
        remedy = (
            f"for the labels that count, write {label} != {own[0]}"
            if own
            else (f"for labels that may be ignored, declare {label} = Label(N, ignored=-100)")
        )
        raise Refusal("a label is compared with a number", remedy)
    kept = kept_of(space, index)
    e = Piecewise((0, zero_unless(kept)), (1, True)) if equal else kept
    return space.made(e, index.dims, index.extent.inside(), kind=MASK)


# Picking


def _broadcast_labels(index: Sequence[TextValue]) -> list[list]:
    rank = max(len(i.dims) for i in index)
    return [[("at", place) for place in range(rank - len(i.dims), rank)] for i in index]


def _indexed(x: TextValue, index: Sequence[TextValue]):
    """The operands and labels of ``x[i, j]``: a range shares the label of its dimension, an index
    contributes a one-hot along it.
    """
    labels = _broadcast_labels(index)
    own: list = [("own", place) for place in range(len(x.dims))]
    for place, (i, at) in enumerate(zip(index, labels, strict=True)):
        if i.kind == COUNT:
            (axis,) = (axis for axis in i.dims if axis is not None)
            own[place] = at[i.dims.index(axis)]
        elif i.kind != INDEX:
            raise Refusal("this is not an index", "index with range(n), torch.arange(n) or a label")
    if len(set(own)) != len(own):
        raise Refusal("two dimensions share one index", "diagonals are not supported")
    return own, labels


def picked(space: Space, x: TextValue, index: Sequence[TextValue]) -> TextValue:
    """``x[range(n), labels]``, ``table[labels]``: index the leading dimensions of ``x``."""
    space.by_position = True
    own, labels = _indexed(x, index)
    operands = [(x, own), *zip(index, labels, strict=True)]
    (e, *at), chosen = matched(space, operands)
    places = [place for place, i in enumerate(index) if i.kind == INDEX]
    hots = [hot(at[place], axis_met(chosen[own[place]], x)) for place in places]
    e = summed(Mul(e, *hots), [chosen[own[place]] for place in places], space.size)
    kept = [("at", place) for place in range(max(len(i.dims) for i in index))] + own[len(index) :]
    extent = product_of([x.extent, *(index[place].extent for place in places)]).inside()
    return space.made(e, tuple(chosen[label] for label in kept), extent, **held_as(x.dtype))


def axis_met(axis: Axis | None, x: TextValue) -> Axis:
    if axis is None:
        raise Mismatch(f"a dimension of size 1 of the shape {x.shape} is indexed", "index an axis")
    return axis


def written(
    space: Space,
    x: TextValue,
    index: Sequence[TextValue],
    value: TextValue,
    accumulate: bool,
    repeats: bool = False,
) -> TextValue:
    """``x`` with ``value`` written or added at ``x[index]``.

    If an index may repeat, torch keeps one of the values written, unless ``repeats`` says that all
    count: a `Mismatch` if the values differ, else a `Refusal`.
    """
    space.by_position = True
    value = source_of(space, x, value)
    own, labels = _indexed(x, index)
    rank = max(len(i.dims) for i in index)
    kept = [("at", place) for place in range(rank)] + own[len(index) :]
    if len(value.dims) > len(kept):
        raise Mismatch(
            f"the shape {value.shape} does not match the selected entries",
            "the value must broadcast to it",
        )
    value_labels = kept[len(kept) - len(value.dims) :]
    operands = [(x, own), *zip(index, labels, strict=True), (value, value_labels)]
    (e, *at, new), chosen = matched(space, operands)
    for label, axis in zip(own, x.dims, strict=True):
        if axis is None and chosen[label] is not None:
            raise Mismatch(
                f"{value.shape} cannot be written into shape {x.shape}",
                "the shape of the left side is fixed",
            )
    places = [place for place, i in enumerate(index) if i.kind == INDEX]
    where = Mul(*(hot(at[place], axis_met(chosen[own[place]], x)) for place in places))
    loose = [chosen[label] for label in kept if label not in own and chosen[label] is not None]
    if loose and not repeats:
        raise _written_once(
            axes_of(new) & set(loose),
            "add them with index_add_(0, index, values), or index_put_(..., accumulate=True)",
        )
    more = summed(where * new, loose, space.size)
    result = e + more if accumulate else e * (1 - where) + more
    extent = x.extent * (number(1).extent + value.extent) + value.extent.inside()
    return space.made(result, tuple(chosen[label] for label in own), extent, **held_as(x.dtype))


def _written_once(lost: set[Axis], remedy: str) -> Refusal | Mismatch:
    """The error for repeated indices that overwrite each other; values differ along the axes
    ``lost``.
    """
    if lost:
        along = ", ".join(sorted(axis.name for axis in lost))
        problem = f"of entries along {along} with the same index torch keeps one and drops the rest"
        return Mismatch(problem, remedy)
    return Refusal("entries with the same index are written once here, not added", remedy)


# Methods that take an index


def _beside(space: Space, x: TextValue, dim, index: TextValue) -> tuple[int, list, list]:
    """Labels for ``gather`` and ``scatter``: all dimensions but ``dim`` are aligned."""
    place = position(space, x, dim)
    if len(index.dims) != len(x.dims):
        raise Mismatch(
            f"the index is {index.shape} beside {x.shape}",
            "it needs the same number of dimensions: [:, None]",
        )
    for i, (a, b) in enumerate(zip(x.dims, index.dims, strict=True)):
        if i != place and space.size(a) != space.size(b):
            raise Mismatch(f"the index is {index.shape} beside {x.shape}", "the shapes must match")
    labels = list(range(len(x.dims)))
    own, at = labels.copy(), labels.copy()
    own[place], at[place] = "own", "at"
    return place, own, at


def gathered(space: Space, input: TextValue, dim: TextValue, index: TextValue):
    _, own, at = _beside(space, input, dim, indices(index, "the index"))
    (e, i), chosen = matched(space, [(input, own), (index, at)])
    axis = axis_met(chosen["own"], input)
    e = summed(e * hot(i, axis), [axis], space.size)
    extent = (input.extent * index.extent).inside()
    held = held_as(input.dtype)
    return space.made(e, tuple(chosen[label] for label in at), extent, **held)


@entry(picking, "index_put")
def _index_put(space: Space, input: TextValue, indices, values: TextValue, accumulate=False):
    places = [i for i in indices if isinstance(i, TextValue)] if isinstance(indices, tuple) else []
    if not places:
        raise Refusal("index_put takes a tuple of indices", "write index_put_((index,), values)")
    return written(space, input, places, values, accumulate is True, repeats=accumulate is True)
