"""Losses: their entrywise terms, and torch's three reductions."""

from __future__ import annotations

import sympy

from derive.language.torch_ops.formulas import (
    Abs,
    equal,
    exp,
    function,
    held,
    log,
    sqrt,
    unequal,
    where,
)
from derive.language.torch_ops.pointwise import softplus
from derive.language.torch_ops.products import distance
from derive.language.torch_ops.reducing import mean
from derive.language.torch_ops.table import (
    FLOAT,
    Flag,
    Number,
    Order,
    Reduction,
    Tensor,
    op,
)
from derive.language.torch_ops.trees import Tree, number

PI, TINY = number(sympy.pi), number(sympy.Rational(1, 10**12))
LOWEST_LOG = -100  # torch's binary_cross_entropy clamps its logarithms here


def reduced(a, losses, reduction):
    if reduction == "none":
        return losses
    if reduction == "batchmean":
        a.refuse('reduction="batchmean"', "only kl_div has it")
    losses = a.let("losses", losses)
    return mean(a, losses) if reduction == "mean" else a.sum(losses)


def times(w, e):
    return w * e


def weighed(a, losses, weight, reduction):
    """The mean divides by the sum of the weights."""
    if weight is None:
        return reduced(a, losses, reduction)
    losses = a.each(times, weight, losses)
    if reduction != "mean":
        return reduced(a, losses, reduction)
    return a.each(lambda e, w: e / w, a.sum(a.let("losses", losses)), a.sum(weight))


def loss(name: str, formula):
    """Register a loss whose terms are a formula of two entries."""

    @op(name, forms="F", of=FLOAT)
    def meaning(a, input: Tensor, target: Tensor, *, reduction: Reduction = "mean"):
        return reduced(a, a.each(formula, input, target), reduction)


def loss_of_difference(name: str, formula):
    @op(name, forms="F", of=FLOAT)
    def meaning(a, input: Tensor, target: Tensor, *, reduction: Reduction = "mean",
                weight: Tensor | None = None):  # fmt: skip
        diff = a.let("diff", a.each(lambda x, y: x - y, input, target))
        return weighed(a, a.each(formula, diff), weight, reduction)


loss_of_difference("mse_loss", lambda d: d**2)
loss_of_difference("l1_loss", Abs)
loss("soft_margin_loss", lambda x, y: log(1 + exp(-y * x)))


@op("huber_loss", forms="F", of=FLOAT)
def _huber(a, input: Tensor, target: Tensor, reduction: Reduction = "mean", delta: Number = 1.0,
           weight: Tensor | None = None):  # fmt: skip
    diff = a.let("diff", a.each(lambda x, y: x - y, input, target))
    size = a.let("distance", a.each(Abs, diff))
    bent = lambda d, n, e: where(n < e, d**2 / 2, e * (n - e / 2))  # noqa: E731
    losses = a.each(bent, diff, size, delta)
    return reduced(a, losses if weight is None else a.each(times, weight, losses), reduction)


@op("binary_cross_entropy", forms="F", of=FLOAT)
def _binary(
    a, input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: Reduction = "mean"
):
    def formula(p: Tree, y: Tree) -> Tree:
        return -(y * held(log(p), LOWEST_LOG) + (1 - y) * held(log(1 - p), LOWEST_LOG))

    losses = a.each(formula, a.let("p", input), target)
    losses = losses if weight is None else a.each(times, weight, losses)
    return reduced(a, losses, reduction)


@op("binary_cross_entropy_with_logits", forms="F", of=FLOAT)
def _binary_of_logits(
    a, input: Tensor, target: Tensor, weight: Tensor | None = None,
    reduction: Reduction = "mean", pos_weight: Tensor | None = None,
):  # fmt: skip
    z = a.let("z", input)
    yes = a.each(lambda y, z: y * -softplus(-z), target, z)
    yes = yes if pos_weight is None else a.each(lambda w, e: w * e, pos_weight, yes)
    losses = a.each(lambda e, y, z: -(e + (1 - y) * -softplus(z)), yes, target, z)
    losses = losses if weight is None else a.each(times, weight, losses)
    return reduced(a, losses, reduction)


@op("kl_div", forms="F", of=FLOAT)
def _kl_div(
    a, input: Tensor, target: Tensor, *, reduction: Reduction = "mean", log_target: Flag = False
):
    t = a.let("target", target)
    of_log = lambda t, x: exp(t) * (t - x)  # noqa: E731
    of_share = lambda t, x: where(equal(t, 0), 0, t * log(t)) - t * x  # noqa: E731
    losses = a.each(of_log if log_target else of_share, t, input)
    if reduction != "batchmean":
        return reduced(a, losses, reduction)
    count = a.count(input, [0])
    return a.each(lambda e: e / count, reduced(a, losses, "sum"))


@op("margin_ranking_loss", forms="F", of=FLOAT)
def _margin_ranking(a, input1: Tensor, input2: Tensor, target: Tensor, margin: Number = 0,
                    reduction: Reduction = "mean"):  # fmt: skip
    formula = lambda x, z, y, m: held(-y * (x - z) + m, 0)  # noqa: E731
    return reduced(a, a.each(formula, input1, input2, target, margin), reduction)


@op("smooth_l1_loss", forms="F", of=FLOAT)
def _smooth_l1(a, input: Tensor, target: Tensor, *, reduction: Reduction = "mean",
               beta: Number = 1.0):  # fmt: skip
    diff = a.let("diff", a.each(lambda x, y: x - y, input, target))
    if a.is_zero(beta):
        return reduced(a, a.each(Abs, diff), reduction)
    size = a.let("distance", a.each(Abs, diff))
    bent = lambda d, n, e: where(n < e, d**2 / (2 * e), n - e / 2)  # noqa: E731
    return reduced(a, a.each(bent, diff, size, beta), reduction)


@op("poisson_nll_loss", forms="F", of=FLOAT)
def _poisson(
    a, input: Tensor, target: Tensor, log_input: Flag = True, full: Flag = False, *,
    eps: Number = 1e-8, reduction: Reduction = "mean",
):  # fmt: skip
    """With ``full``, add Stirling's approximation of log(y!) where y is above 1."""
    of_log = lambda x, y, e: exp(x) - y * x  # noqa: E731
    of_rate = lambda x, y, e: x - y * log(x + e)  # noqa: E731
    losses = a.each(of_log if log_input else of_rate, input, target, eps)
    stirling = lambda y: y * log(y) - y + log(2 * PI * y) / 2  # noqa: E731
    if full:
        more = a.each(lambda y: where(y <= 1, 0, stirling(y)), target)
        losses = a.each(lambda e, s: e + s, losses, more)
    return reduced(a, losses, reduction)


@op("gaussian_nll_loss", forms="F", of=FLOAT)
def _gaussian(
    a, input: Tensor, target: Tensor, var: Tensor, full: Flag = False, eps: Number = 1e-6,
    reduction: Reduction = "mean",
):  # fmt: skip
    """As in torch, a variance below eps counts as eps, and its gradient passes."""
    var = var if var.rank == input.rank else a.unsqueezed(var, var.rank)
    detach = function("Detach")
    v = a.let("var", a.each(lambda v, e: v + detach(where(v < e, e - v, 0)), var, eps))
    halves = lambda x, y, v: (log(v) + (x - y) ** 2 / v) / 2  # noqa: E731
    losses = a.each(halves, input, target, v)
    if full:
        losses = a.each(lambda e: e + log(2 * PI) / 2, losses)
    return reduced(a, losses, reduction)


@op("hinge_embedding_loss", forms="F", of=FLOAT)
def _hinge_embedding(a, input: Tensor, target: Tensor, margin: Number = 1.0, *,
                     reduction: Reduction = "mean"):  # fmt: skip
    def formula(x: Tree, y: Tree, m: Tree) -> Tree:
        apart = where(unequal(y, 1), held(m - x, 0), 0)
        return where(unequal(y, -1), x, 0) + apart

    return reduced(a, a.each(formula, input, target, margin), reduction)


@op("cosine_embedding_loss", forms="F", of=FLOAT)
def _cosine_embedding(a, input1: Tensor, input2: Tensor, target: Tensor, margin: Number = 0, *,
                      reduction: Reduction = "mean"):  # fmt: skip
    """torch adds 1e-12 to both squared norms."""
    last = input1.rank - 1
    squares = [a.each(lambda s: s + TINY, a.sum(a.each(lambda x: x**2, x), last))
               for x in (input1, input2)]  # fmt: skip
    dots = a.sum(a.each(lambda x, y: x * y, input1, input2), last)
    cosine = a.let("similarity", a.each(lambda d, u, v: d / sqrt(u * v), dots, *squares))
    formula = lambda s, y, m: where(  # noqa: E731
        equal(y, 1), 1 - s, where(equal(y, -1), held(s - m, 0), 0)
    )
    return reduced(a, a.each(formula, cosine, target, margin), reduction)


def _triplets(a, near, far, between, options):
    margin, swap, reduction = options
    near, far = a.let("near", near), a.let("far", far)
    if swap:
        far = a.each(lambda d, e: where(d <= e, d, e), far, a.let("between", between()))
    losses = a.each(lambda n, f, m: held(n - f + m, 0), near, far, margin)
    return reduced(a, losses, reduction)


@op("triplet_margin_loss", forms="F", of=FLOAT)
def _triplet(
    a, anchor: Tensor, positive: Tensor, negative: Tensor, margin: Number = 1.0, p: Order = 2,
    eps: Number = 1e-6, swap: Flag = False, *, reduction: Reduction = "mean",
):  # fmt: skip
    pairs = ((anchor, positive), (anchor, negative), (positive, negative))
    near, far, between = (lambda x=x, y=y: distance(a, x, y, (p, eps, False)) for x, y in pairs)
    return _triplets(a, near(), far(), between, (margin, swap, reduction))


@op("triplet_margin_with_distance_loss", forms="F", of=FLOAT)
def _triplet_of_distance(
    a, anchor: Tensor, positive: Tensor, negative: Tensor, *, margin: Number = 1.0,
    swap: Flag = False, reduction: Reduction = "mean",
):  # fmt: skip
    return _triplet(a, anchor, positive, negative, margin, swap=swap, reduction=reduction)


@op("multilabel_soft_margin_loss", forms="F", of=FLOAT)
def _multilabel_soft_margin(a, input: Tensor, target: Tensor, weight: Tensor | None = None, *,
                            reduction: Reduction = "mean"):  # fmt: skip
    yes = lambda x, y: y * softplus(-x) + (1 - y) * softplus(x)  # noqa: E731
    losses = a.each(yes, a.let("z", input), target)
    losses = losses if weight is None else a.each(times, weight, losses)
    return reduced(a, mean(a, losses, input.rank - 1), reduction)
