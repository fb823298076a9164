"""The words of the notation, on numbers, with the meanings given on the notation's page."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from codegen.as_written.entries import (
    NumberEntries,
    Unreadable,
    entries_of,
    number_of,
    together,
    whole_of,
)
from derive.language.symbols import Axis


class Words:
    """The words at certain sizes."""

    def __init__(self, sizes: dict[Axis, int]):
        self.sizes = sizes

    def table(self) -> dict[str, Callable]:
        """All words by their names in the notation."""
        own = (name for name in dir(self) if name[0].isupper())
        return {name: getattr(self, name) for name in own}

    def of(self, value: object) -> NumberEntries:
        return entries_of(value, self.sizes)

    def size(self, axis: Axis) -> int:
        if axis not in self.sizes:
            length = axis.length if axis.formula is None else axis.formula
            if length is None:
                raise Unreadable(f"{axis} has no size")
            self.sizes[axis] = whole_of(length, self.sizes)
        return self.sizes[axis]

    def made(self, value: Tensor, axes: Sequence[Axis]) -> NumberEntries:
        for axis, length in zip(axes, value.shape, strict=True):
            self.sizes.setdefault(axis, length)
        return NumberEntries(value, tuple(axes), self.sizes)

    def _last(self, e: NumberEntries, *axes: Axis) -> tuple[list[Axis], Tensor]:
        """The other axes, and the tensor with ``axes`` as its last dimensions."""
        rest = [axis for axis in e.axes if axis not in axes]
        return rest, e.wide([*rest, *axes])

    # -- one axis or more end ----------------------------------------------------------

    def Sum(self, e, *axes):
        rest, value = self._last(self.of(e), *axes)
        return self.made(value.flatten(len(rest)).sum(-1), rest)

    def Max(self, *values):
        return self._extreme(torch.amax, torch.maximum, *values)

    def Min(self, *values):
        return self._extreme(torch.amin, torch.minimum, *values)

    def _extreme(self, along, of_two, first, *others):
        if any(isinstance(other, Axis) for other in others):
            rest, value = self._last(first, *others)
            return self.made(along(value, -1), rest)
        for other in others:
            first = together(of_two, first, other, sizes=self.sizes)
        return first

    def LogDet(self, e, rows, columns):
        rest, value = self._last(e, rows, columns)
        return self.made(torch.linalg.slogdet(value).logabsdet, rest)

    def Diagonal(self, e, one, other):
        rest, value = self._last(e, one, other)
        return self.made(value.diagonal(dim1=-2, dim2=-1), [*rest, one])

    # -- an axis comes ----------------------------------------------------------------

    def Position(self, axis):
        return self.made(torch.arange(self.size(axis)).double(), [axis])

    def OneHot(self, label, axis):
        return together(
            lambda label, place, counts: ((label == place) & counts).double(),
            *(label, self.Position(axis), self._counts(label)),
            sizes=self.sizes,
        )

    def Identity(self, one, other):
        value = torch.eye(self.size(one), dtype=torch.float64)
        return self.made(value, [one, other])

    def Broadcast(self, e, *axes):
        e = self.of(e)
        every = list(dict.fromkeys([*e.axes, *axes]))
        return self.made(e.along(every).expand([self.size(a) for a in every]), every)

    def Kept(self, labels):
        return labels.on(self._counts(labels).value.double())

    def _counts(self, label) -> NumberEntries:
        """A mask of the labels that are not ignored."""
        label = self.of(label)
        if label.ignored is None:
            return label.on(torch.ones_like(label.value, dtype=torch.bool))
        return label.on(label.value != label.ignored)

    # -- an axis becomes another -------------------------------------------------------

    def Rename(self, e, old, new):
        renamed = NumberEntries(
            e.value, tuple(new if axis == old else axis for axis in e.axes), self.sizes, e.ignored
        )
        self.made(renamed.value, renamed.axes)
        return renamed

    def Flatten(self, e, *axes, into):
        rest, value = self._last(e, *axes)
        return self.made(value.flatten(len(rest)), [*rest, into])

    def Unflatten(self, e, axis, *, into):
        rest, value = self._last(e, axis)
        return self.made(value.unflatten(-1, [self.size(a) for a in into]), [*rest, *into])

    def At(self, e, axis, index, fill=0):
        e, index, outside = self.of(e), self.of(index), number_of(fill, self.sizes)
        rest, value = self._last(e, axis)
        every = list(dict.fromkeys([*rest, *index.axes]))
        order = [rest.index(a) for a in every if a in rest]
        rows = value.permute([*order, len(rest)])
        rows = rows[tuple(slice(None) if a in rest else None for a in every)]
        places = index.along(every)
        shape = torch.broadcast_shapes(rows.shape[:-1], places.shape)
        rows, places = rows.expand(*shape, rows.shape[-1]), places.expand(shape)
        found = torch.full(shape, outside, dtype=torch.float64)
        for place in range(rows.shape[-1]):
            found = torch.where(places == place, rows[..., place], found)
        return self.made(found, every)

    def Flip(self, x, axis):
        return self.At(x, axis, x.size(axis) - 1 - self.Position(axis))

    def Shift(self, x, axis, by=1, fill=0):
        return self.At(x, axis, self.Position(axis) - by, fill)

    def Slice(self, x, axis, *, into, start=0, step=1):
        return self.At(x, axis, self.Position(into) * step + start)

    def Pad(self, x, axis, *, into, before=0, fill=0):
        return self.At(x, axis, self.Position(into) - before, fill)

    def Window(self, x, axis, *, into, stride=1, dilation=1, padding=0, fill=0):
        """Long: it takes what the notation's takes."""
        at, inside = into
        return self.At(
            x, axis, self.Position(at) * stride + self.Position(inside) * dilation - padding, fill
        )

    def Concat(self, *parts, into):
        parts = [(self.of(x), axis) for x, axis in parts]
        rest = list(dict.fromkeys(a for x, axis in parts for a in x.axes if a != axis))
        values = [x.wide([*rest, axis]) for x, axis in parts]
        return self.made(torch.cat(values, -1), [*rest, into])

    # -- along an axis -----------------------------------------------------------------

    def CumSum(self, x, axis, *, reverse=False, exclusive=False):
        return self._gone((1, x, 0), axis, reverse, exclusive)

    def CumProd(self, x, axis, *, exclusive=False):
        return self._gone((x, 0, 1), axis, False, exclusive)

    def CumMax(self, x, axis):
        rest, value = self._last(x, axis)
        return self.made(value.cummax(-1).values, [*rest, axis])

    def Scan(self, a, b, axis, *, initial=0, exclusive=False, reverse=False, transposed=False):
        """Long: it takes what the notation's takes."""
        if transposed:  # the next place's factor
            a = self.Shift(self.of(a) + self.Position(axis) * 0, axis, -1)
        return self._gone((a, b, initial), axis, reverse or transposed, exclusive)

    def Previous(self, x, axis, *, initial=0):
        return self._gone((0, x, initial), axis, False, True)

    def Next(self, x, axis):
        return self._gone((0, x, 0), axis, True, True)

    def _gone(self, parts, axis, reverse, exclusive):
        """The states h[t] = a[t]*h[t-1] + b[t] of the parts a, b and h0, one place after the other;
        or the state before each.
        """
        a, b, state = map(self.of, parts)
        rest = [x for part in (a, b, state) for x in part.axes if x != axis]
        rest = list(dict.fromkeys(rest))
        factors, terms = (part.along([*rest, axis]) for part in (a, b))
        shape = torch.broadcast_shapes(factors.shape, terms.shape)
        shape = torch.broadcast_shapes(shape[:-1], state.along(rest).shape)
        count = self.size(axis)
        factors, terms = (part.expand(*shape, count) for part in (factors, terms))
        state, found = state.along(rest).expand(shape), {}
        for place in reversed(range(count)) if reverse else range(count):
            before, state = state, factors[..., place] * state + terms[..., place]
            found[place] = before if exclusive else state
        return self.made(torch.stack([found[t] for t in range(count)], -1), [*rest, axis])

    # -- by label ---------------------------------------------------------------------

    def Gather(self, e, labels, axis):
        labels = self.of(labels)
        found = self.At(e, axis, labels.on(labels.value.double()))
        kept = self._counts(labels)
        return together(lambda v, k: torch.where(k, v, 0.0), found, kept, sizes=self.sizes)

    def SegmentSum(self, e, labels, axis):
        return self.Sum(self.OneHot(labels, axis) * e, *labels.axes)

    def SegmentMean(self, e, labels, axis):
        count = self.Sum(self.OneHot(labels, axis), *labels.axes)
        total = self.SegmentSum(e, labels, axis)
        return together(lambda t, n: t / n.clamp(min=1), total, count, sizes=self.sizes)

    def SegmentMax(self, e, labels, axis):
        hot = self.OneHot(labels, axis)
        every = together(lambda v, h: torch.where(h > 0, v, -torch.inf), e, hot, sizes=self.sizes)
        return self.Max(every, *labels.axes)

    # -- matrices ---------------------------------------------------------------------

    def Inverse(self, e, rows, columns):
        return self._matrix(torch.linalg.inv, e, rows, columns)

    def Cholesky(self, e, rows, columns):
        return self._matrix(lambda m: torch.linalg.cholesky((m + m.mT) / 2), e, rows, columns)

    def _matrix(self, function, e, rows, columns):
        rest, value = self._last(e, rows, columns)
        return self.made(function(value), [*rest, rows, columns])

    def Solve(self, matrix, right, rows, columns):
        rest = [a for e in (matrix, right) for a in e.axes if a not in (rows, columns)]
        rest = list(dict.fromkeys(rest))
        m, b = matrix.along([*rest, rows, columns]), right.along([*rest, rows])
        shape = torch.broadcast_shapes(m.shape[:-2], b.shape[:-1])
        m, b = m.expand(*shape, *m.shape[-2:]), b.expand(*shape, b.shape[-1])
        return self.made(torch.linalg.solve(m, b[..., None])[..., 0], [*rest, columns])

    # -- the rest ---------------------------------------------------------------------

    def Gradient(self, of, by):
        if not of.value.requires_grad:
            return by.on(torch.zeros_like(by.value))
        (found,) = torch.autograd.grad(
            of.value.sum(), by.value, create_graph=True, allow_unused=True
        )
        return by.on(torch.zeros_like(by.value) if found is None else found)

    def Detach(self, e):
        e = self.of(e)
        return e.on(e.value.detach())
