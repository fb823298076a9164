"""Lay a value out along the axes of the tensor whose gradient it is."""

from __future__ import annotations

from dataclasses import replace

from sympy import Expr

from derive.claims.reading.broadcasting import placed
from derive.claims.reading.lengths import shown
from derive.claims.reading.refusals import Mismatch
from derive.claims.reading.values import Dims, Space, TextValue, shape_text
from derive.language.symbols import Tensor, axes_of


def laid_out(
    space: Space, value: TextValue, of: Tensor, dims: Dims, columns: bool = False
) -> tuple[Expr, str]:
    """``value`` along the axes of ``of``, whose layout is ``dims``; with ``columns`` (examples as
    columns), a vector may be a column.

    It may have leading dimensions of size 1, and lack axes; it is then broadcast, and a note says
    so. Raises `Mismatch` if it has an extra axis or a wrong one.
    """
    if value.by_name:
        extra = axes_of(value.expression) - set(of.home)
        if extra:
            names = ", ".join(sorted(axis.name for axis in extra))
            raise Mismatch(
                f"this has the axis {names}, which {of.name} lacks",
                f"sum over it: Sum(..., {names})",
            )
        return value.expression, ""
    if columns and len(dims) == 1 and value.dims[1:] == (None,):
        value = replace(value, dims=value.dims[:1])
    pairs = _beside(space, value, dims, of)
    mapping = {own: axis for own, axis in pairs if own is not None and axis is not None}
    e = placed(space, value.expression, mapping)
    sizes, wanted = ([space.size(axis) for axis in along] for along in (value.dims, dims))
    note = f"has shape {value.shape}; d{of.name} is {shape_text(dims)}" if sizes != wanted else ""
    return e, note


def _beside(space: Space, value: TextValue, dims: Dims, of: Tensor):
    """Pair the dimensions of a value with those of the gradient, from the right."""
    name, whole = f"d{of.name}", shape_text(dims)
    missing = len(dims) - len(value.dims)
    leading = value.dims[: max(-missing, 0)]
    own = (*(None,) * missing, *value.dims[len(leading) :])
    if any(axis is not None for axis in leading):
        raise Mismatch(f"this has shape {value.shape}, but {name} is {whole}", _extra(leading))
    for axis, place in zip(own, dims, strict=True):
        if axis is None or space.size(axis) == space.size(place):
            continue
        problem = f"this has shape {value.shape}, but {name} is {whole}"
        if place is None and missing <= 0:
            raise Mismatch(problem, f"sum over {axis}: {name} was broadcast along it")
        if place is None:
            raise Mismatch(problem, "keep the dimension: keepdim=True where it was summed")
        if not space.may_be(axis, place):
            raise Mismatch(problem, "the lengths differ: is a slice or a padding off by one?")
        raise Mismatch(
            f"{problem}. Where {shown(axis)} equals {place} torch raises nothing",
            f"it varies along {shown(axis)} where {name} varies along {place}: "
            "was it summed over the wrong dimension, or must it be transposed?",
        )
    return list(zip(own, dims, strict=True))


def _extra(axes: Dims) -> str:
    named = [axis.name for axis in axes if axis is not None]
    return f"sum over {', '.join(named)}: it was broadcast along it in the forward"
