"""Prints additions at an index, reads from a diagonal, and writes to one."""

from __future__ import annotations

from codegen.program import arrays, steps, values
from codegen.program.parts import on_diagonal
from codegen.targets.torch.rows import TORCH, Prints
from derive.language.notation.layout import Dim, Layout


def diagonal_of(p: Prints, value: arrays.Pick) -> str:
    here, first, second = _places(value.index, value.dims, value.along)
    dims = "" if len(value.operand.dims) == 2 else f"0, {first}, {second}"
    moved = "" if here == len(value.dims) - 1 else f".movedim(-1, {here})"
    return f"{p.tight(value.operand)}.diagonal({dims}){moved}"


@TORCH.of(steps.AddAt)
def _add_at(p: Prints, step: steps.AddAt) -> str:
    name, along, here = step.name, step.along, "_" * p.in_place
    if isinstance(step.index, values.Number):
        place, source = p.text(step.index), p.text(step.value)
        if p.in_place:
            return f"{name}.select({along}, {place}).add_({source})"
        index = f"torch.tensor([{place}], device={name}.device)"
        source = f"{p.tight(step.value)}.unsqueeze({along})"
        return f"{name} = {name}.index_add({along}, {index}, {source})"
    if on_diagonal(step.index) is not None:
        return added_on_diagonal(p, step)
    index = f"{p.tight(step.index)}.unsqueeze({along})"
    dims = step.value.dims
    if dims and isinstance(step.value, arrays.Expand) and not step.value.operand.dims:
        dims = (*dims[:along], Dim(dims[0].axis, one=True), *dims[along:])
        value = p.text(arrays.Expand(step.value.operand, dims=dims))
    else:
        value = f"{p.tight(step.value)}.unsqueeze({along})"
    return f"{name} = {name}.scatter_add{here}({along}, {index}, {value})"


def added_on_diagonal(p: Prints, step: steps.AddAt) -> str:
    dims, source = step.value.dims, step.value
    here, first, second = _places(step.index, dims, step.along)
    if isinstance(source, arrays.Expand) and not source.operand.dims:
        added = p.text(source.operand)
    elif here == len(dims) - 1:
        added = p.text(source)
    else:
        added = f"{p.tight(source)}.movedim({here}, -1)"
    place = f"{step.name}, {first}, {second}"
    return f"{step.name} = _runtime.added_on_diagonal({place}, {added})"


def with_diagonal(p: Prints, value: values.Choose) -> str | None:
    """A constant where two indices are the same, as a diagonal; None for other choices."""
    test, chosen, rest = value.condition, value.yes, value.no
    if not isinstance(test, values.Compare) or test.relation not in ("==", "!="):
        return None
    if test.relation == "!=":
        chosen, rest = rest, chosen
    own = [on_diagonal(side) for side in (test.left, test.right)]
    axes = [dim.axis for dim in rest.dims if not dim.one]
    pair = [index.dims[0].axis for index in own if index is not None]
    number = isinstance(chosen, (values.Number, values.Constant))
    if not number or len(pair) < 2 or not {*pair} <= {*axes}:
        return None
    first, second = sorted([dim.axis for dim in rest.dims].index(axis) for axis in pair)
    text = f"{p.text(rest)}, {first}, {second}, {p.text(chosen)}"
    return f"_runtime.with_diagonal({text})"


def _places(index: values.Value, dims: Layout, along: int) -> tuple[int, int, int]:
    """The position of a diagonal's axis among ``dims``, and the two dimensions of which it is the
    diagonal, with ``along`` among them.
    """
    (own,) = on_diagonal(index).dims
    here = [dim.axis for dim in dims].index(own.axis)
    return here, *sorted((here + (here >= along), along))
