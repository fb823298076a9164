"""Tensors that are made of nothing: constants, positions, triangles."""

from __future__ import annotations

from codegen.importing.operations.table import rule
from codegen.importing.operations.viewing import shape_of
from codegen.importing.values import CONDITION, Value
from derive.torch_ops.trees import ZERO


def constant(r, value, shape) -> Value:
    """The same everywhere; of booleans a condition."""
    found = Value(r.number(value), r.by_size(shape))
    is_bool = str(r.node.meta["val"].dtype) == "torch.bool"
    return r.as_condition(found) if is_bool else found


def like(r, x: Value, value) -> Value:
    found = Value(r.number(value), x.dims)
    return r.as_condition(found) if str(r.node.meta["val"].dtype) == "torch.bool" else found


@rule("empty", "new_empty", "empty_like")
def _empty(r, x=None):
    """What is empty has no number, as a run shows, until all of it is written."""
    return constant(r, 0, shape_of(r)) if x is None or x.rank == 0 else like(r, x, 0)


@rule("fill")
def _fill(r, x, value):
    return like(r, x, value)


@rule("scalar_tensor")
def _scalar_tensor(r, s):
    return Value(r.number(s))


@rule("copy")
def _copy(r, x, src):
    found = r.value(src)
    aligned, dims = r.aligned(Value(ZERO, x.dims), r.as_number(found))
    return Value(aligned[1].tree, dims) if found.kind != CONDITION else found
