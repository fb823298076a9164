"""Losses, and normalizations."""

from __future__ import annotations

from derive.torch_ops.formulas import Abs, equal, exp, held, log, sqrt, where
from derive.torch_ops.pointwise import softplus
from derive.torch_ops.reducing import mean, spread
from derive.torch_ops.table import FLOAT, Flag, Number, Reduction, Sizes, Tensor, op
from derive.torch_ops.trees import Tree

LOWEST_LOG = -100  # torch's binary_cross_entropy holds its logarithms above it


def reduced(a, losses, reduction):
    if reduction == "none":
        return losses
    losses = a.let("losses", losses)
    return mean(a, losses) if reduction == "mean" else a.sum(losses)


def loss(name: str, formula):
    """A loss whose terms are a formula of two entries."""

    @op(name, forms="F", of=FLOAT)
    def meaning(a, input: Tensor, target: Tensor, *, reduction: Reduction = "mean"):
        return reduced(a, a.each(formula, input, target), reduction)


def loss_of_difference(name: str, formula):
    @op(name, forms="F", of=FLOAT)
    def meaning(a, input: Tensor, target: Tensor, *, reduction: Reduction = "mean"):
        diff = a.let("diff", a.each(lambda x, y: x - y, input, target))
        return reduced(a, a.each(formula, diff), reduction)


loss_of_difference("mse_loss", lambda d: d**2)
loss_of_difference("l1_loss", Abs)
loss("soft_margin_loss", lambda x, y: log(1 + exp(-y * x)))


@op("huber_loss", forms="F", of=FLOAT)
def _huber(a, input: Tensor, target: Tensor, *, reduction: Reduction = "mean", delta: Number = 1.0):
    diff = a.let("diff", a.each(lambda x, y: x - y, input, target))
    size = a.let("distance", a.each(Abs, diff))
    bent = lambda d, n, e: where(n < e, d**2 / 2, e * (n - e / 2))  # noqa: E731
    return reduced(a, a.each(bent, diff, size, delta), reduction)


@op("binary_cross_entropy", forms="F", of=FLOAT)
def _binary(
    a, input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: Reduction = "mean"
):
    def formula(p: Tree, y: Tree) -> Tree:
        return -(y * held(log(p), LOWEST_LOG) + (1 - y) * held(log(1 - p), LOWEST_LOG))

    losses = a.each(formula, a.let("p", input), target)
    losses = losses if weight is None else a.each(lambda w, e: w * e, weight, losses)
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
    losses = losses if weight is None else a.each(lambda w, e: w * e, weight, losses)
    return reduced(a, losses, reduction)


@op("kl_div", forms="F", of=FLOAT)
def _kl_div(
    a, input: Tensor, target: Tensor, *, reduction: Reduction = "mean", log_target: Flag = False
):
    t = a.let("target", target)
    if log_target:
        return reduced(a, a.each(lambda t, x: exp(t) * (t - x), t, input), reduction)
    formula = lambda t, x: where(equal(t, 0), 0, t * log(t)) - t * x  # noqa: E731
    return reduced(a, a.each(formula, t, input), reduction)


@op("margin_ranking_loss", forms="F", of=FLOAT)
def _margin_ranking(a, input1: Tensor, input2: Tensor, target: Tensor, margin: Number = 0,
                    reduction: Reduction = "mean"):  # fmt: skip
    formula = lambda x, z, y, m: held(-y * (x - z) + m, 0)  # noqa: E731
    return reduced(a, a.each(formula, input1, input2, target, margin), reduction)


# Normalizations


def affine(a, y, weight, bias):
    y = y if weight is None else a.each(lambda w, y: w * y, weight, y)
    return y if bias is None else a.each(lambda y, b: y + b, y, bias)


@op("layer_norm", forms="F torch", called="normed", of=FLOAT)
def _layer_norm(
    a, input: Tensor, normalized_shape: Sizes, weight: Tensor | None = None,
    bias: Tensor | None = None, eps: Number = 1e-5,
):  # fmt: skip
    dims = tuple(range(input.rank - len(normalized_shape), input.rank))
    x = a.let("u", input)
    var, average = spread(a, x, dims, True, 0)
    whiten = lambda x, m, v, e: (x - m) / sqrt(v + e)  # noqa: E731
    return affine(
        a, a.let("xhat", a.each(whiten, x, average, a.let("var", var), eps)), weight, bias
    )


@op("rms_norm", forms="F torch", called="normed", of=FLOAT)
def _rms_norm(a, input: Tensor, normalized_shape: Sizes, weight: Tensor | None = None,
              eps: Number = 2.220446049250313e-16):  # fmt: skip
    dims = tuple(range(input.rank - len(normalized_shape), input.rank))
    x = a.let("u", input)
    square = a.let("ms", mean(a, a.each(lambda x: x**2, x), dims, True))
    return affine(a, a.each(lambda x, s, e: x / sqrt(s + e), x, square, eps), weight, None)
