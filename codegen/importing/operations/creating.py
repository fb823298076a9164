"""Created tensors: constants, positions, triangles."""

from __future__ import annotations

from dataclasses import replace

from codegen.importing.operations.table import operation, rule
from codegen.importing.operations.viewing import shape_of
from codegen.importing.values import CONDITION, TreeValue
from derive.language.torch_ops.trees import ZERO


def constant(r, value, shape) -> TreeValue:
    """A constant tensor; of bools, a condition."""
    found = TreeValue(r.shapes.number(value), r.shapes.by_size(shape))
    is_bool = str(r.node.meta["val"].dtype) == "torch.bool"
    return r.shapes.as_condition(found) if is_bool else found


def like(r, x: TreeValue, value) -> TreeValue:
    found = TreeValue(r.shapes.number(value), x.dims)
    return r.shapes.as_condition(found) if str(r.node.meta["val"].dtype) == "torch.bool" else found


@rule("empty", "new_empty", "empty_like", "empty_permuted", "empty_strided", "new_empty_strided")
def _empty(r, x=None, physical_layout=None, stride=None):
    """An empty tensor of any layout; nothing is written yet. empty_like keeps the axes."""
    alike = x is not None and operation(r) == "empty_like"
    return replace(like(r, x, 0) if alike else constant(r, 0, shape_of(r)), parts=())


@rule("fill", "zero")
def _fill(r, x, value=0):
    return like(r, x, value)


@rule("scalar_tensor")
def _scalar_tensor(r, s):
    return TreeValue(r.shapes.number(s))


@rule("copy")
def _copy(r, x, src):
    found = r.shapes.value(src)
    aligned, dims = r.shapes.aligned(TreeValue(ZERO, x.dims), r.shapes.as_number(found))
    return TreeValue(aligned[1].tree, dims) if found.kind != CONDITION else found
