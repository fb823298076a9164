"""Tensors that are made of nothing: constants, positions, triangles."""

from __future__ import annotations

from codegen.importing.operations.table import rule
from codegen.importing.operations.viewing import shape_of
from codegen.importing.values import CONDITION, Refused, Value
from derive.torch_ops import trees
from derive.torch_ops.trees import ZERO


def constant(r, value, shape) -> Value:
    """The same everywhere; of booleans a condition."""
    found = Value(r.number(value), r.by_size(shape))
    is_bool = str(r.node.meta["val"].dtype) == "torch.bool"
    return r.as_condition(found) if is_bool else found


@rule("ones", "new_ones", "ones_like")
def _ones(r, x=None):
    return constant(r, 1, shape_of(r)) if x is None or x.rank == 0 else like(r, x, 1)


@rule("zeros", "new_zeros", "zeros_like", "empty", "new_empty", "empty_like")
def _zeros(r, x=None):
    """What is empty has no number, as a run shows, until all of it is written."""
    return constant(r, 0, shape_of(r)) if x is None or x.rank == 0 else like(r, x, 0)


def like(r, x: Value, value) -> Value:
    """Along the dimensions of x, if it has the shape of x."""
    shape = shape_of(r)
    same = len(shape) == x.rank and all(
        r.sizes.hint(r.sizes.plain(n)) == r.sizes.hint(r.sizes.of(d))
        for n, d in zip(shape, x.dims, strict=True)
    )
    if not same:
        return constant(r, value, shape)
    found = Value(r.number(value), x.dims)
    return r.as_condition(found) if str(r.node.meta["val"].dtype) == "torch.bool" else found


@rule("full", "new_full")
def _full(r, fill_value, x=None, size=None):
    return constant(r, fill_value, shape_of(r))


@rule("full_like", "fill")
def _full_like(r, x, fill_value=None, value=None):
    return like(r, x, value if fill_value is None else fill_value)


@rule("scalar_tensor")
def _scalar_tensor(r, s):
    return Value(r.number(s))


@rule("copy")
def _copy(r, x, src):
    found = r.value(src)
    aligned, dims = r.aligned(Value(ZERO, x.dims), r.as_number(found))
    return Value(aligned[1].tree, dims) if found.kind != CONDITION else found


@rule("arange", called="positions")
def _arange(r, end=None, start=0, step=1):
    """Only integers from 0 by 1 are positions; others are counted from there."""
    (dim,) = r.by_size(shape_of(r))
    tree = trees.position(dim[0]) if dim else ZERO
    tree = trees.product(r.number(step), tree)
    return Value(trees.sum_of(tree, r.number(start)), (dim,))


@rule("eye")
def _eye(r, n=None, m=None):
    (i,), (j,) = r.by_size(shape_of(r))
    here = trees.compared("==", trees.position(i), trees.position(j))
    is_bool = str(r.node.meta["val"].dtype) == "torch.bool"
    kept = Value(here, ((i,), (j,)), CONDITION)
    return kept if is_bool else r.as_number(kept)


def triangle(r, x: Value, relation: str, diagonal: int) -> Value:
    for i in (x.rank - 2, x.rank - 1):
        x = r.single(x, i)
    (i,), (j,) = x.dims[-2:]
    if diagonal == (1 if relation == ">=" else -1):  # strictly on one side of the main diagonal
        relation, diagonal = relation[0], 0
    shifted = trees.sum_of(trees.position(i), r.number(diagonal))
    here = trees.compared(relation, trees.position(j), shifted)
    if x.kind == CONDITION:
        return x.of(trees.joined("and", x.tree, here))
    whole = trees.condition_of(x.tree)
    if whole is not None:
        return x.of(trees.indicator(trees.joined("and", whole, here)))
    return x.of(trees.choice((x.tree, here), otherwise=ZERO))


@rule("diagonal")
def _diagonal(r, x, offset=0, dim1=0, dim2=1):
    """The entries whose two indices are equal; their dimension stands last."""
    if offset:
        raise Refused("a diagonal other than the main one", "use the main diagonal")
    first, second = dim1 % x.rank, dim2 % x.rank
    for i in (first, second):
        x = r.single(r.as_number(x), i)
    (a,), (b,) = x.dims[first], x.dims[second]
    here = trees.compared("==", trees.position(a), trees.position(b))
    tree = trees.choice((x.tree, here), otherwise=ZERO)
    tree = trees.total(tree, [axis for axis in (b,) if axis in tree.free])
    rest = [d for i, d in enumerate(x.dims) if i not in (first, second)]
    return Value(tree, (*rest, (a,)))


@rule("diag", "diag_embed")
def _diag(r, x, diagonal=0, offset=0):
    if diagonal or offset or (x.rank != 1 and str(r.node.target).startswith("aten.diag_embed")):
        raise Refused("a diagonal other than the main one", "use the main diagonal")
    if x.rank == 2:
        return _diagonal(r, x)
    x = r.single(r.as_number(x), 0)
    (a,) = x.dims[0]
    b = r.sibling(a, [a])
    here = trees.compared("==", trees.position(a), trees.position(b))
    entries = trees.renamed(
        x.tree, {a: b}
    )  # so that the notation knows how long the second axis is
    return Value(trees.choice((entries, here), otherwise=ZERO), ((a,), (b,)))
