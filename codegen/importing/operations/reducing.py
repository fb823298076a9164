"""Sums, means, variances, norms, maxima, softmax."""

from __future__ import annotations

from codegen.importing.operations.pointwise import exp, larger, smaller, sqrt
from codegen.importing.operations.table import rule
from codegen.importing.values import ARGMAX, Refused, Value
from derive.torch_ops import trees
from derive.torch_ops.trees import ZERO

ARG_MAX_ONLY = "use the values; indices of maxima may only index, as in x.gather(1, index)"


@rule("linalg_vector_norm", called="norm")
def _vector_norm(r, x, ord=2, dim=None, keepdim=False):
    return norm(r, x, ord, dim, keepdim)


@rule("frobenius_norm", "linalg_norm", called="norm")
def _frobenius(r, x, dim=None, keepdim=False):
    return norm(r, x, 2, dim, keepdim)


def norm(r, x, order, dim, keepdim) -> Value:
    if order == 1:
        return r.sum(r.pointwise(lambda x: trees.call("Abs", x), x), dim, keepdim)
    if order in (float("inf"), float("-inf")) or order <= 0:
        raise Refused(f"the norm of order {order}", "use x.abs().amax(), or a positive order")
    if order == 2:
        return r.pointwise(sqrt, r.sum(r.pointwise(trees.square, x), dim, keepdim))
    exponent = trees.number(order)
    powers = r.pointwise(lambda x: trees.power(trees.call("Abs", x), exponent), x)
    root = trees.quotient(trees.ONE, exponent)
    return r.pointwise(lambda x: trees.power(x, root), r.sum(powers, dim, keepdim))


# The largest


def _least(r, x, dim, keepdim) -> Value:
    found = r.largest(r.pointwise(trees.minus, x), dim, keepdim)
    return found.of(trees.minus(found.tree))


@rule("max", called="largest")
def _max(r, x, other=None, dim=None, keepdim=False):
    return _extreme(r, x, other, (dim, keepdim), (larger, r.largest))


@rule("min", called="smallest")
def _min(r, x, other=None, dim=None, keepdim=False):
    return _extreme(r, x, other, (dim, keepdim), (smaller, lambda *how: _least(r, *how)))


def _extreme(r, x, other, where, ways):
    """Three operations in one: of two tensors, along a dimension (with indices), of all entries."""
    of_two, along = ways
    if other is not None:
        return r.pointwise(of_two, x, other)
    dim, keepdim = where
    if dim is None:
        return along(x, None, False)
    return [along(x, [dim], keepdim), hits(r, x, dim, keepdim)]


def hits(r, x, dim, keepdim) -> Value:
    """The index of the largest entry, as the one-hot of it."""
    i = dim % x.rank
    x = r.single(r.as_number(x), i)
    if x.dims[i] == ():
        raise Refused("argmax along a dimension of size 1", ARG_MAX_ONLY)
    (axis,) = x.dims[i]
    here = trees.compared("==", x.tree, trees.largest(x.tree, axis))
    found = r.dropped(x, trees.indicator(here), [i], keepdim)
    return Value(found.tree, found.dims, ARGMAX, axis)


# Softmax and its like


def exponentials(r, x) -> tuple[Value, Value]:
    """(scores, their exponentials): a masked score, which is -oo, has 0."""
    x = r.let("scores", r.as_number(x))
    written = next(
        (s.tree for s in r.statements if x.tree == trees.tensor(s.name, x.tree.free)), x.tree
    )
    masked = trees.MINUS_INFINITY
    if written.kind != "choice" or masked not in (*written.args[:-1:2], written.args[-1]):
        return x, r.pointwise(exp, x)
    pairs, otherwise = trees.pairs_of(written)
    taken = [(ZERO if v == masked else exp(v), c) for v, c in pairs]
    last = ZERO if otherwise == masked else exp(otherwise)
    return x, r.let("counts", Value(trees.choice(*taken, otherwise=last), x.dims))
