"""Cross entropy and the negative log likelihood beside torch's own: with weights, smoothing, labels
that are ignored, and probabilities of the classes for a target.
"""

from __future__ import annotations

import math

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
    outcome,
    reduced,
    values,
)
from references import drawing

from generated.cross_entropy_z_loss import cross_entropy_z_loss

IGNORED = -100
IMPOSSIBLE, CERTAIN = -math.inf, math.inf


def labelled(draw, shape):
    """Logits (N, C, ...), labels of which some are ignored, and a weight for every class."""
    labels = (7 * draw(shape[0], *shape[2:]).abs()).long() % shape[1]
    labels[draw(*labels.shape) > 1] = IGNORED
    labels.view(-1)[0] = 0  # one at least counts
    return {"logits": 2 * draw(*shape), "labels": labels, "weight": draw(shape[1]).abs()}


def log_likelihoods(draw, shape):
    drawn = labelled(draw, shape)
    return {"logprobs": drawn.pop("logits").log_softmax(1)} | drawn


def probabilities(draw, shape):
    target = draw(*shape).softmax(1)
    return {"logits": 2 * draw(*shape), "target": target, "weight": draw(shape[1]).abs()}


def cross_entropy(logits, target, weight=None, **options):
    return F.cross_entropy(logits, target, weight, **options)


def nll(logprobs, labels, weight=None, **options):
    # torch's backward refuses logarithms that are not contiguous
    return F.nll_loss(logprobs.contiguous(), labels, weight, **options)


def z_loss(logits, labels, weight=None, z_weight=1e-4, ignore_index=IGNORED, **options):
    log_z = logits.logsumexp(1)[labels != ignore_index]
    entropy = F.cross_entropy(logits, labels, weight, ignore_index=ignore_index, **options)
    return entropy + z_weight * (log_z**2).mean()


def softcapped(logits, labels, weight=None, cap=30.0, **options):
    return F.cross_entropy(cap * torch.tanh(logits / cap), labels, weight, **options)


COMMON = {
    "shapes": SHAPES[1:],
    "optional": frozenset({"weight"}),
    "constant": frozenset({"weight"}),
}
SMOOTHED = values("label_smoothing", 0.1, 0.7)
OF_Z = {"label_smoothing": 0.1, "z_weight": 0.5}
CAPPED = {"label_smoothing": 0.1, "cap": 2}
OF_LABELS = {
    str(functional): functional
    for functional in [
        *reduced("nll", nll, log_likelihoods, **COMMON),
        *reduced("cross_entropy", cross_entropy, labelled, options=SMOOTHED, **COMMON),
        Functional("cross_entropy_z_loss", z_loss, labelled, options=({}, OF_Z), **COMMON),
        Functional("cross_entropy_softcap", softcapped, labelled, options=({}, CAPPED), **COMMON),
    ]
}
OF_PROBABILITIES = reduced(
    "cross_entropy_probabilities", cross_entropy, probabilities, options=SMOOTHED, **COMMON
)
LABELLED = OF_LABELS | {str(functional): functional for functional in OF_PROBABILITIES}


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("name", LABELLED)
def test_a_loss_is_torchs_in_every_layout(name, dtype):
    loss = LABELLED[name]
    for seed, shape in enumerate(loss.shapes):
        for layout in LAYOUTS:
            assert_agrees_on(loss, shape, dtype, layout, seed)


@pytest.mark.parametrize("name", OF_LABELS)
def test_another_label_may_be_ignored(name):
    """A class, which counts no more, or any other number."""
    loss = OF_LABELS[name]
    for shape, ignored in [((6, 3), 1), ((3, 4, 5), 0), ((2, 3, 2, 4), 255)]:
        drawn = loss.arguments(drawing(0), shape)
        drawn["labels"][drawn["labels"] == IGNORED] = ignored
        for options, arguments in loss.ways(drawn):
            assert_agrees(loss, arguments, {**options, "ignore_index": ignored})


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("name", OF_LABELS)
def test_where_all_labels_are_ignored_the_mean_is_nan_and_the_gradient_exactly_zero(name, dtype):
    loss = OF_LABELS[name]
    scores, weight = torch.randn(4, 3, 2).to(dtype), torch.rand(3).to(dtype)
    drawn = {"scores": scores, "labels": torch.full((4, 2), IGNORED), "weight": weight}
    for options, arguments in loss.ways(drawn):
        assert_agrees(loss, arguments, options)
        got = outcome(loss.ours, arguments, options, None, loss.constant)
        assert torch.equal(got.gradients["scores"], torch.zeros_like(scores))
        assert got.value.isnan().all() or loss.reduction in ("sum", "none")


@pytest.mark.parametrize("name", LABELLED)
def test_a_loss_of_an_empty_batch_is_torchs(name):
    """The mean of nothing is NaN, its sum is 0, and there is a gradient for none of it."""
    loss = LABELLED[name]
    for shape in ((0, 3), (2, 3, 0)):
        scores = torch.zeros(shape, dtype=torch.float64)
        targets = {"labels": scores.argmax(1)} if name in OF_LABELS else {"target": scores}
        for options in loss.options:
            assert_agrees(loss, {"scores": scores, **targets}, options)


ROWS_OF_LOGITS = {
    "far apart": [1e4, -1e4, 0.0],
    "far up": [1e4, 1e4, 1e4 + 1],
    "far down": [-1e4, -1e4, -1e4 + 1],
    "another class impossible": [0.0, 1.0, IMPOSSIBLE],
    "the label impossible": [IMPOSSIBLE, 0.0, 1.0],
    "the label certain": [CERTAIN, 0.0, 1.0],
    "another class certain": [0.0, CERTAIN, 1.0],
    "all impossible": [IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE],
    "ties": [2.0, 2.0, 2.0],
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("row", ROWS_OF_LOGITS)
@pytest.mark.parametrize("name", ["cross_entropy", "cross_entropy_sum", "cross_entropy_none"])
def test_a_cross_entropy_of_extreme_logits_is_torchs(name, row, dtype):
    loss = OF_LABELS[name]
    logits = torch.tensor([ROWS_OF_LOGITS[row], [0.5, 1.5, -1.0]], dtype=dtype)
    for options in loss.options:
        assert_agrees(loss, {"logits": logits, "labels": torch.tensor([0, 2])}, options)


@pytest.mark.parametrize("name", ["cross_entropy", "cross_entropy_sum", "cross_entropy_none"])
def test_classes_without_weight_are_torchs(name):
    logits = torch.randn(4, 3, dtype=torch.float64)
    arguments = {"logits": logits, "labels": torch.tensor([0, 1, 2, 1])}
    assert_agrees(OF_LABELS[name], arguments | {"weight": torch.tensor([0, 2, 0.5]).double()})


@pytest.mark.parametrize("name", ["cross_entropy", "nll"])
def test_a_label_that_is_neither_a_class_nor_ignored_is_refused(name):
    with pytest.raises(IndexError, match=rf"{name}: labels holds 3, not in 0 \.\. 2"):
        OF_LABELS[name].ours(torch.randn(2, 3), torch.tensor([0, 3]))


@pytest.mark.parametrize("z_weight", [0.0, 1e-4])
def test_far_up_the_probabilities_keep_their_digits(z_weight):
    """exp(x - log_z) has lost as many of them as log_z is large."""
    logits = 1e4 + torch.randn(16, 9, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(16) % 9

    def gradient(loss, logits):
        leaf = logits.clone().requires_grad_()
        return torch.autograd.grad(loss(leaf), leaf)[0]

    def composed(logits):
        return F.cross_entropy(logits, labels) + z_weight * (logits.logsumexp(1) ** 2).mean()

    ours = gradient(lambda x: cross_entropy_z_loss(x, labels, z_weight=z_weight), logits)
    expected = gradient(composed, logits.double())
    assert (ours - expected).abs().max() <= 2e-5 * expected.abs().max()
