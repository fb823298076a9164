"""What was written in place, made functional by the trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sympy
from sympy import Expr, floor

from codegen.importing.operations.joining import unsqueezed
from codegen.importing.operations.picking import hot
from codegen.importing.operations.table import before, rule
from codegen.importing.values import CONDITION, Part, Refused, Value
from derive.torch_ops import reads, trees
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


# Parts of dimensions


@rule("select_scatter")
def _select_scatter(r, x, src, dim, index):
    i = dim % x.rank
    at = r.bound(index, r.sizes.of(x.dims[i]))
    return written(r, x, replace(src, dims=unsqueezed(src, i).dims), Part(i, at, at + 1))


@rule("slice_scatter")
def _slice_scatter(r, x, src, dim=0, start=None, end=None, step=1):
    """Long: torch's arguments."""
    i = dim % x.rank
    size = r.sizes.of(x.dims[i])
    low, high = (r.bound(e, size) for e in (start or 0, size if end is None else end))
    return written(r, x, src, Part(i, low, high, step))


def written(r, x: Value, src: Value, part: Part) -> Value:
    """``x`` with ``src`` in a part of a dimension."""
    i, size, left = part.i, r.sizes.of(x.dims[part.i]), None
    if x.dims[i] == () or covers(r, [part], size):
        return src if src.parts is not None else r.moved(src, x.dims)
    if x.parts is not None:
        parts = x.parts if src.parts is not None else (*x.parts, part)
        left = None if covers(r, parts, size) else parts
        x, src = replace(x, parts=None), replace(src, parts=None)
    before = r.single(r.as_number(x), i)
    src = r.single(r.as_number(src), i - x.rank)
    src = src.along(((),) * (x.rank - src.rank) + src.dims)
    rest = {a for j, d in enumerate(before.dims) for a in d if j != i}
    mine = tuple(r.sibling(a, rest) if a in rest else a for a in src.dims[i])
    src = r.moved(src, [mine if j == i else d for j, d in enumerate(before.dims)])
    (axis,) = before.dims[i]
    if mine:
        r.sizes.assume(r.sizes.of(mine), floor((part.high - part.low + part.step - 1) / part.step))
    if part.step != 1:
        tree = _strided(r, before, src, axis, part)
    else:
        laid = laid_at(r, src, i, axis, part)
        tree = trees.choice((laid, _inside(axis, part, size)), otherwise=before.tree)
    return replace(before.of(tree), parts=left)


def _inside(axis: str, part: Part, size: Expr) -> Tree:
    """Where a part without steps is."""
    here = trees.position(axis)
    if sympy.expand(part.high - part.low) == 1:
        return trees.compared("==", here, trees.number(part.low))
    ends = [trees.compared(">=", here, trees.number(part.low))] * (part.low != 0)
    ends += [trees.compared("<", here, trees.number(part.high))] * (part.high != size)
    return ends[0] if len(ends) == 1 else trees.joined("and", *ends)


def _strided(r, before: Value, src: Value, axis: str, part: Part) -> Tree:
    """Each in its places: what was there stays in all others, where it is not 0 anyway."""
    laid, mark = laid_at(r, src, part.i, axis, part), (axis, part.low, part.step)
    if before.tree == trees.ZERO:
        r.alone[laid] = [mark]
        return laid
    known = r.alone.get(r.written_as(before.tree), [])
    if known and all(other[::2] == mark[::2] and other[1] != mark[1] for other in known):
        whole = trees.sum_of(before.tree, laid)
        r.alone[whole] = [*known, mark]
        return whole
    one = Value(trees.ONE, src.dims)
    there = laid_at(r, one, part.i, axis, part)
    kept = trees.product(trees.difference(trees.ONE, there), before.tree)
    return trees.sum_of(kept, laid)


def laid_at(r, src: Value, i: int, axis: str, part: Part) -> Tree:
    """The entries of ``src`` along ``axis``, where a part of it is; with steps 0 between them."""
    own = src.dims[i][0] if src.dims[i] else ""
    if own in r.windows and r.windows[own][0] not in src.tree.free and part.step == 1:
        own, low, _ = r.windows[own]
        src = src.of(trees.renamed(src.tree, {src.dims[i][0]: own}))
    else:
        src, low = r.plain(src, i), sympy.S.Zero
        own = src.dims[i][0] if src.dims[i] else ""
    if part.step == 1 and own not in src.tree.free:
        return src.tree
    if not own:
        own = r.stepped(part.high - part.low, part.step, src.axes)
    tree = trees.broadcast(src.tree, [own])
    step = sympy.Rational(1, part.step)
    offset = low - part.low * step
    return (
        tree
        if (own, step, offset) == (axis, 1, 0)
        else reads.at(tree, own, ((axis, step),), offset)
    )


def covers(r, parts: Sequence[Part], size: Expr) -> bool:
    """Whether these parts are all of one dimension."""
    if len({part.i for part in parts}) != 1:
        return False
    steps = {part.step for part in parts}
    if len(steps) == 1 and steps != {1}:
        (step,) = steps
        whole = [part.low for part in parts if r.sizes.same(part.high, size)]
        return {*range(step)} <= {*whole}
    reached = sympy.S.Zero
    while not r.sizes.same(reached, size):
        ends = [p.high for p in parts if p.step == 1 and r.sizes.same(p.low, reached)]
        ends = [e for e in ends if not r.sizes.same(e, reached)]
        if not ends:
            return False
        reached = ends[-1]
    return True


@rule("put")
def _unknown(r, **given):
    raise Refused("writing at positions that depend on values", "write with torch.where")
