"""Sums, means, variances, norms, maxima, softmax."""

from __future__ import annotations

from codegen.importing import trees
from codegen.importing.operations.pointwise import exp, larger, log, smaller, sqrt
from codegen.importing.operations.table import operation, rule
from codegen.importing.trees import ZERO
from codegen.importing.values import ARGMAX, LABEL, Refused, Value

ARG_MAX_ONLY = "use the values; indices of maxima may only index, as in x.gather(1, index)"


@rule("sum", called="total")
def _sum(r, x, dim=None, keepdim=False):
    return r.sum(x, dim, keepdim)


@rule("mean", called="mean")
def _mean(r, x, dim=None, keepdim=False):
    return r.mean(r.as_number(x), dim, keepdim)


def spread(r, x, dims, keepdim, correction) -> tuple[Value, Value]:
    """The variance and the mean, with a statement for each step."""
    x = r.let("u", r.as_number(x))
    whole = r.mean(x, dims, keepdim=True)
    mean = r.let("mean", whole)
    diff = r.let("diff", r.sum_like(trees.difference, x, mean))
    squares = r.sum(r.pointwise(trees.square, diff), dims, keepdim)
    count = r.number(r.count(x, dims) - correction)
    var = squares.of(trees.quotient(squares.tree, count))
    if keepdim:
        return var, mean
    gone = r.positions(x, dims)
    return var, Value(mean.tree, tuple(d for i, d in enumerate(mean.dims) if i not in gone))


@rule("var", "std", "var_mean", "std_mean", called="var")
def _var(r, x, dim=None, unbiased=True, keepdim=False, correction=None):
    how = int(unbiased) if correction is None else int(correction)
    var, mean = spread(r, x, dim, keepdim, how)
    if operation(r).startswith("std"):
        var = r.pointwise(sqrt, r.let("var", var))
    return [var, mean] if operation(r).endswith("mean") else var


@rule("linalg_vector_norm", called="norm")
def _vector_norm(r, x, ord=2, dim=None, keepdim=False):
    return norm(r, x, ord, dim, keepdim)


@rule("norm", called="norm")
def _norm(r, x, p=2, dim=None, keepdim=False):
    return norm(r, x, 2 if p is None else p, dim, keepdim)


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


@rule("amax", called="largest")
def _amax(r, x, dim=(), keepdim=False):
    return r.largest(x, dim, keepdim)


@rule("amin", called="smallest")
def _amin(r, x, dim=(), keepdim=False):
    return _least(r, x, dim, keepdim)


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


@rule("argmax")
def _argmax(r, x, dim=None, keepdim=False):
    if dim is None:
        raise Refused("argmax over all entries", ARG_MAX_ONLY)
    return hits(r, x, dim, keepdim)


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


def softmax(r, x, dim) -> Value:
    _, counts = exponentials(r, x)
    return r.pointwise(trees.quotient, counts, r.sum(counts, dim, keepdim=True))


def log_sum_exp(r, x, dim, keepdim=False) -> tuple[Value, Value]:
    """(scores, the logarithm of the sum of their exponentials)."""
    x, counts = exponentials(r, x)
    return x, r.pointwise(log, r.sum(counts, dim, keepdim))


def log_softmax(r, x, dim) -> Value:
    x, whole = log_sum_exp(r, x, dim, keepdim=True)
    return r.sum_like(trees.difference, x, whole)


@rule("softmax", "_softmax", "_safe_softmax", called="probs")
def _softmax_rule(r, x, dim, half_to_float=False):
    return softmax(r, x, dim)


@rule("log_softmax", "_log_softmax", called="logprobs")
def _log_softmax_rule(r, x, dim, half_to_float=False):
    return log_softmax(r, x, dim)


@rule("logsumexp", called="log_z")
def _logsumexp(r, x, dim, keepdim=False):
    return log_sum_exp(r, x, dim, keepdim)[1]


@rule("count_nonzero")
def _count_nonzero(r, x, dim=None):
    if x.kind == LABEL:
        raise Refused("counting labels", "count a mask")
    counted = r.as_condition(x)
    return r.sum(Value(trees.indicator(counted.tree), counted.dims), dim)
