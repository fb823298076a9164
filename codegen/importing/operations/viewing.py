"""Views: what moves dimensions, and most of it writes nothing."""

from __future__ import annotations

import sympy

from codegen.importing.operations.along import strided
from codegen.importing.operations.table import rule, rules
from codegen.importing.values import CONDITION, LABEL, NUMBER, Outside, Refused, Value
from derive.torch_ops import trees


def shape_of(r, i: int | None = None):
    found = r.node.meta["val"]
    return (found if i is None else found[i]).shape


def same(r, x):
    return x


for _name in ("clone", "contiguous", "alias", "lift_fresh_copy", "positive"):
    rules[_name] = same


@rule("detach")
def _detach(r, x):
    if isinstance(x, Outside) or x.kind != NUMBER or not trees.tensors_in(x.tree):
        return x
    return r.pointwise(lambda tree: trees.call("Detach", tree), x)


@rule("to", "_to_copy", "type_as")
def _to(r, x, other=None):
    """Another format has the same numbers; of whole numbers only what is one already."""
    dtype = r.node.meta["val"].dtype
    if isinstance(x, Outside):
        return x
    if dtype.is_floating_point or dtype.is_complex:
        return r.as_number(x) if x.kind in (CONDITION, LABEL) else x
    if x.kind in (CONDITION, LABEL) or x.kind != NUMBER:
        return x
    if str(dtype) == "torch.bool":
        return r.as_condition(x)
    if trees.condition_of(x.tree) is not None or x.tree.kind in ("position", "number"):
        return x
    raise Refused("truncation to integers", "leave out the conversion")


@rule("getitem")
def _getitem(r, x, index):
    return x[index]


@rule("view", "reshape", "_unsafe_view", "flatten", "unflatten", "view_as", "reshape_as")
def _view(r, x, size=None, shape=None, other=None, start_dim=0, end_dim=-1, dim=0, sizes=None):
    """The trace knows the shape.

    Long: torch's arguments, of all of these operations.
    """
    return r.reshaped(x, shape_of(r))


def transposed(x: Value, i: int, j: int) -> Value:
    dims = list(x.dims)
    dims[i], dims[j] = dims[j], dims[i]
    return x.along(dims)


@rule("t", "numpy_T", "mT", "adjoint", "matrix_H")
def _t(r, x):
    return transposed(x, -1, -2) if x.rank > 1 else x


def unsqueezed(x: Value, dim: int) -> Value:
    i = dim % (x.rank + 1)
    return x.along((*x.dims[:i], (), *x.dims[i:]))


@rule("squeeze")
def _squeeze(r, x, dim=None):
    gone = r.positions(x, dim)
    return x.along(d for i, d in enumerate(x.dims) if not (i in gone and d == ()))


@rule("expand", "expand_as", "broadcast_to")
def _expand(r, x, size=None, other=None, implicit=False):
    """What is repeated does not vary along the new axis."""
    shape = [r.sizes.plain(n) for n in shape_of(r)]
    dims = [()] * (len(shape) - x.rank) + list(x.dims)
    for i, size in enumerate(shape):
        if not dims[i] and r.sizes.hint(size) != 1:
            used = {axis for dim in dims for axis in dim}
            dims[i] = (r.sizes.axis_of(size, {*used, *r.windows}),)
    return x.along(dims)


@rule("repeat")
def _repeat(r, x, repeats):
    dims = [()] * (len(repeats) - x.rank) + list(x.dims)
    for i, times in enumerate(map(r.sizes.plain, repeats)):
        if r.sizes.hint(times) == 1:
            continue
        used = {axis for dim in dims for axis in dim}
        again = r.sizes.axis_of(times, {*used, *r.windows}) if not dims[i] else r.sizes.new(times)
        dims[i] = (again, *dims[i])
    return x.along(dims)


@rule("repeat_interleave")
def _repeat_interleave(r, x, repeats, dim=None, output_size=None):
    if dim is None or isinstance(repeats, Value):
        raise Refused("repeat_interleave without a dimension, or by a tensor", "name the dimension")
    i = dim % x.rank
    if x.dims[i] == ():
        return x.with_dim(i, (r.sizes.axis_of(r.sizes.plain(repeats), x.axes),))
    (axis,) = x.dims[i]
    return x.with_dim(i, (axis, r.repeated(axis, r.sizes.plain(repeats))))


@rule("broadcast_tensors")
def _broadcast_tensors(r, tensors):
    found, dims = r.aligned(*tensors)
    return [v.along(dims) for v in found]


# Parts


@rule("slice")
def _slice(r, x, dim=0, start=None, end=None, step=1):
    i = dim % x.rank
    size = r.sizes.of(x.dims[i])
    ends = (0 if start is None else start, size if end is None else end)
    if step == 1 or x.dims[i] == ():
        return r.sliced(x, i, *ends)
    low, high = (r._bound(end, size) for end in ends)
    return strided(r, x, i, (low, high, step))


@rule("split", "chunk", "split_with_sizes", "unsafe_split", "unsafe_chunk")
def _split(r, x, split_size=None, split_sizes=None, chunks=None, dim=0):
    i, parts = dim % x.rank, len(r.node.meta["val"])
    widths = [r.sizes.plain(shape_of(r, k)[i]) for k in range(parts)]
    if len({r.sizes.hint(w) for w in widths}) == 1 and len(x.dims[i]) == 1:
        r.sizes.equate(x.dims[i][0], parts * widths[0])
        widths = [r.sizes.plain(w) for w in widths]
    x = r.let(r.called(x), x) if parts > 1 else x
    if all(r.sizes.same(w, widths[0]) for w in widths):
        return [r.part(x, i, parts, k) for k in range(parts)] if parts > 1 else [x]
    starts = [sympy.Add(*widths[:k]) for k in range(parts + 1)]
    return [r.sliced(x, i, starts[k], starts[k + 1]) for k in range(parts)]


@rule("unbind")
def _unbind(r, x, dim=0):
    x = r.let(r.called(x), x)
    return [r.entry(x, dim % x.rank, k) for k in range(len(r.node.meta["val"]))]
