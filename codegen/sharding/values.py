"""Values with other operands, and the classes of pointwise values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace

from codegen.program import values
from codegen.program.arrays import Arrange, AsNumber, Detached, Own, Reduce
from codegen.program.parts import operands, values_in
from codegen.program.shards import Exchange
from codegen.program.steps import Step
from codegen.program.values import Value
from derive.language.notation.layout import Dim, Layout

MAXIMA = ("max", "peak", "subtracted peak")  # kinds of reductions
POINTWISE = (
    values.Plus,
    values.Times,
    values.MulAdd,
    values.Power,
    values.Apply,
    values.Pullback,
    values.Compare,
    values.Combine,
    values.Choose,
    values.Extreme,
    values.Clamp,
    values.Gate,
    values.Bend,
    values.Slope,
    AsNumber,
    Detached,
    Own,
)


def with_operands(value: Value, new: Sequence[Value], dims: Layout | None = None) -> Value:
    """``value`` with its operands replaced by ``new``, in order."""
    left = list(new)
    changed = {
        field.name: _filled(getattr(value, field.name), left)
        for field in fields(value)
        if field.name != "dims"
    }
    return replace(value, **changed, dims=value.dims if dims is None else dims)


def _filled(item, left: list[Value]):
    if isinstance(item, Value):
        return left.pop(0)
    if isinstance(item, tuple):
        return tuple(_filled(part, left) for part in item)
    return item


def rewritten(value: Value, rule: Callable[[Value], Value | None]) -> Value:
    """``value`` with every part replaced that ``rule`` gives another value for, the outermost
    first.
    """
    found = rule(value)
    if found is not None:
        return found
    parts = operands(value)
    return with_operands(value, [rewritten(part, rule) for part in parts]) if parts else value


def values_of(step: Step) -> Iterator[Value]:
    """All values of a step, including those that it sends."""
    yield from values_in(step)
    for sent in step.sent if isinstance(step, Exchange) else ():
        if sent.value is not None:
            yield sent.value
            yield from values_in(sent.value)


def stripped(value: Reduce) -> Reduce | None:
    """The sum below mere changes of layout, without the dimensions of size 1; None for other
    values.
    """
    inner, summed = value.operand, {value.operand.dims[i].axis for i in value.along}
    if value.kind != "sum":
        return None
    while isinstance(inner, Arrange):
        inner = inner.operand
    along = tuple(i for i, dim in enumerate(inner.dims) if dim.axis in summed and not dim.one)
    rest = tuple(dim for i, dim in enumerate(inner.dims) if i not in along)
    core = Reduce("sum", inner, along, False, dims=rest)
    placed = in_place(core, value.dims)
    missing = {dim.axis for dim in value.operand.dims if not dim.one} - {d.axis for d in inner.dims}
    if any(dim.one for dim in rest) or not along or missing or placed is None:
        return None
    return core


def in_place(value: Value, dims: Layout) -> Value | None:
    """``value`` with the dimensions of the result, of size 1 where it does not vary."""
    places = {dim.axis: i for i, dim in enumerate(value.dims) if not dim.one}
    order = tuple(places.get(dim.axis) for dim in dims)
    if {i for i in order if i is not None} != {*places.values()}:
        return None
    whole = tuple(Dim(d.axis, i is None) for d, i in zip(dims, order, strict=True))
    return Arrange(value, order, dims=whole)
