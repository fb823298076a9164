"""Parts of dimensions: ``x[:, 1:]``, ``x[..., ::2]``, ``x[:, -1]``, read and written.

A slice is read as the entries at an affine index (`At`). A write uses the inverse index: 0 where
the slice has no entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from sympy import Add, Eq, Expr, Integer, Piecewise, S, floor

from derive.claims.reading.broadcasting import matched
from derive.claims.reading.lengths import in_sizes
from derive.claims.reading.operations.dtypes import converted
from derive.claims.reading.operations.entries import tensor
from derive.claims.reading.refusals import Mismatch, Refusal
from derive.claims.reading.unwritten import UNWRITTEN, Stretch, check_written, left_of
from derive.claims.reading.values import INDEX, Space, TextValue, held_as
from derive.language.nodes import Position
from derive.language.symbols import Axis, axes_of

STEPS = "a step is a whole number above 0; torch has no others: .flip(dim) reverses"


@dataclass(frozen=True)
class WrittenSlice:
    """``start:stop:step`` as typed; None for each part left out."""

    start: Expr | None
    stop: Expr | None
    step: Expr | None


@dataclass(frozen=True)
class EntryIndex:
    """An integer index: it drops its dimension."""

    index: Expr


@dataclass(frozen=True)
class ReadRun:
    """The entries a slice reads along a dimension: from ``start`` in steps along ``axis``, or a
    single entry if ``axis`` is None; an `EntryIndex` drops the dimension.
    """

    axis: Axis | None
    start: Expr
    step: int = 1
    goes: bool = False

    @property
    def index(self) -> Expr:
        return self.start if self.axis is None else self.start + self.step * Position(self.axis)


def reread(
    space: Space, x: TextValue, place: int, axis: Axis | None, index: Expr, fill: Expr = S.Zero
) -> TextValue:
    """``x`` with dimension ``place`` read at ``index``, which runs along ``axis``; ``fill`` where
    the index is out of range.
    """
    old = tensor(x).dims[place]
    e = x.expression if old is None else space.read_at(x.expression, old, index, fill)
    dims = (*x.dims[:place], axis, *x.dims[place + 1 :])
    return space.made(e, dims, x.extent.inside(), **held_as(x.dtype))


def taken(space: Space, x: TextValue, items: Sequence) -> TextValue:
    """``x[items]`` for slices, integers, whole dimensions and None."""
    space.by_position = True
    runs = _runs(space, x, items)
    e, dims = (x if x.kind == INDEX else tensor(x)).expression, []
    for old, run in runs:
        if run is not None and old is not None and old in axes_of(e) and run.index != Position(old):
            e = space.read_at(e, old, run.index)
        if run is None or not run.goes:
            dims.append(None if run is None else run.axis)
    return space.seen(x, e, tuple(dims))


def _runs(space: Space, x: TextValue, items: Sequence) -> list[tuple[Axis | None, ReadRun | None]]:
    """For each dimension, the axis and the entries read; the entries are None for a new dimension
    of size 1.
    """
    found: list[tuple[Axis | None, ReadRun | None]] = []
    old = iter(x.dims)
    used: set[Axis] = set(x.axes)
    for item in by_dimension(x, items):
        if item is None:
            found.append((None, None))
            continue
        axis = next(old)
        run = _run(space, axis, item, used - {axis})
        used |= {run.axis} - {None}
        found.append((axis, run))
    return found


def by_dimension(x: TextValue, items: Sequence) -> list:
    """One item for every dimension, and None for each new one."""
    met = sum(item is not None and item is not Ellipsis for item in items)
    if items.count(Ellipsis) > 1 or met > len(x.dims):
        raise Refusal(f"the shape {x.shape} has fewer dimensions", "name each dimension once")
    place = items.index(Ellipsis) if Ellipsis in items else len(items)
    return [*items[:place], *[":"] * (len(x.dims) - met), *items[place + 1 :]]


def _run(space: Space, axis: Axis | None, item, used: Iterable[Axis]) -> ReadRun:
    size = space.size(axis)
    if item == ":":
        return ReadRun(axis, Integer(0))
    if isinstance(item, EntryIndex):
        return ReadRun(None, _place(space, axis, item.index), goes=True)
    if space.numpy and item.step == -1 and item.start is None and item.stop is None:
        return ReadRun(axis, size - 1, -1)
    step = Integer(1) if item.step is None else item.step
    if not (step.is_Integer and step > 0):
        raise Refusal(f"a slice with the step {step}", STEPS)
    start = _from_front(space, item.start, size) if item.start is not None else Integer(0)
    stop = _from_front(space, item.stop, size) if item.stop is not None else size
    return run_of(space, axis, (start, stop, int(step)), used)


def _place(space: Space, axis: Axis | None, index: Expr) -> Expr:
    """The index of one entry, counted from the front."""
    known, size = space.fixed_size(axis), space.size(axis)
    if known is not None and index.is_Integer:
        if not -known <= index < known:
            raise Refusal(f"the index {index} of a dimension of size {known}", "count from 0")
        return index % known
    at = _from_front(space, index, size)
    space.need(at, 0)
    space.need(size - at, 1)
    return at


def _from_front(space: Space, index: Expr, size: Expr) -> Expr:
    negative = index.could_extract_minus_sign() if index.is_negative is None else index.is_negative
    return size + index if negative else index


def run_of(space: Space, axis: Axis | None, part: tuple[Expr, Expr, int], used) -> ReadRun:
    """The run from ``start`` up to ``stop`` in steps. If the ends may lie out of range for some
    sizes, require the sizes for which they do not, and add a remark.
    """
    (start, stop, step), size = part, space.size(axis)
    known = space.fixed_size(axis)
    if known is not None and start.is_Integer and (stop == size or stop.is_Integer):
        ends = slice(max(int(start), 0), known if stop == size else max(int(stop), 0), step)
        start, stop, step = ends.indices(known)
        start, stop = Integer(start), Integer(stop)
    elif start != 0 or stop != size:
        space.need(start, 0)
        space.need(size - stop, 0)
        space.need(stop - start, 1)
    count = floor((stop - start + step - 1) / Integer(step))
    if count.is_Integer and count < 1:
        raise Refusal("this part is empty", "leave it out")
    if start == 0 and step == 1 and space.same(count, size):
        return ReadRun(axis, Integer(0))
    start = in_sizes(space.definition, start) if start.has(floor) else start
    return ReadRun(space.axis_of(count, used), start, step)


def put(space: Space, x: TextValue, items: Sequence, value: TextValue, adds: bool) -> TextValue:
    """``x`` with ``value`` at ``x[items]``, or added there."""
    space.by_position = True
    value = converted(space, _without_new(value, by_dimension(x, items)), x.dtype)
    runs = _runs(space, tensor(x), [item for item in items if item is not None])
    kept = [i for i, (_, run) in enumerate(runs) if not run.goes]
    if len(value.dims) > len(kept):
        raise Mismatch(f"the shape {value.shape} does not fit this part", "sum it first")
    part = TextValue(Integer(0), tuple(runs[i][1].axis for i in kept))
    labels = kept[len(kept) - len(value.dims) :]
    (_, new), chosen = matched(space, [(part, kept), (value, labels)])
    if any(chosen[i] is not None and runs[i][1].axis is None for i in kept):
        raise Mismatch(f"{value.shape} cannot be written into {part.shape}", "sum it first")
    there = S.One
    for old, run in runs:
        new, there = (_put_back(space, e, old, run) for e in (new, there))
    e, left = x.expression, ()
    if space.unwritten:
        check_written(Add(value.expression, e) if adds else value.expression)
        left = left_of(space.definition, x.left, tuple(_stretch(space, *run) for run in runs))
        e = e if left else e.xreplace({UNWRITTEN: S.Zero})
    result = e + new if adds else e * (1 - there) + new
    extent = x.extent + value.extent.inside().inside()
    return replace(space.made(result, x.dims, extent, **held_as(x.dtype)), left=left)


def _stretch(space: Space, old: Axis | None, run: ReadRun) -> Stretch:
    count = Integer(1) if run.axis is None else space.size(run.axis)
    return Stretch(run.start, run.start + count * run.step, run.step)


def _without_new(value: TextValue, items: Sequence) -> TextValue:
    """The value to be written, without the dimensions that the index adds."""
    met = [item for item in items if not isinstance(item, EntryIndex)][::-1]
    new = [item is None for item in met[: len(value.dims)]][::-1]
    new = [False] * (len(value.dims) - len(new)) + new
    if any(is_new and axis for is_new, axis in zip(new, value.dims, strict=True)):
        raise Mismatch(f"{value.shape} is written into a new dimension", "leave out the None")
    dims = (axis for is_new, axis in zip(new, value.dims, strict=True) if not is_new)
    return replace(value, dims=tuple(dims))


def _put_back(space: Space, e: Expr, old: Axis | None, run: ReadRun) -> Expr:
    """Scatter ``e`` back along the dimension it was sliced from: 0 outside the slice."""
    if old is None or run.index == Position(old):
        return e
    if run.axis is None:
        return Piecewise((e, Eq(Position(old), run.start)), (0, True))
    return space.read_at(e, run.axis, (Position(old) - run.start) / run.step)


def read_along(
    space: Space, x: TextValue, place: int, make: Callable[[Expr, Axis], Expr]
) -> TextValue:
    """Apply ``make(expression, axis)`` along a dimension and keep the others; a dimension of size 1
    is unchanged.
    """
    axis = tensor(x).dims[place]
    e = x.expression if axis is None else make(x.expression, axis)
    return space.made(e, x.dims, x.extent.inside().inside(), **held_as(x.dtype))
