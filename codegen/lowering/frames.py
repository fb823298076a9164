"""Frames and dimensions: aligns values with the dimensions where they are needed.

A *frame* is the list of axes that a value is aligned with, at the right, as broadcasting aligns
shapes. Everything here is about dimensions alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from codegen.program.arrays import (
    Arrange,
    Cumulate,
    Detached,
    Expand,
    Gathered,
    Merge,
    OfMatrix,
    OneHotOf,
    Pick,
    Positions,
    Scanned,
    Scattered,
    SegmentArgMax,
    SegmentMax,
    Solved,
    Split,
    Zeros,
)
from codegen.program.loops import Looped
from codegen.program.parts import on_diagonal, values_in
from codegen.program.reads import Convolve, Overlapped, Placed, Read
from codegen.program.steps import Step
from codegen.program.values import Apply, Choose, Load, Number, Plus, Power, SizeOf, Times, Value
from derive.language.errors import QuestionError
from derive.language.notation.layout import Dim, Layout
from derive.language.symbols import Axis

Frame = tuple[Axis, ...]


def fitted(value: Value, layout: Layout) -> Value:
    """``value`` with exactly the dimensions of ``layout``."""
    _check_none_is_lost(value, (dim.axis for dim in layout if not dim.one))
    missing = len(layout) - len(value.dims)
    if missing and all(dim.one for dim in layout[:missing]):
        order = (None,) * missing + tuple(range(len(value.dims)))
        value = Arrange(value, order, dims=layout[:missing] + value.dims)
    if [dim.one for dim in value.dims] != [dim.one for dim in layout]:
        value = Expand(value, dims=layout)
    return value


def arranged(value: Value, frame: Frame) -> Value:
    """``value`` with its dimensions in the order of ``frame``, with dimensions of size 1 for
    missing axes.
    """
    _check_none_is_lost(value, frame)
    dims = value.dims
    if len(dims) <= len(frame) and all(
        d.axis == a for d, a in zip(dims[::-1], frame[::-1], strict=False)
    ):
        return value
    place = {dim.axis: i for i, dim in enumerate(dims)}
    whole = [axis for axis in frame if axis in place and not dims[place[axis]].one]
    start = frame.index(whole[0]) if whole else len(frame)
    slots = frame[start:]
    order = tuple(place.get(axis) for axis in slots)
    arranged = tuple(
        Dim(axis, i is None or dims[i].one) for axis, i in zip(slots, order, strict=True)
    )
    return Arrange(value, order, dims=arranged)


def _check_none_is_lost(value: Value, axes: Iterable[Axis]) -> None:
    """Raise `QuestionError` if a value varies along an axis without a place in the frame, or twice
    along one.
    """
    varies = [dim.axis for dim in value.dims if not dim.one]
    if len(set(varies)) < len(varies) or not axes_in(value) <= set(axes):
        along = ", ".join(axis.name for axis in varies)
        raise QuestionError(
            f"an expression with the axes ({along}) is not supported in this position",
            "name parts of the statement on lines of their own",
        )


def without_ones(value: Value, axes: Iterable[Axis]) -> Value:
    """``value`` without the dimensions of size 1 that replace some axes."""
    axes = set(axes)
    kept = [i for i, dim in enumerate(value.dims) if not (dim.one and dim.axis in axes)]
    if len(kept) == len(value.dims):
        return value
    return Arrange(value, tuple(kept), dims=tuple(value.dims[i] for i in kept))


def is_fresh(value: Value) -> bool:
    """True if a value is a whole tensor of its own, which may be changed in place."""
    if isinstance(value, (Load, Expand, Read)):
        return False
    if isinstance(value, Pick) and (
        isinstance(value.index, Number) or on_diagonal(value.index) is not None
    ):  # the same memory
        return False
    if isinstance(value, (Arrange, Detached, Merge, Split)):
        return is_fresh(value.operand)
    if isinstance(value, Choose) and not value.condition.dims:  # one of the two as it is
        return is_fresh(value.yes) and is_fresh(value.no)
    if isinstance(value, Plus) and len(value.terms) == 1:
        return value.terms[0][1] or is_fresh(value.terms[0][0])
    if isinstance(value, Times) and len(value.factors) == 1:
        return is_fresh(value.factors[0][0])
    return True


def is_kept(value: Value) -> bool:
    """True if torch's autograd keeps the result of the line, which must then not be changed in
    place.
    """
    if isinstance(value, (Arrange, Merge, Split)):
        return is_kept(value.operand)
    return isinstance(value, (Apply, Power, Cumulate, Scanned, OfMatrix, Solved))


def widened(frame: Frame, more: Iterable[Axis], order: Sequence[Axis]) -> Frame:
    """``frame`` with more axes in it, each in its place by ``order`` if the frame keeps to that."""
    missing = [axis for axis in order if axis in set(more) and axis not in frame]
    together = sorted([*frame, *missing], key=order.index)
    in_order = [axis for axis in together if axis in frame] == list(frame)
    return tuple(together) if in_order else (*missing, *frame)


def axes_in(value: Value) -> set[Axis]:
    """The axes along which a value has its full length."""
    return {dim.axis for dim in value.dims if not dim.one}


def broadcast(layouts: Iterable[Layout]) -> Layout:
    """The dimensions of a result of several values, aligned at the right."""
    result: list[Dim] = []
    for layout in layouts:
        for i, dim in enumerate(reversed(layout)):
            if i == len(result):
                result.append(dim)
            elif result[i].one:
                result[i] = dim
    return tuple(reversed(result))


def sizes_used(steps: Iterable[Step]) -> set[str]:
    """The axes whose sizes appear in the steps, by name."""
    return {name for step in steps for value in values_in(step) for name in _sizes_of(value)}


def _sizes_of(value: Value) -> set[str]:
    if isinstance(value, SizeOf):
        return {value.name}
    if isinstance(value, Looped):
        return {value.axis} | sizes_used(value.body.steps)
    if isinstance(value, (OneHotOf, Positions, SegmentArgMax, SegmentMax)):
        return {value.size}
    if isinstance(value, Split):
        return set(value.into)
    if isinstance(value, Read):
        return {step.axis for step in (value.steps if value.shared else value.steps[1:])}
    if isinstance(value, Convolve):
        channels = value.channels
        shown = (channels.batch, (*channels.group, *channels.out))
        several = (name for names in shown if len(names) > 1 for name in names)
        made = several if value.made == "output" else (dim.axis.name for dim in value.dims)
        return {*channels.group, *made, *(g.input for g in value.geometry if value.made == "input")}
    if isinstance(value, Overlapped):
        return {value.length}
    if isinstance(value, Placed):
        return {name for line in value.lines for name in (line.entries, line.length)}
    if isinstance(value, (Expand, Zeros, Gathered, Scattered)):
        return {dim.axis.name for dim in value.dims if not dim.one}
    return set()
