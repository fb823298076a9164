"""Indexing with labels and indices, as sums with one-hots."""

from __future__ import annotations

from codegen.importing.operations.table import rule
from codegen.importing.shapes import name_of
from codegen.importing.values import ARGMAX, CONDITION, LABEL, Refused, TreeValue
from derive.language.torch_ops import trees
from derive.language.torch_ops.trees import Tree

AS_LABELS = "pass the indices as an integer argument"


def hot(r, label: TreeValue, axis: str) -> Tree:
    """The one-hot of any kind of index along an axis."""
    if label.kind == LABEL:
        r.shapes.indices.setdefault(name_of(label.tree), set()).add(axis)
        return trees.one_hot(label.tree, axis)
    if label.kind == ARGMAX:
        return trees.renamed(label.tree, {label.over: axis})
    if trees.tensors_in(label.tree):
        raise Refused("a computed index", AS_LABELS)
    return trees.indicator(trees.compared("==", trees.position(axis), label.tree))


def picked(r, label: TreeValue, x: TreeValue, i: int) -> Tree:
    """Index dimension i of x by a label whose dimensions match the rest of x."""
    x = r.shapes.single(x, i)
    if x.dims[i] == ():
        return x.tree
    (axis,) = x.dims[i]
    if axis not in x.tree.free:
        return x.tree
    return trees.total(trees.product(hot(r, label, axis), x.tree), [axis])


def gathered(r, x, dim, index):
    i = dim % x.rank
    x = r.shapes.single(r.shapes.as_number(x), i)
    hole = x.with_dim(i, ())
    if index.dims[i] and x.dims[i] and set(index.dims[i]) & set(x.axes):
        x = apart(r, x, i, index.axes)
        hole = x.with_dim(i, ())
    (there, label), dims = r.shapes.aligned(hole, index)
    found = x.of(there.tree).along(x.dims[i] if j == i else d for j, d in enumerate(dims))
    return TreeValue(picked(r, label, found, i), dims)


def apart(r, x: TreeValue, i: int, used) -> TreeValue:
    """Rename the axis of dimension i if the index uses it."""
    (axis,) = x.dims[i]
    other = r.shapes.sibling(axis, {*used, *x.axes})
    return x.with_dim(i, (other,)).of(trees.renamed(x.tree, {axis: other}))


@rule("index", called="picked")
def _index(r, x, indices):
    indices = [*indices, *[None] * (x.rank - len(indices))]
    at = [i for i, v in enumerate(indices) if v is not None]
    if any(indices[i].kind == CONDITION for i in at):
        raise Refused(
            "how many entries a mask selects depends on its values",
            "multiply by the mask, and divide by its sum instead of a mean",
        )
    return indexed(r, r.shapes.as_number(x), indices, at)


def indexed(r, x: TreeValue, indices, at) -> TreeValue:
    """Index with tensors that are broadcast together; positions along an axis are that axis."""
    for i in at:
        x = r.shapes.single(x, i)
    values, dims = r.shapes.aligned(*(indices[i] for i in at))
    rows = {v.tree.args[0] for v in values if v.tree.kind == "position"}
    for i in at:
        if set(x.dims[i]) & ({a for d in dims for a in d} - rows):
            x = apart(r, x, i, {a for d in dims for a in d})
    tree, whole = x.tree, x
    for v, i in zip(values, at, strict=True):
        (axis,) = whole.dims[i] or ("",)
        own = v.tree.args[0] if v.tree.kind == "position" else ""
        if own and r.sizes.alike(axis, own):
            tree = trees.renamed(tree, {axis: own})
        else:
            tree = picked(r, v, whole.of(tree), i)
    rest = [d for j, d in enumerate(x.dims) if j not in at]
    together = at == list(range(at[0], at[-1] + 1))
    where = at[0] if together else 0
    clash = {a for d in dims for a in d} & {a for d in rest for a in d}
    to = {a: r.shapes.sibling(a, {*x.axes, *(b for d in dims for b in d)}) for a in sorted(clash)}
    if to:
        raise Refused(f"an index along {', '.join(to)} indexes the same axis", AS_LABELS)
    return TreeValue(tree, (*rest[:where], *dims, *rest[where:]))
