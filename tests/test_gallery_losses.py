"""The losses of derive/math beside torch's own; those that torch lacks beside a hand-typed one."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from functionals import (
    LAYOUTS,
    SHAPES,
    TOLERANCES,
    Functional,
    assert_agrees,
    assert_agrees_on,
    expect_failure,
    outcome,
)
from torch import Tensor

REDUCTIONS = {"": "mean", "_sum": "sum", "_none": "none"}
IGNORED = -100
INFINITE = math.inf


def reduced(name, reference, arguments, *, reductions=REDUCTIONS, **more) -> list[Functional]:
    """The functional with each of the reductions, names of ours and options of torch."""
    return [
        Functional(name + suffix, partial(reference, reduction=reduction), arguments, **more)
        for suffix, reduction in reductions.items()
    ]


def pairs(draw, shape):
    return {"x": 2 * draw(*shape), "target": draw(*shape)}


def signed_pairs(draw, shape):
    return {"x": 2 * draw(*shape), "target": draw(*shape).sign()}


def distributions(draw, shape):
    return {"x": draw(*shape).log_softmax(-1), "target": draw(*shape).softmax(-1)}


def logarithms(draw, shape):
    return {"x": draw(*shape).log_softmax(-1), "target": draw(*shape).log_softmax(-1)}


def two_distributions(draw, shape):
    return {"p": draw(*shape).softmax(-1), "q": draw(*shape).softmax(-1)}


def answers(draw, shape):
    return {"logits": 2 * draw(*shape), "target": draw(*shape).sigmoid()}


def weighted_answers(draw, shape):
    weights = {"weight": draw(*shape).abs(), "pos_weight": draw(shape[-1]).abs()}
    return answers(draw, shape) | weights


def labelled(draw, shape):
    """Logits (N, C, ...), labels of which some are ignored, and a weight for every class."""
    labels = (7 * draw(shape[0], *shape[2:]).abs()).long() % shape[1]
    labels[draw(*labels.shape) > 1] = IGNORED
    labels.view(-1)[0] = 0  # one at least counts
    return {"logits": 2 * draw(*shape), "labels": labels, "weight": draw(shape[1]).abs()}


def log_likelihoods(draw, shape):
    drawn = labelled(draw, shape)
    return {"logprobs": drawn.pop("logits").log_softmax(1)} | drawn


def vectors(draw, shape):
    return {
        "x1": draw(*shape),
        "x2": draw(*shape),
        "target": draw(*shape[:-1], 1).sign().squeeze(-1),
    }


def views(draw, shape):
    return {"queries": draw(*shape), "keys": draw(*shape)}


# What torch has not, or has not with these options: typed by hand


def aggregated(losses: Tensor, reduction: str) -> Tensor:
    return {"mean": losses.mean, "sum": losses.sum, "none": losses.clone}[reduction]()


def hinge(x, target, reduction):
    return aggregated(F.relu(1 - target * x), reduction)


def log_cosh(x, target, reduction):
    error = (x - target).abs()
    return aggregated(error + F.softplus(-2 * error) - math.log(2), reduction)


def bce(logits, target, weight=None, pos_weight=None, reduction="mean"):
    return F.binary_cross_entropy_with_logits(
        logits, target, weight, pos_weight=pos_weight, reduction=reduction
    )


def focal(logits, target, alpha=0.25, gamma=2.0, reduction="mean"):
    """``torchvision.ops.sigmoid_focal_loss``, as its source computes it."""
    p = logits.sigmoid()
    losses = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    losses = losses * (1 - (p * target + (1 - p) * (1 - target))) ** gamma
    if alpha >= 0:
        losses = (alpha * target + (1 - alpha) * (1 - target)) * losses
    return aggregated(losses, reduction)


def jensen_shannon(p, q):
    mixture = ((p + q) / 2).log()
    both = F.kl_div(mixture, p, reduction="sum") + F.kl_div(mixture, q, reduction="sum")
    return both / 2 / (p.numel() // p.shape[-1])


def cross_entropy(logits, labels, weight=None, label_smoothing=0.0, reduction="mean"):
    return F.cross_entropy(
        logits, labels, weight, label_smoothing=label_smoothing, reduction=reduction
    )


def z_loss(logits, labels, weight=None, label_smoothing=0.0, z_weight=1e-4):
    log_z = logits.logsumexp(1)[labels != IGNORED]
    return cross_entropy(logits, labels, weight, label_smoothing) + z_weight * (log_z**2).mean()


def softcapped(logits, labels, weight=None, label_smoothing=0.0, cap=30.0):
    return cross_entropy(cap * torch.tanh(logits / cap), labels, weight, label_smoothing)


def nll(logprobs, labels, weight=None, reduction="mean"):
    return F.nll_loss(logprobs, labels, weight, reduction=reduction)


def info_nce(queries, keys, temperature=0.1):
    similarity = F.normalize(queries, dim=-1) @ F.normalize(keys, dim=-1).T / temperature
    return F.cross_entropy(similarity, torch.arange(len(keys)))


def values(name, *chosen):
    return ({}, *({name: value} for value in chosen))


ROWS = ((4, 3), (2, 5), (7, 2))
WEIGHTS = {"optional": frozenset({"weight"}), "constant": frozenset({"weight"})}
SMOOTHED = values("label_smoothing", 0.1, 0.7)
BCE_WEIGHTS = frozenset({"weight", "pos_weight"})

LOSSES = {
    functional.name: functional
    for functional in [
        *reduced("mse", F.mse_loss, pairs),
        *reduced("l1", F.l1_loss, pairs),
        *reduced("smooth_l1", F.smooth_l1_loss, pairs, options=values("beta", 0.3, 2, 0)),
        *reduced("huber", F.huber_loss, pairs, options=values("delta", 0.3, 2)),
        *reduced("hinge", hinge, signed_pairs, constant=frozenset({"target"})),
        *reduced("log_cosh", log_cosh, pairs),
        *reduced(
            "bce_with_logits", bce, weighted_answers, optional=BCE_WEIGHTS, constant=BCE_WEIGHTS
        ),
        *reduced(
            "focal",
            focal,
            answers,
            options=({}, {"alpha": -1}, {"gamma": 0}, {"alpha": 0.6, "gamma": 1.5}),
        ),
        *reduced(
            "kl_div", F.kl_div, distributions, reductions=REDUCTIONS | {"_batchmean": "batchmean"}
        ),
        Functional("kl_div_log_target", partial(F.kl_div, log_target=True), logarithms),
        Functional("js_div", jensen_shannon, two_distributions),
        *reduced("nll", nll, log_likelihoods, shapes=SHAPES[1:], **WEIGHTS),
        *reduced(
            "cross_entropy",
            cross_entropy,
            labelled,
            shapes=SHAPES[1:],
            options=SMOOTHED,
            **WEIGHTS,
        ),
        Functional(
            "cross_entropy_z_loss",
            z_loss,
            labelled,
            shapes=SHAPES[1:],
            options=({}, {"label_smoothing": 0.1, "z_weight": 0.5}),
            **WEIGHTS,
        ),
        Functional(
            "cross_entropy_softcap",
            softcapped,
            labelled,
            shapes=SHAPES[1:],
            options=({}, {"label_smoothing": 0.1, "cap": 2}),
            **WEIGHTS,
        ),
        *reduced(
            "cosine_embedding",
            F.cosine_embedding_loss,
            vectors,
            shapes=((5,), *ROWS),
            options=values("margin", 0.4, -0.3),
            constant=frozenset({"target"}),
        ),
        Functional("info_nce", info_nce, views, shapes=ROWS, options=values("temperature", 0.5)),
    ]
}


# What the general machinery lacks, by the cases that wait for it.
IGNORING = "labels cannot be ignored: Label(N, ignored=-100)"
REFUSED = "a size of 0 is refused where it is divided by; torch's mean of nothing is NaN"
MISSING: dict[tuple, str] = {}
MISSING_OF_NOTHING: dict[tuple, str] = {}
MISSING_FAR_OUT: dict[tuple, str] = {}
MISSING_OF_ANSWERS: dict[tuple, str] = {}
MISSING_OF_LOGITS: dict[tuple, str] = {}


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_torchs_in_every_layout(name, dtype, request):
    expect_failure(request, MISSING, name)
    loss = LOSSES[name]
    for seed, shape in enumerate(loss.shapes):
        for layout in LAYOUTS:
            assert_agrees_on(loss, shape, dtype, layout, seed)


# Edges, decided as torch decides them


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_of_an_empty_batch_is_torchs(name, request):
    """The mean of nothing is NaN, its sum is 0, and there is a gradient for none of it."""
    expect_failure(request, MISSING_OF_NOTHING, name)
    loss = LOSSES[name]
    shape = (0,) if loss.shapes is SHAPES else (0, 3)
    if name == "kl_div_batchmean" or loss.arguments is two_distributions:
        shape = (0, 3)
    arguments = {
        name: torch.zeros(0, dtype=torch.long) if name == "labels" else torch.zeros(shape).double()
        for name in loss.arguments(torch.randn, loss.shapes[-1])
        if name not in loss.optional
    }
    if "x1" in arguments:
        arguments["target"] = torch.zeros(0).double()
    assert_agrees(loss, arguments)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("name", ["mse", "l1", "smooth_l1", "huber", "hinge", "log_cosh"])
def test_an_error_is_torchs_at_its_kinks_and_far_out(name, dtype, request):
    """Entry by entry: a small one is compared with itself, not with the largest."""
    expect_failure(request, MISSING_FAR_OUT, name)
    loss = LOSSES[f"{name}_none"]
    sizes = [0, 0.3, 1, 2, 1e-4, 30, 90, 800, 1e4, float("inf"), float("nan")]
    for x in [sign * size for size in sizes for sign in (1, -1)]:
        arguments = {
            "x": torch.tensor([x], dtype=dtype),
            "target": torch.tensor([1.0 if name == "hinge" else 0.0], dtype=dtype),
        }
        for options in loss.options:
            if not (x != x and options.get("beta") == 0):  # where torch takes 0 as the gradient
                assert_agrees(loss, arguments, options)


def accurate_bce(logits, target):
    """torch's own is a difference of equals where the logit is far on the right side."""
    return -(target * F.logsigmoid(logits) + (1 - target) * F.logsigmoid(-logits))


def accurate_focal(logits, target, alpha=0.25, gamma=2.0):
    missed = logits.sigmoid() * (1 - target) + (-logits).sigmoid() * target
    balance = alpha * target + (1 - alpha) * (1 - target)
    return balance * missed**gamma * accurate_bce(logits, target)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("target", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("logit", [0.0, 20, -20, 100, -100, 1e4, -1e4])
@pytest.mark.parametrize("name", ["bce_with_logits_none", "focal_none"])
def test_a_binary_cross_entropy_is_accurate_far_out(name, logit, target, dtype, request):
    """The cross entropy by itself; the focal loss, which torch too computes from 1 less what is
    nearly 1, beside an entry of ordinary size.
    """
    expect_failure(request, MISSING_OF_ANSWERS, name, logit, target, dtype)
    focal_loss = name == "focal_none"
    logits = torch.tensor([logit, 0.5] if focal_loss else [logit], dtype=dtype)
    reference = accurate_focal if focal_loss else accurate_bce
    arguments = {"logits": logits, "target": torch.full_like(logits, target)}
    assert_agrees(Functional(name, reference, answers), arguments)


ROWS_OF_LOGITS = {
    "far apart": [1e4, -1e4, 0.0],
    "far up": [1e4, 1e4, 1e4 + 1],
    "far down": [-1e4, -1e4, -1e4 + 1],
    "another class impossible": [0.0, 1.0, -INFINITE],
    "the label impossible": [-INFINITE, 0.0, 1.0],
    "the label certain": [INFINITE, 0.0, 1.0],
    "ties": [2.0, 2.0, 2.0],
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("row", ROWS_OF_LOGITS)
@pytest.mark.parametrize("name", ["cross_entropy", "cross_entropy_sum", "cross_entropy_none"])
def test_a_cross_entropy_of_extreme_logits_is_torchs(name, row, dtype, request):
    expect_failure(request, MISSING_OF_LOGITS, row)
    logits = torch.tensor([ROWS_OF_LOGITS[row], [0.5, 1.5, -1.0]], dtype=dtype)
    assert_agrees(LOSSES[name], {"logits": logits, "labels": torch.tensor([0, 2])})


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("name", ["cross_entropy", "nll"])
@pytest.mark.xfail(strict=True, reason=IGNORING)
def test_where_all_labels_are_ignored_the_loss_is_nan_and_the_gradient_exactly_zero(name, dtype):
    scores = torch.randn(4, 3).to(dtype)
    labels = torch.full((4,), IGNORED)
    got = outcome(LOSSES[name].ours, {"scores": scores, "labels": labels}, {}, None)
    assert got.value.isnan()
    assert torch.equal(got.gradients["scores"], torch.zeros_like(scores))


@pytest.mark.parametrize("name", ["cross_entropy", "cross_entropy_sum", "cross_entropy_none"])
def test_classes_without_weight_are_torchs(name):
    logits = torch.randn(4, 3, dtype=torch.float64)
    arguments = {"logits": logits, "labels": torch.tensor([0, 1, 2, 1])}
    assert_agrees(LOSSES[name], arguments | {"weight": torch.tensor([0, 2, 0.5]).double()})


@pytest.mark.parametrize("name", ["kl_div", "kl_div_sum", "kl_div_none", "kl_div_batchmean"])
def test_a_target_of_zero_adds_nothing_to_a_divergence(name):
    x = torch.randn(3, 4, dtype=torch.float64).log_softmax(-1)
    target = torch.tensor([[0.5, 0.5, 0, 0], [1, 0, 0, 0], [0.25, 0.25, 0.5, 0]]).double()
    loss = LOSSES[name]
    with_constant = Functional(name, loss.reference, loss.arguments, constant=frozenset({"target"}))
    assert_agrees(with_constant, {"x": x, "target": target})
    of_target = outcome(loss.ours, {"x": x, "target": target}, {}, None).gradients["target"]
    assert of_target.isfinite().all()  # torch's is NaN at 0: 0 times the inverse of 0


def test_equal_distributions_do_not_diverge_and_disjoint_ones_by_the_logarithm_of_two():
    p = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]).double()
    assert LOSSES["js_div"].ours(p, p).item() == pytest.approx(0, abs=1e-15)
    q = p.flip(-1)[:1]
    assert LOSSES["js_div"].ours(p[:1], q).item() == pytest.approx(math.log(2))


@pytest.mark.parametrize("name", ["cosine_embedding_none", "cosine_embedding"])
def test_vectors_of_no_length_and_a_cosine_at_the_margin_are_torchs(name):
    """Beside vectors of no length only ``eps`` counts, which torch rounds to float32."""
    x1 = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [3.0, 4.0]]).double()
    x2 = torch.tensor([[1.0, 2.0], [0.0, 1.0], [0.0, 1.0], [3.0, 4.0]]).double()
    loss = LOSSES[name]
    eps = torch.tensor(1e-12).item()
    reference = partial(lambda *tensors, eps, of: of(*tensors), of=loss.reference)
    with_eps = Functional(name, reference, loss.arguments, constant=loss.constant)
    for target in (torch.ones(4), -torch.ones(4), torch.zeros(4)):
        assert_agrees(with_eps, {"x1": x1, "x2": x2, "target": target.double()}, {"eps": eps})
