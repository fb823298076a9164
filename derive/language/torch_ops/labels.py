"""Losses with labels: cross entropies and margins."""

from __future__ import annotations

from derive.language.torch_ops.formulas import held
from derive.language.torch_ops.losses import reduced, times
from derive.language.torch_ops.products import linear
from derive.language.torch_ops.reducing import log_z
from derive.language.torch_ops.table import (
    FLOAT,
    AnyTensor,
    Default,
    Number,
    Order,
    Reduction,
    Tensor,
    op,
)


@op("cross_entropy", forms="F", also="cross_entropy_loss", of=FLOAT)
def _cross_entropy(
    a, input: Tensor, target: AnyTensor, weight: Tensor | None = None, *,
    ignore_index: Number = -100, reduction: Reduction = "mean", label_smoothing: Number = 0.0,
):  # fmt: skip
    dim = min(input.rank - 1, 1)
    x = a.let("scores", input)
    logprobs = a.let("logprobs", a.each(lambda x, z: x - z, x, log_z(a, x, dim, True)))
    smooth = None if a.is_zero(label_smoothing) else label_smoothing
    if target.rank < input.rank:
        return _of_labels(a, logprobs, target, dim, (weight, ignore_index, reduction, smooth))
    if smooth is not None:
        count = a.count(input, [dim])
        target = a.each(lambda t, s: (1 - s) * t + s / count, target, smooth)
    if weight is not None:
        logprobs = a.each(times, _facing(a, weight, input.rank - dim), logprobs)
    losses = a.each(lambda e: -e, a.sum(a.each(lambda t, p: t * p, target, logprobs), dim))
    return reduced(a, losses, reduction)


@op("linear_cross_entropy", forms="F", of=FLOAT)
def _linear_cross_entropy(
    a, input: Tensor, linear_weight: Tensor, target: AnyTensor, *,
    linear_bias: Tensor | None = None, weight: Tensor | None = None,
    reduction: Reduction = "mean", ignore_index: Number = -100, label_smoothing: Number = 0.0,
    options: Default = None,
):  # fmt: skip
    if linear_weight.rank != 2 or input.rank > 2:
        a.refuse("scores along several dimensions", "write F.linear and F.cross_entropy")
    scores = linear(a, input, linear_weight, linear_bias)
    more = {"ignore_index": ignore_index, "reduction": reduction}
    return _cross_entropy(a, scores, target, weight, label_smoothing=label_smoothing, **more)


@op("nll_loss", forms="F", also="nll_loss_nd nll_loss2d", of=FLOAT)
def _nll(a, input: Tensor, target: AnyTensor, weight: Tensor | None = None, *,
         ignore_index: Number = -100, reduction: Reduction = "mean"):  # fmt: skip
    dim = min(input.rank - 1, 1)
    return _of_labels(a, input, target, dim, (weight, ignore_index, reduction, None))


def _facing(a, weight, rank: int):
    """A weight per class, along the first of the last ``rank`` dimensions."""
    for _ in range(rank - 1):
        weight = a.unsqueezed(weight, weight.rank)
    return weight


def _of_labels(a, logprobs, labels, dim, how):
    """The mean divides by the class weights of the labels that count."""
    weight, ignored, reduction, smoothing = how
    terms = a.let("logprobs", logprobs)
    if weight is not None:
        faced = _facing(a, weight, terms.rank - dim)
        terms = a.let("weighted", a.each(times, faced, terms))
    found = a.squeezed(a.picked(terms, dim, a.unsqueezed(labels, dim)), [dim])
    kept, losses = a.counted(labels, ignored, a.each(lambda e: -e, found))
    if smoothing is not None:
        count = a.count(terms, [dim])
        smooth = a.each(lambda s: s / count, a.sum(terms, dim))
        smooth = smooth if kept is None else a.each(lambda k, s: k * s, kept, smooth)
        losses = a.each(lambda e, t, s: (1 - s) * e - s * t, losses, smooth, smoothing)
    if reduction != "mean" or (weight is None and (kept is None or not labels.rank)):
        return reduced(a, losses, reduction)
    if weight is not None:
        kept = a.counted(labels, ignored, a.selected(weight, 0, labels))[1]
    return a.each(lambda e, n: e / n, a.sum(a.let("losses", losses)), a.sum(kept))


@op("multi_margin_loss", forms="F", of=FLOAT)
def _multi_margin(
    a, input: Tensor, target: AnyTensor, p: Order = 1, margin: Number = 1.0,
    weight: Tensor | None = None, *, reduction: Reduction = "mean",
):  # fmt: skip
    """Sum over the classes other than the label's own, whose term would be margin**p."""
    dim = input.rank - 1
    own = a.picked(input, dim, a.unsqueezed(target, dim))
    terms = a.each(lambda x, y, m: held(m - y + x, 0) ** p, input, own, margin)
    count = a.count(input, [dim])
    losses = a.each(lambda s, m: (s - m**p) / count, a.sum(terms, dim), margin)
    if weight is not None:
        losses = a.each(times, a.selected(weight, 0, target), losses)
    return reduced(a, losses, reduction)
