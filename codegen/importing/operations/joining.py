"""Concatenate and stack: equal parts, parts of any length, single entries."""

from __future__ import annotations

from collections.abc import Sequence

import sympy
from sympy import Integer, Symbol

from codegen.importing.values import TreeValue
from derive.language.torch_ops import reads, trees
from derive.language.torch_ops.text import number_text
from derive.language.torch_ops.trees import Tree


def unsqueezed(x: TreeValue, i: int) -> TreeValue:
    return x.along((*x.dims[:i], (), *x.dims[i:]))


def stack(r, tensors, dim) -> TreeValue:
    return laid_together(r, [unsqueezed(r.shapes.as_number(v), dim) for v in tensors], dim)


def laid_together(r, values, dim) -> TreeValue:
    """Combine values along a dimension of size 1, each multiplied by its one-hot."""
    found, dims = r.shapes.aligned(*values)
    i = dim % len(dims)
    used = {axis for d in dims for axis in d}
    count = r.sizes.axis_of(sympy.Integer(len(values)), used)
    tree = trees.ZERO
    for k, v in enumerate(found):
        picked = trees.one_hot(trees.number(k), count)
        tree = r.sum_like(
            trees.sum_of, TreeValue(tree, dims), v.of(trees.product(picked, v.tree))
        ).tree
    return TreeValue(tree, (*dims[:i], (count,), *dims[i + 1 :]))


def cat(r, tensors, i: int) -> TreeValue:
    values = [r.shapes.as_number(v) for v in tensors]
    if len(values) == 1:
        return values[0]
    widths = [r.sizes.of(v.dims[i]) for v in values]
    alike = all(r.sizes.same(w, widths[0]) for w in widths)
    if alike and all(v.dims[i] == () for v in values):
        return laid_together(r, values, i)
    values = [r.shapes.single(v, i) for v in values]
    turned = _turned(r, values, i)
    if turned is not None:
        return turned
    if not alike or any(axis in r.shapes.windows for v in values for axis in v.dims[i]):
        return one_after_the_other(r, values, i)
    whole = laid_together(r, [unsqueezed(v, i) for v in values], i)
    count, rest = whole.dims[i][0], whole.dims[i + 1][0]
    joined = whole.along((*whole.dims[:i], (count, rest), *whole.dims[i + 2 :]))
    return r.shapes.single(joined, i)


def one_after_the_other(r, values: Sequence[TreeValue], i: int) -> TreeValue:
    """Place each part at its offset, with 0 elsewhere, and add them."""
    values = [r.shapes.plain(v, i) for v in values]
    size = sympy.expand(sympy.Add(*(r.sizes.of(v.dims[i]) for v in values)))
    used = {axis for v in values for axis in v.axes}
    axis = r.sizes.formed(size, number_text(size), used)
    before, laid = sympy.S.Zero, []
    for v in values:
        if v.dims[i] == ():
            here = trees.compared("==", trees.position(axis), trees.number(before))
            tree = trees.ZERO
            if v.tree != tree:
                tree = trees.choice((v.tree, here), otherwise=tree)
        else:
            (own,) = v.dims[i]
            inside = v.tree if own in v.tree.free else trees.broadcast(v.tree, [own])
            tree = reads.at(inside, own, ((axis, 1),), -before, word="Pad")
        laid.append(v.with_dim(i, (axis,)).of(tree))
        before += r.sizes.of(v.dims[i])
    whole = laid[0]
    for v in laid[1:]:
        whole = r.sum_like(trees.sum_of, whole, v)
    return whole


def _turned(r, values: Sequence[TreeValue], i: int) -> TreeValue | None:
    """Swap the halves of one axis: each is read half an axis further."""
    found = [_half_of(r, v.tree) for v in values]
    if len(found) != 2 or None in found or [k for *_, k in found] != [1, 0]:
        return None
    (_, first, axis, _), (_, second, other, _) = found
    if first != second or axis != other:
        return None
    half = r.sizes.formed(r.sizes.of_axis[axis] / 2, f"{axis} / 2", values[0].axes)
    read = [
        (sign, reads.at(first, axis, ((axis, Integer(1)),), way * Symbol(half)))
        for (sign, *_), way in zip(found, (1, -1), strict=True)
    ]
    (one, left), (two, right) = read
    left = trees.minus(left) if one < 0 else left
    right = trees.minus(right) if two < 0 else right
    return values[0].with_dim(i, (axis,)).of(trees.sum_of(left, right))


def _half_of(r, tree: Tree) -> tuple[int, Tree, str, int] | None:
    """Return (sign, whole, axis, which half) if a tree is one of two equal parts of an axis."""
    if tree.kind == "minus":
        found = _half_of(r, tree.args[0])
        return None if found is None else (-found[0], *found[1:])
    tree = r.written_as(tree)
    if tree.kind != "sum" or tree.args[0].kind != "product":
        return None
    hot, split = tree.args[0].args
    if hot.kind != "one hot" or split.kind != "unflatten" or tree.args[1] != (hot.args[1],):
        return None
    whole, (axis,), (count, _) = split.args
    if count != hot.args[1] or r.sizes.of_axis[count] != 2:
        return None
    return 1, whole, axis, int(hot.args[0].args[0])
