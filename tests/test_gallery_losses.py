"""The losses of derive/math beside torch's own; those that torch lacks beside a hand-typed one.

Those of labels are in ``test_gallery_labels.py``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from functionals import (
    LAYOUTS,
    REDUCTIONS,
    SHAPES,
    TOLERANCES,
    Functional,
    assert_agrees,
    assert_agrees_on,
    outcome,
    reduced,
    values,
)
from references import drawing
from torch import Tensor


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


def vectors(draw, shape):
    return {
        "x1": draw(*shape),
        "x2": draw(*shape),
        "target": draw(*shape[:-1], 1).sign().squeeze(-1),
    }


def views(draw, shape):
    return {"queries": draw(*shape), "keys": draw(*shape)}


def two_views(draw, shape):
    return {"first": draw(*shape), "second": draw(*shape)}


def segmented(draw, shape):
    return {"probs": draw(*shape).sigmoid(), "target": (draw(*shape) > 0).double()}


def triplets(draw, shape):
    return {name: draw(*shape) for name in ("anchor", "positive", "negative")}


def answered(draw, shape):
    names = ("chosen", "rejected", "reference_chosen", "reference_rejected")
    return {name: 4 * draw(*shape) for name in names}


def actions(draw, shape):
    old = draw(*shape)
    return {"logp": old + draw(*shape) / 3, "logp_old": old, "advantage": draw(*shape)}


def images_and_texts(draw, shape):
    return {"images": draw(*shape), "texts": draw(*shape), "scale": draw(1)[0] / 2 + 1}


def images_and_texts_with_bias(draw, shape):
    return images_and_texts(draw, shape) | {"bias": draw(1)[0]}


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


def info_nce(queries, keys, temperature=0.1):
    similarity = F.normalize(queries, dim=-1) @ F.normalize(keys, dim=-1).T / temperature
    return F.cross_entropy(similarity, torch.arange(len(keys)))


def dpo(chosen, rejected, of_chosen, of_rejected, beta=0.1, reduction="mean"):
    logits = (chosen - rejected) - (of_chosen - of_rejected)
    return aggregated(-F.logsigmoid(beta * logits), reduction)


def ppo(logp, old, advantage, clip=0.2, beta=0.01, reduction="mean"):
    ratio = (logp - old).exp()
    surrogate = torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
    return aggregated(beta * (ratio - 1 - (logp - old)) - surrogate, reduction)


def clip(images, texts, scale):
    logits = scale.exp() * F.normalize(images, dim=-1) @ F.normalize(texts, dim=-1).T
    own = torch.arange(len(images))
    return (F.cross_entropy(logits, own) + F.cross_entropy(logits.T, own)) / 2


def siglip(images, texts, scale, bias):
    logits = scale.exp() * F.normalize(images, dim=-1) @ F.normalize(texts, dim=-1).T + bias
    labels = 2 * torch.eye(len(images), dtype=logits.dtype) - 1
    return -F.logsigmoid(labels * logits).sum() / len(images)


def barlow_twins(first, second, weight=0.005, eps=1e-5):
    units = [F.batch_norm(z, None, None, training=True, eps=eps) for z in (first, second)]
    correlation = units[0].T @ units[1] / len(first)
    own = correlation.diagonal()
    return ((own - 1) ** 2).sum() + weight * ((correlation**2).sum() - (own**2).sum())


def focal_tversky(probs, target, alpha=0.7, beta=0.3, gamma=4 / 3, smooth=1.0):
    found = (probs * target).sum(0)
    missed, wrong = ((1 - probs) * target).sum(0), (probs * (1 - target)).sum(0)
    index = (found + smooth) / (found + alpha * missed + beta * wrong + smooth)
    return ((1 - index) ** (1 / gamma)).sum()


ROWS = ((4, 3), (2, 5), (7, 2))
REFERENCES = frozenset({"reference_chosen", "reference_rejected"})
BCE_WEIGHTS = frozenset({"weight", "pos_weight"})

LOSSES = {
    str(functional): functional
    for functional in [
        *reduced("mse", F.mse_loss, pairs),
        *reduced("l1", F.l1_loss, pairs),
        *reduced("smooth_l1", F.smooth_l1_loss, pairs, options=values("beta", 0.3, 2, 0)),
        *reduced("huber", F.huber_loss, pairs, options=values("delta", 0.3, 2)),
        *reduced("hinge", hinge, signed_pairs, constant=frozenset({"target"})),
        *reduced(
            "hinge_embedding",
            F.hinge_embedding_loss,
            signed_pairs,
            options=values("margin", 0.4),
            constant=frozenset({"target"}),
        ),
        *reduced(
            "triplet",
            F.triplet_margin_loss,
            triplets,
            shapes=((5,), *ROWS),
            options=values("margin", 0.4),
        ),
        *reduced("dpo", dpo, answered, options=values("beta", 0.5), constant=REFERENCES),
        *reduced(
            "ppo",
            ppo,
            actions,
            options=({}, {"clip": 0.1, "beta": 0.3}),
            constant=frozenset({"logp_old", "advantage"}),
        ),
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
        *reduced("kl_div", F.kl_div, distributions, reductions=(*REDUCTIONS, "batchmean")),
        *reduced(
            "kl_div_log_target",
            partial(F.kl_div, log_target=True),
            logarithms,
            reductions=(*REDUCTIONS, "batchmean"),
        ),
        Functional("js_div", jensen_shannon, two_distributions),
        *reduced(
            "cosine_embedding",
            F.cosine_embedding_loss,
            vectors,
            shapes=((5,), *ROWS),
            options=values("margin", 0.4, -0.3),
            constant=frozenset({"target"}),
        ),
        Functional("clip", clip, images_and_texts, shapes=ROWS),
        Functional("siglip", siglip, images_and_texts_with_bias, shapes=ROWS),
        Functional(
            "barlow_twins", barlow_twins, two_views, shapes=ROWS, options=values("weight", 1)
        ),
        Functional(
            "focal_tversky",
            focal_tversky,
            segmented,
            shapes=ROWS,
            options=({}, {"alpha": 0.4, "beta": 0.6, "gamma": 1}),
            constant=frozenset({"target"}),
        ),
        Functional("info_nce", info_nce, views, shapes=ROWS, options=values("temperature", 0.5)),
    ]
}


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_torchs_in_every_layout(name, dtype):
    loss = LOSSES[name]
    for seed, shape in enumerate(loss.shapes):
        for layout in LAYOUTS:
            assert_agrees_on(loss, shape, dtype, layout, seed)


# Edges, decided as torch decides them

CONTRASTIVE = ("clip", "siglip", "barlow_twins")


@pytest.mark.parametrize("name", [name for name in LOSSES if name not in CONTRASTIVE])
def test_a_loss_of_an_empty_batch_is_torchs(name):
    """The mean of nothing is NaN, its sum is 0, and there is a gradient for none of it."""
    loss = LOSSES[name]
    shape = (0,) if loss.shapes is SHAPES else (0, 3)
    if loss.arguments is two_distributions:
        shape = (0, 3)
    names = [n for n in loss.arguments(torch.randn, loss.shapes[-1]) if n not in loss.optional]
    arguments = {name: torch.zeros(shape).double() for name in names}
    if "x1" in arguments:
        arguments = {name: arguments[name] for name in ("x1", "x2")}
        arguments["target"] = torch.zeros(0).double()
    assert_agrees(loss, arguments)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_a_view_that_is_zero_is_as_far_from_every_key(dtype):
    queries, keys = drawing(0)(2, 4, 3).to(dtype)
    queries[1], keys[2] = 0, 0
    assert_agrees(LOSSES["info_nce"], {"queries": queries, "keys": keys})


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("name", ["mse", "l1", "smooth_l1", "huber", "hinge", "log_cosh"])
def test_an_error_is_torchs_at_its_kinks_and_far_out(name, dtype):
    """Entry by entry: a small one is compared with itself, not with the largest."""
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


def accurate_focal(logits, target):
    missed = logits.sigmoid() * (1 - target) + (-logits).sigmoid() * target
    balance = 0.25 * target + 0.75 * (1 - target)
    return balance * missed**2 * accurate_bce(logits, target)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("target", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("logit", [0.0, 20, -20, 100, -100, 1e4, -1e4])
def test_a_binary_cross_entropy_is_accurate_far_out(logit, target, dtype):
    """The value by itself; the gradient, a difference of what is nearly equal with torch too, and
    the focal loss, which is made of one, beside those of an ordinary logit.
    """
    logits = torch.tensor([logit, 0.5], dtype=dtype)
    arguments = {"logits": logits, "target": torch.full_like(logits, target)}
    for name, reference in {"bce_with_logits": accurate_bce, "focal": accurate_focal}.items():
        assert_agrees(Functional(name, reference, answers, reduction="none"), arguments)
    value = LOSSES["bce_with_logits_none"].ours(*arguments.values()).double()
    exact = accurate_bce(*(tensor.double() for tensor in arguments.values()))
    tiny = torch.finfo(dtype).tiny
    torch.testing.assert_close(value, exact, rtol=TOLERANCES[dtype], atol=tiny)


@pytest.mark.parametrize("name", ["kl_div", "kl_div_sum", "kl_div_none", "kl_div_batchmean"])
def test_a_target_of_zero_adds_nothing_to_a_divergence(name):
    x = torch.randn(3, 4, dtype=torch.float64).log_softmax(-1)
    target = torch.tensor([[0.5, 0.5, 0, 0], [1, 0, 0, 0], [0.25, 0.25, 0.5, 0]]).double()
    loss = LOSSES[name]
    with_constant = replace(loss, constant=frozenset({"target"}))
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
    with_eps = replace(loss, reference=reference)
    for target in (torch.ones(4), -torch.ones(4), torch.zeros(4)):
        assert_agrees(with_eps, {"x1": x1, "x2": x2, "target": target.double()}, {"eps": eps})


@pytest.mark.parametrize("gamma", [0.0, 1.0, 2.0])
def test_a_focal_loss_of_a_small_power_is_torchs_far_out(gamma):
    """The derivative of a power of 0 has a factor that is 0 where the exponent is."""
    logits = torch.tensor([100.0, -100.0, 0.5, 1e4, 100.0])
    target = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0])
    for name in ("focal_none", "focal"):
        assert_agrees(LOSSES[name], {"logits": logits, "target": target}, {"gamma": gamma})


@pytest.mark.parametrize("name", ["hinge_embedding_none", "hinge_embedding"])
def test_a_distance_at_the_margin_is_torchs(name):
    x = torch.tensor([1.0, 1.0, 0.0, 2.0]).double()
    target = torch.tensor([1.0, -1.0, -1.0, -1.0]).double()
    assert_agrees(LOSSES[name], {"x": x, "target": target})


@pytest.mark.parametrize("name", ["triplet_none", "triplet"])
def test_a_triplet_at_the_margin_is_torchs(name):
    anchor, positive, negative = (
        torch.tensor([[at, 0.0], [0.0, at]]).double() for at in (0.0, 1.0, 2.0)
    )
    arguments = {"anchor": anchor, "positive": positive, "negative": negative}
    assert_agrees(LOSSES[name], arguments, {"eps": 0.0})
