"""In-place writes, as functionalized by the trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sympy
from sympy import Expr, floor

from codegen.importing.operations.joining import unsqueezed
from codegen.importing.operations.picking import hot
from codegen.importing.operations.table import before, rule
from codegen.importing.values import CONDITION, Refused, TreeValue, WrittenPart
from derive.language.torch_ops import reads, trees
from derive.language.torch_ops.trees import ONE, Tree


def put(pick: Tree, before: Tree, after: Tree) -> Tree:
    """``after`` where ``pick`` is 1, else ``before``."""
    rest = trees.product(trees.difference(ONE, pick), before)
    return trees.sum_of(rest, trees.product(pick, after))


@rule("index_put", "_unsafe_index_put")
def _index_put(r, x, indices, values, accumulate=False):
    """Write at a mask, or at index tensors that are broadcast together."""
    values, at = r.shapes.value(values), [i for i, v in enumerate(indices) if v is not None]
    if len(at) == 1 and indices[at[0]].kind == CONDITION:
        kept = indices[at[0]]
        kept = kept.along((*kept.dims, *((),) * (x.rank - at[0] - kept.rank)))
        values = r.sum_like(trees.sum_of, x, values) if accumulate else values
        return r.shapes.chosen(kept, values, x)
    before = r.shapes.as_number(x)
    for i in at:
        before = r.shapes.single(before, i)
    found, dims = r.shapes.aligned(*(indices[i] for i in at))
    own = {i: before.dims[i][0] for i in at if before.dims[i]}
    rows = {v.tree.args[0]: own[i] for v, i in zip(found, at, strict=True) if _is_row(r, v, own, i)}
    apart = [a for dim in dims for a in dim if a not in rows]
    to = {a: r.shapes.sibling(a, {*before.axes, *apart}) for a in apart if a in before.axes} | rows
    pick = ONE
    for v, i in zip(found, at, strict=True):
        if i in own and not (_is_row(r, v, own, i) and rows[v.tree.args[0]] == own[i]):
            moved = TreeValue(trees.renamed(v.tree, to), v.dims, v.kind, v.over)
            pick = trees.product(pick, hot(r, moved, own[i]))
    where = at[0] if at == list(range(at[0], at[-1] + 1)) else 0
    rest = [dim for j, dim in enumerate(before.dims) if j not in at]
    into = [*rest[:where], *(tuple(to.get(a, a) for a in dim) for dim in dims), *rest[where:]]
    values = r.shapes.as_number(values)
    values = r.shapes.moved(values.along(((),) * (len(into) - values.rank) + values.dims), into)
    several = [to.get(a, a) for a in apart if to.get(a, a) in pick.free]
    if accumulate:
        each = trees.broadcast(values.tree, [a for a in several if a not in values.tree.free])
        more = trees.total(trees.product(pick, each), several)
        return r.sum_like(trees.sum_of, before, TreeValue(more, before.dims))
    if not several:
        return before.of(put(pick, before.tree, values.tree))
    if {*several} & values.tree.free or trees.tensors_in(values.tree):
        raise Refused(
            "of entries with the same index torch keeps one and drops the rest",
            "add them up: accumulate=True, or index_add",
        )
    met = trees.compared(">", trees.total(pick, several), trees.ZERO)
    return before.of(trees.choice((values.tree, met), otherwise=before.tree))


def _is_row(r, v: TreeValue, own: dict[int, str], i: int) -> bool:
    """Whether an index is the position along the whole of its axis."""
    return v.tree.kind == "position" and i in own and r.sizes.alike(v.tree.args[0], own[i])


before |= {"select_scatter", "slice_scatter"}


# Slices


@rule("select_scatter")
def _select_scatter(r, x, src, dim, index):
    i = dim % x.rank
    at = r.shapes.bound(index, r.sizes.of(x.dims[i]))
    return written(r, x, unsqueezed(src, i), WrittenPart(i, at, at + 1))


@rule("slice_scatter")
def _slice_scatter(r, x, src, dim=0, start=None, end=None, step=1):
    """Long: torch's arguments."""
    i = dim % x.rank
    return written(r, x, src, r.shapes.bounded(x, i, start, end, step))


def written(r, x: TreeValue, src: TreeValue, part: WrittenPart) -> TreeValue:
    """``x`` with ``src`` written into a slice of a dimension."""
    i, size, left = part.i, r.sizes.of(x.dims[part.i]), None
    if x.dims[i] == () or covers(r, [part], size):
        return src if src.parts is not None else r.shapes.moved(src, x.dims)
    if x.parts is not None:
        parts = x.parts if src.parts is not None else (*x.parts, part)
        left = None if covers(r, parts, size) else parts
        x, src = replace(x, parts=None), replace(src, parts=None)
    before = r.shapes.single(r.shapes.as_number(x), i)
    src = r.shapes.single(r.shapes.as_number(src), i - x.rank)
    src = src.along(((),) * (x.rank - src.rank) + src.dims)
    rest = {a for j, d in enumerate(before.dims) for a in d if j != i}
    mine = tuple(r.shapes.sibling(a, rest) if a in rest else a for a in src.dims[i])
    src = r.shapes.moved(src, [mine if j == i else d for j, d in enumerate(before.dims)])
    (axis,) = before.dims[i]
    if mine:
        r.sizes.assume(r.sizes.of(mine), floor((part.high - part.low + part.step - 1) / part.step))
    laid, is_alone = laid_at(r, src, axis, part)
    if not (is_alone and before.tree == trees.ZERO):
        laid = trees.choice((laid, _inside(axis, part, size)), otherwise=before.tree)
    return replace(before.of(laid), parts=left)


def _inside(axis: str, part: WrittenPart, size: Expr) -> Tree:
    """The condition of being inside a slice."""
    here = trees.position(axis)
    if sympy.expand(part.high - part.low) == 1:
        return trees.compared("==", here, trees.number(part.low))
    where = []
    if part.step != 1:
        from_first = trees.difference(here, trees.number(part.low % part.step))
        steps = trees.call("Mod", from_first, trees.number(part.step))
        where.append(trees.compared("==", steps, trees.ZERO))
    if part.low != 0 and (part.step == 1 or not 0 <= part.low < part.step):
        where.append(trees.compared(">=", here, trees.number(part.low)))
    if part.high != size:
        where.append(trees.compared("<", here, trees.number(part.high)))
    return where[0] if len(where) == 1 else trees.joined("and", *where)


def laid_at(r, src: TreeValue, axis: str, part: WrittenPart) -> tuple[Tree, bool]:
    """The entries of ``src`` laid along ``axis`` at the slice; and whether the rest is 0."""
    own = src.dims[part.i][0] if src.dims[part.i] else ""
    if own in r.shapes.windows and r.shapes.windows[own][0] not in src.tree.free and part.step == 1:
        whole, low, _ = r.shapes.windows[own]
        tree, own, is_alone = trees.renamed(src.tree, {own: whole}), whole, False
    else:
        src, low, is_alone = r.shapes.plain(src, part.i), sympy.S.Zero, True
        own, tree = (src.dims[part.i] or ("",))[0], src.tree
    if own not in tree.free:
        return tree, False
    step = sympy.Rational(1, part.step)
    offset = low - part.low * step
    if (own, step, offset) == (axis, 1, 0):
        return tree, False
    word = "Pad" if step == 1 and r.sizes.hint(offset) < 0 else ""
    return reads.at(tree, own, ((axis, step),), offset, word=word), is_alone


def covers(r, parts: Sequence[WrittenPart], size: Expr) -> bool:
    """Whether these parts cover the whole dimension."""
    if len({part.i for part in parts}) != 1:
        return False
    ends = {part.high for part in parts if not r.sizes.same(part.high, size)}
    for step in {part.step for part in parts if not ends and part.step != 1}:
        if {*range(step)} <= {part.low for part in parts if part.step == step}:
            return True
    reached = [sympy.S.Zero]
    for end in reached:  # grows during the loop
        more = (p.high for p in parts if p.step == 1 and r.sizes.at_most(p.low, end))
        reached += [e for e in dict.fromkeys(more) if e not in reached]
    return any(r.sizes.same(end, size) for end in reached)


@rule("put")
def _unknown(r, **given):
    raise Refused("writing at positions that depend on values", "write with torch.where")
