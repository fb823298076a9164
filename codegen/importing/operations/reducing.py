"""Reductions: sums, means, variances, norms, maxima, softmax."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from sympy import Mul

from codegen.importing.operations.pointwise import exp
from codegen.importing.values import ARGMAX, Refused, TreeValue
from derive.language.torch_ops import trees
from derive.language.torch_ops.trees import ZERO, Tree

ARG_MAX_ONLY = "use the values; indices of maxima may only index, as in x.gather(1, index)"


def positions(v: TreeValue, dims) -> list[int]:
    """Which dimensions are meant: all, where none is named."""
    if dims is None or (not isinstance(dims, int) and not list(dims)):
        return list(range(v.rank))
    named = [dims] if isinstance(dims, int) else dims
    return [d % v.rank for d in named] if v.rank else []


def dropped(v: TreeValue, tree: Tree, at: Sequence[int], keepdim: bool) -> TreeValue:
    kept = (i for i in range(v.rank) if keepdim or i not in at)
    return TreeValue(tree, tuple(() if i in at else v.dims[i] for i in kept))


def total(r, value: object, dims=None, keepdim: bool = False) -> TreeValue:
    v = r.shapes.as_number(value)
    at = positions(v, dims)
    axes = [axis for i in at for axis in v.dims[i]]
    tree = r.shapes.counted(v.tree, axes)
    times = Mul(*(r.sizes.of_axis[axis] for axis in axes if axis not in tree.free))
    summed = trees.total(tree, [axis for axis in axes if axis in tree.free])
    return dropped(v, trees.product(trees.number(times), summed), at, keepdim)


def largest(r, value: object, dims=None, keepdim: bool = False) -> TreeValue:
    v = r.shapes.as_number(value)
    at, tree = positions(v, dims), v.tree
    for axis in (axis for i in at for axis in v.dims[i]):
        tree = trees.largest(tree, axis) if axis in tree.free else tree
    return dropped(v, tree, at, keepdim)


def contracted(r, inputs: Sequence[str], output: str, values: Sequence[object]) -> TreeValue:
    """A sum of products, as einsum writes it: a letter for each dimension."""
    letters = "".join(dict.fromkeys(output + "".join(inputs)))
    found = [
        v.along(v.dims[spec.index(c)] if c in spec else () for c in letters)
        for spec, v in zip(inputs, map(r.shapes.as_number, values), strict=True)
    ]
    whole = r.pointwise(lambda *factors: reduce(trees.product, factors), *found)
    gone = [i for i, c in enumerate(letters) if c not in output]
    return total(r, whole, gone) if gone else whole


def hits(r, x, dim, keepdim) -> TreeValue:
    """The argmax, represented by its one-hot."""
    i = dim % x.rank
    x = r.shapes.single(r.shapes.as_number(x), i)
    if x.dims[i] == ():
        raise Refused("argmax along a dimension of size 1", ARG_MAX_ONLY)
    (axis,) = x.dims[i]
    here = trees.compared("==", x.tree, trees.largest(x.tree, axis))
    found = dropped(x, trees.indicator(here), [i], keepdim)
    return TreeValue(found.tree, found.dims, ARGMAX, axis)


# Softmax and similar


def exponentials(r, x) -> tuple[TreeValue, TreeValue]:
    """Return (scores, exp(scores)); a masked score of -oo has exponential 0."""
    x = r.let("scores", r.shapes.as_number(x))
    written = next(
        (s.tree for s in r.statements if x.tree == trees.tensor(s.name, x.tree.free)), x.tree
    )
    masked = trees.MINUS_INFINITY
    if written.kind != "choice" or masked not in (*written.args[:-1:2], written.args[-1]):
        return x, r.pointwise(exp, x)
    pairs, otherwise = trees.pairs_of(written)
    taken = [(ZERO if v == masked else exp(v), c) for v, c in pairs]
    last = ZERO if otherwise == masked else exp(otherwise)
    return x, r.let("counts", TreeValue(trees.choice(*taken, otherwise=last), x.dims))
