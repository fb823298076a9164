"""Losses: the terms of every entry, and torch's three ways to reduce them."""

from __future__ import annotations

import sympy

from codegen.importing.examples import IGNORED
from codegen.importing.operations.picking import hot
from codegen.importing.operations.pointwise import held, log
from codegen.importing.operations.reducing import log_softmax
from codegen.importing.operations.table import rule
from codegen.importing.values import LABEL, Refused, Value
from derive.torch_ops import trees
from derive.torch_ops.trees import ONE, TWO, ZERO, Tree

NONE, MEAN, SUM = range(3)  # torch's numbers for the reductions
TINY = sympy.Rational(1, 10**12)  # that torch's cosine_embedding_loss adds
LOWEST_LOG = -100  # torch's binary_cross_entropy holds its logarithms above it


def reduced(r, losses: Value, reduction: int) -> Value:
    if reduction == NONE:
        return losses
    losses = r.let("losses", losses)
    return r.mean(losses) if reduction == MEAN else r.sum(losses)


def of_difference(f):
    """A loss of x - target."""

    def of(r, x, target, reduction=MEAN):
        diff = r.let("diff", r.sum_like(trees.difference, x, target))
        return reduced(r, r.pointwise(f, diff), reduction)

    return of


rule("mse_loss")(of_difference(trees.square))
rule("l1_loss")(of_difference(lambda d: trees.call("Abs", d)))


def _bent(r, x, target, reduction, shape) -> Value:
    """Quadratic near 0 and linear beyond an edge."""
    quadratic, linear, edge = shape
    diff = r.let("diff", r.sum_like(trees.difference, x, target))
    size = r.let("distance", r.pointwise(lambda d: trees.call("Abs", d), diff))

    def of(d: Tree, n: Tree) -> Tree:
        return trees.choice((quadratic(d), trees.compared("<", n, edge)), otherwise=linear(n))

    return reduced(r, r.pointwise(of, diff, size), reduction)


@rule("smooth_l1_loss")
def _smooth_l1(r, x, target, reduction=MEAN, beta=1.0):
    edge, twice = trees.number(beta), trees.number(2 * beta)

    def linear(n: Tree) -> Tree:
        return trees.difference(n, trees.quotient(edge, TWO))

    shape = (lambda d: trees.quotient(trees.square(d), twice), linear, edge)
    return _bent(r, x, target, reduction, shape)


@rule("poisson_nll_loss")
def _poisson(r, x, target, log_input, full, eps, reduction):
    """Long: torch's arguments."""
    if full:
        raise Refused("Stirling's approximation in a Poisson loss", "leave out full")

    def of(x: Tree, y: Tree) -> Tree:
        if log_input:
            return trees.difference(trees.call("exp", x), trees.product(y, x))
        return trees.difference(x, trees.product(y, log(trees.sum_of(x, trees.number(eps)))))

    return reduced(r, r.pointwise(of, x, target), reduction)


@rule("hinge_embedding_loss")
def _hinge_embedding(r, x, target, margin=1.0, reduction=MEAN):
    def of(x: Tree, y: Tree) -> Tree:
        apart = held(trees.difference(trees.number(margin), x), ZERO, None)
        yes = trees.choice((x, trees.compared("!=", y, trees.number(-1))), otherwise=ZERO)
        no = trees.choice((apart, trees.compared("!=", y, ONE)), otherwise=ZERO)
        return trees.sum_of(yes, no)

    return reduced(r, r.pointwise(of, x, target), reduction)


@rule("cosine_embedding_loss")
def _cosine_embedding(r, input1, input2, target, margin=0.0, reduction=MEAN):
    """torch adds 1e-12 to both squared norms."""
    tiny = trees.number(TINY)

    def length(v) -> Value:
        return r.sum_like(trees.sum_of, r.sum(r.pointwise(trees.square, v), -1), Value(tiny))

    dots = r.sum(r.pointwise(trees.product, input1, input2), -1)
    norms = r.pointwise(
        lambda a, b: trees.call("sqrt", trees.product(a, b)), length(input1), length(input2)
    )
    similarity = r.let("similarity", r.pointwise(trees.quotient, dots, norms))

    def of(s: Tree, y: Tree) -> Tree:
        apart = held(trees.difference(s, trees.number(margin)), ZERO, None)
        together = trees.difference(ONE, s)
        is_same = trees.compared("==", y, ONE)
        is_other = trees.compared("==", y, trees.number(-1))
        return trees.choice((together, is_same), (apart, is_other), otherwise=ZERO)

    return reduced(r, r.pointwise(of, similarity, target), reduction)


@rule("triplet_margin_loss")
def _triplet(r, anchor, positive, negative, margin, p, eps, swap, reduction):
    """Long: torch's arguments."""
    from codegen.importing.operations.reducing import norm

    def distance(other) -> Value:
        diff = r.sum_like(trees.difference, anchor, other)
        shifted = r.pointwise(lambda d: trees.sum_of(d, trees.number(eps)), diff)
        return norm(r, shifted, p, -1, False)

    if swap:
        raise Refused("a triplet loss with swapped distances", "leave out swap")
    near = r.let("near", distance(positive))
    far = r.let("far", distance(negative))
    gap = r.sum_like(trees.difference, near, far)
    shifted = r.pointwise(lambda g: held(trees.sum_of(g, trees.number(margin)), ZERO, None), gap)
    return reduced(r, shifted, reduction)


# Labels


@rule("cross_entropy_loss")
def _cross_entropy(
    r, x, target, weight=None, reduction=MEAN, ignore_index=IGNORED, label_smoothing=0.0
):
    """Long: torch's arguments."""
    i = 1 if x.rank > 1 else 0
    logprobs = r.let("logprobs", log_softmax(r, x, i))
    if target.kind == LABEL or target.rank < x.rank:
        how = weight, reduction, ignore_index, label_smoothing
        return of_labels(r, logprobs, target, i, how)
    if label_smoothing:
        count = r.number(r.sizes.of(x.dims[i]))

        def smooth(t: Tree) -> Tree:
            kept = trees.product(trees.number(1 - label_smoothing), t)
            return trees.sum_of(kept, trees.quotient(trees.number(label_smoothing), count))

        target = r.pointwise(smooth, target)
    logprobs = (
        logprobs
        if weight is None
        else r.pointwise(trees.product, facing(r, weight, x, i), logprobs)
    )
    losses = r.sum(r.pointwise(trees.product, target, logprobs), i)
    losses = r.let("losses", losses.of(trees.minus(losses.tree)))
    if reduction != MEAN:
        return losses if reduction == NONE else r.sum(losses)
    return r.mean(losses) if losses.rank else losses


@rule("nll_loss", "nll_loss_nd", "nll_loss2d")
def _nll(r, x, target, weight=None, reduction=MEAN, ignore_index=IGNORED):
    return of_labels(r, x, target, 1 if x.rank > 1 else 0, (weight, reduction, ignore_index, 0.0))


def facing(r, weight: Value, x: Value, i: int) -> Value:
    """A weight for each class, in the dimension of the classes."""
    return weight.along((*((),) * i, weight.dims[0], *((),) * (x.rank - i - 1)))


def of_labels(r, logprobs: Value, labels: Value, i: int, how) -> Value:
    """The mean is over the labels that count, each with the weight of its class."""
    weight, reduction, ignored, smoothing = how
    x = r.single(r.as_number(logprobs), i)
    rows = x.along(d for j, d in enumerate(x.dims) if j != i)
    if any(axis in r.windows for axis in labels.axes) and rows.dims != labels.dims:
        x = r.moved(x, [*labels.dims[:i], x.dims[i], *labels.dims[i:]])  # no label can be shifted
        rows = x.along(d for j, d in enumerate(x.dims) if j != i)
    label = r.moved(labels, rows.dims)
    if not x.dims[i]:
        raise Refused("a class axis of size 1", "give it a name")
    (axis,) = x.dims[i]
    pick = hot(r, label, axis)
    factor = None if weight is None else r.moved(weight, ((axis,),)).tree
    terms = x.tree if factor is None else trees.product(factor, x.tree)
    losses = trees.minus(trees.total(trees.product(pick, terms), [axis]))
    counted = None
    if label.kind == LABEL and (r.ignoring or ignored != IGNORED):
        r.ignore(labels, ignored)
        counted = trees.kept(label.tree)
    if smoothing:
        smooth = trees.quotient(trees.total(terms, [axis]), r.number(r.sizes.of_axis[axis]))
        smooth = smooth if counted is None else trees.product(counted, smooth)
        kept = trees.product(trees.number(1 - smoothing), losses)
        losses = trees.difference(kept, trees.product(trees.number(smoothing), smooth))
    if factor is not None:
        counted = trees.total(trees.product(pick, factor), [axis])
    if reduction == NONE:
        return Value(losses, rows.dims)
    found = r.let("losses", Value(losses, rows.dims))
    if reduction == SUM:
        return r.sum(found)
    if counted is None:
        return r.mean(found)
    return r.pointwise(trees.quotient, r.sum(found), r.sum(Value(counted, rows.dims)))
