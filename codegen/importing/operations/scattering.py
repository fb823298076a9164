"""What was written in place, made functional by the trace."""

from __future__ import annotations

from codegen.importing.operations.joining import unsqueezed
from codegen.importing.operations.picking import hot
from codegen.importing.operations.table import before, rule
from codegen.importing.values import CONDITION, Refused, Value
from derive.torch_ops import trees
from derive.torch_ops.trees import ONE, Tree


def put(pick: Tree, before: Tree, after: Tree) -> Tree:
    """``after`` where it is picked, else what was there."""
    rest = trees.product(trees.difference(ONE, pick), before)
    return trees.sum_of(rest, trees.product(pick, after))


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


before |= {"select_scatter", "slice_scatter"}


@rule("select_scatter")
def _select_scatter(r, x, src, dim, index):
    i = dim % x.rank
    x = r.single(r.as_number(x), i)
    (axis,) = x.dims[i]
    at = r.bound(index, r.sizes.of_axis[axis])
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


@rule("put")
def _unknown(r, **given):
    raise Refused("writing at positions that depend on values", "write with torch.where")
