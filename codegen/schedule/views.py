"""Views of an array: the same entries at other indices."""

from __future__ import annotations

from codegen.program import arrays
from codegen.schedule.elements import Element
from codegen.schedule.entry_rules import Entries, Indices, rule


@rule(arrays.Arrange)
def _arrange(f: Entries, value, at: Indices) -> Element:
    inside = {}
    for dim, source in zip(value.dims, value.order, strict=True):
        if source is not None and not value.operand.dims[source].one:
            inside[value.operand.dims[source].axis.name] = at[dim.axis.name]
    return f.entry(value.operand, inside)


@rule(arrays.Expand)
def _expand(f: Entries, value, at: Indices) -> Element:
    dims, inner = value.dims, value.operand.dims
    pairs = zip(dims[len(dims) - len(inner) :], inner, strict=True)
    return f.entry(value.operand, {i.axis.name: at[o.axis.name] for o, i in pairs if not i.one})


@rule(arrays.Own)
def _own(f: Entries, value, at: Indices) -> Element:
    return f.entry(value.operand, at)


@rule(arrays.Merge)
def _merge(f: Entries, value, at: Indices) -> Element:
    merged = value.dims[value.first].axis.name
    inner = value.operand.dims[value.first : value.first + value.count]
    inside, indices = dict(at), list(at[merged])
    for dim in inner:
        if not dim.one:
            taken = len(f.unflattened(dim.axis.name))
            inside[dim.axis.name], indices = tuple(indices[:taken]), indices[taken:]
    if indices:
        raise f.unknown(value)
    return f.entry(value.operand, inside)


@rule(arrays.Split)
def _split(f: Entries, value, at: Indices) -> Element:
    flat_axis = value.operand.dims[value.along].axis.name
    together = tuple(i for axis in value.into for i in at[axis])
    if len(together) != len(f.unflattened(flat_axis)):
        raise f.unknown(value)
    return f.entry(value.operand, {**at, flat_axis: together})
