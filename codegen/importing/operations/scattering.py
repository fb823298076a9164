"""What was written in place, made functional by the trace."""

from __future__ import annotations

from codegen.importing.operations.picking import hot
from codegen.importing.operations.table import rule
from codegen.importing.operations.viewing import unsqueezed
from codegen.importing.values import CONDITION, Refused, Value
from derive.torch_ops import trees
from derive.torch_ops.trees import ONE, Tree


def put(pick: Tree, before: Tree, after: Tree) -> Tree:
    """``after`` where it is picked, else what was there."""
    rest = trees.product(trees.difference(ONE, pick), before)
    return trees.sum_of(rest, trees.product(pick, after))


@rule("scatter_add")
def _scatter_add(r, x, dim, index, src):
    return scattered(r, x, dim, index, src, adds=True)


@rule("scatter")
def _scatter(r, x, dim, index, src=None, value=None, reduce=None):
    """Long: torch's arguments, of all of its overloads."""
    return scattered(r, x, dim, index, value if src is None else src, reduce == "add")


def scattered(r, x, dim, index, src, adds: bool) -> Value:
    i = dim % x.rank
    x = r.single(r.as_number(x), i)
    (axis,) = x.dims[i]
    src = r.value(src)
    if index.dims[i] and not adds:
        raise Refused("scatter of several entries per row", "use scatter_add, or a one-hot")
    if index.dims[i] == () and src.rank:
        src = src.with_dim(i, ())
    if set(index.dims[i]) & set(x.axes):
        raise Refused("scatter along the axis of the indices", "use a one-hot")
    hole = x.with_dim(i, ())
    (_, label, source), dims = r.aligned(
        hole, index, r.as_number(src).along(src.dims or ((),) * x.rank)
    )
    there = [x.dims[i] if j == i else d for j, d in enumerate(dims)]
    before = r.moved(x, there)
    pick = hot(r, label, axis)
    if not adds:
        return Value(put(pick, before.tree, source.tree), tuple(there))
    added = Value(trees.product(pick, source.tree), tuple(there))
    summed = r.sum(Value(added.tree, (index.dims[i],))).tree if index.dims[i] else added.tree
    return r.sum_like(trees.sum_of, before, Value(summed, tuple(there)))


@rule("index_put", "_unsafe_index_put")
def _index_put(r, x, indices, values, accumulate=False):
    """Entries that a mask or one index for each dimension picks."""
    values = r.value(values)
    if len(indices) == 1 and indices[0] is not None and indices[0].kind == CONDITION:
        kept = indices[0]
        kept = kept.along((*kept.dims, *((),) * (x.rank - kept.rank)))
        return r.chosen(kept, values, x)
    if any(v is None for v in indices) or len(indices) > x.rank:
        raise Refused("writing at part of the indices", "write with a one-hot")
    before = r.as_number(x)
    (*found, after), _ = r.aligned(*indices, r.as_number(values))
    rows, pick = {}, ONE
    for v, dim in zip(found, before.dims, strict=False):
        if v.tree.kind == "position" and v.tree.args[0] not in rows:
            rows[v.tree.args[0]] = dim[0]
    for v, dim in zip(found, before.dims, strict=False):
        own = v.tree.args[0] if v.tree.kind == "position" else ""
        if rows.get(own) != dim[0]:
            moved = Value(trees.renamed(v.tree, rows), v.dims, v.kind, v.over)
            pick = trees.product(pick, hot(r, moved, dim[0]))
    tree = trees.renamed(after.tree, rows)
    if accumulate:
        return before.of(trees.sum_of(before.tree, trees.product(pick, tree)))
    return before.of(put(pick, before.tree, tree))


@rule("index_add")
def _index_add(r, x, dim, index, source, alpha=1):
    i = dim % x.rank
    x = r.single(r.as_number(x), i)
    (axis,) = x.dims[i]
    along = index.dims[0]
    source = r.moved(r.as_number(source), [along if j == i else d for j, d in enumerate(x.dims)])
    pick = trees.product(r.number(alpha), hot(r, index, axis))
    added = trees.total(trees.product(pick, source.tree), list(along))
    return r.sum_like(trees.sum_of, x, Value(added, x.dims))


@rule("select_scatter")
def _select_scatter(r, x, src, dim, index):
    i = dim % x.rank
    x = r.single(r.as_number(x), i)
    (axis,) = x.dims[i]
    at = r._bound(index, r.sizes.of_axis[axis])
    here = trees.compared("==", trees.position(axis), trees.number(at))
    kept = Value(here, tuple((axis,) if j == i else () for j in range(x.rank)), CONDITION)
    return r.chosen(kept, unsqueezed(r.as_number(src), i), x)


@rule("slice_scatter")
def _slice_scatter(r, x, src, dim=0, start=None, end=None, step=1):
    """Long: torch's arguments."""
    size = r.sizes.of(x.dims[dim % x.rank])
    low = 0 if start is None else r.sizes.hint(r.sizes.plain(start))
    high = r.sizes.hint(size if end is None else r.sizes.plain(end))
    if step == 1 and low == 0 and high >= r.sizes.hint(size):
        return r.moved(src, x.dims)
    raise Refused("writing a part of a dimension", "combine parts with torch.cat or torch.where")


@rule("masked_scatter", "put", "index_copy")
def _unknown(r, **given):
    raise Refused("writing at positions that depend on values", "write with torch.where")
