"""torch's own sample inputs of its functionals, through ours.

They are those that torch is tested with (``torch.testing._internal``, which needs expecttest); the
import takes 2.5 seconds, so it waits for the first test here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest
import torch
from functionals import REDUCTIONS, assert_agrees, is_floating
from test_gallery_activations import ACTIVATIONS
from test_gallery_labels import LABELLED
from test_gallery_losses import LOSSES

pytestmark = pytest.mark.samples

FUNCTIONALS = ACTIVATIONS | LOSSES | LABELLED
SUFFIXES = {word: f"_{word}" * (word != "mean") for word in (*REDUCTIONS, "batchmean")}
DTYPES = (torch.float64, torch.float32)

# (name of ours, arguments, options), or None for a sample with what ours has not
Call = tuple[str, dict, dict] | None


@pytest.fixture(scope="module")
def operators() -> dict:
    """torch's records of its functions, by name; the first of those that have variants."""
    from torch.testing._internal.common_methods_invocations import op_db

    return {op.name: op for op in reversed(op_db)}


def pointwise(name: str, sample) -> Call:
    return name, {"x": sample.input}, dict(sample.kwargs)


def softplus(sample) -> Call:
    return "softplus", {"x": sample.input}, {"beta": sample.kwargs.get("beta", 1)}


def gelu(sample) -> Call:
    name = {"none": "gelu", "tanh": "gelu_tanh"}[sample.kwargs.get("approximate", "none")]
    return name, {"x": sample.input}, {}


def along_rows(name: str, sample) -> Call:
    dims, *more = sample.args
    (dim, *others) = dims if isinstance(dims, tuple) else (dims,)
    if others or any(more) or sample.input.dim() == 0 or sample.input.shape[dim] == 0:
        return None  # several axes, another dtype; ours refuses the largest of nothing
    return name, {"x": sample.input.movedim(dim, -1)}, {}


def error(name: str, sample) -> Call:
    options = dict(sample.kwargs)
    name += SUFFIXES[options.pop("reduction", "mean")]
    return name, {"x": sample.input, "target": sample.args[0]}, options


def divergence(sample) -> Call:
    options = dict(sample.kwargs)
    reduction, of_logarithm = options.pop("reduction"), options.pop("log_target")
    suffix = SUFFIXES[reduction]
    return (
        f"kl_div{'_log_target' * of_logarithm}{suffix}",
        {"x": sample.input, "target": sample.args[0]},
        options,
    )


def binary(sample) -> Call:
    if sample.input.dim() == 0:
        return None  # ours weighs the positive answers along the last axis
    options = dict(sample.kwargs)
    name = "bce_with_logits" + SUFFIXES[options.pop("reduction", "mean")]
    weights = {key: options.pop(key, None) for key in ("weight", "pos_weight")}
    if weights["weight"] is not None:
        weights["weight"] = weights["weight"].expand_as(sample.input)
    return name, {"logits": sample.input, "target": sample.args[0]} | weights, options


def labelled(name: str, scores: str, sample) -> Call:
    given, target, options = sample.input, sample.args[0], dict(sample.kwargs)
    if given.dim() == 1:  # a single row, as a batch of one
        given, target = given[None], target[None]
    of_probabilities = is_floating(target)
    name += "_probabilities" * of_probabilities + SUFFIXES[options.pop("reduction", "mean")]
    targets = {"target" if of_probabilities else "labels": target}
    return name, {scores: given} | targets | {"weight": options.pop("weight", None)}, options


def cosine(sample) -> Call:
    options = dict(sample.kwargs)
    name = "cosine_embedding" + SUFFIXES[options.pop("reduction", "mean")]
    x2, target = sample.args
    return name, {"x1": sample.input, "x2": x2, "target": target}, options


TRANSLATIONS: dict[str, Callable[..., Call]] = {
    "sigmoid": partial(pointwise, "sigmoid"),
    "softmax": partial(along_rows, "softmax"),
    "log_softmax": partial(along_rows, "log_softmax"),
    "logsumexp": partial(along_rows, "logsumexp"),
    **{
        f"nn.functional.{name}": partial(pointwise, name)
        for name in ("relu", "leaky_relu", "elu", "silu", "mish")
    },
    "nn.functional.softplus": softplus,
    "nn.functional.gelu": gelu,
    **{
        f"nn.functional.{name}_loss": partial(error, name)
        for name in ("mse", "l1", "smooth_l1", "huber")
    },
    "nn.functional.kl_div": divergence,
    "nn.functional.binary_cross_entropy_with_logits": binary,
    "nn.functional.cross_entropy": partial(labelled, "cross_entropy", "logits"),
    "nn.functional.nll_loss": partial(labelled, "nll", "logprobs"),
    "nn.functional.cosine_embedding_loss": cosine,
}


def calls(operator, translated: Callable[..., Call], dtype) -> Iterator[Call]:
    torch.manual_seed(0)
    for sample in operator.sample_inputs("cpu", dtype, requires_grad=False):
        if (call := translated(sample)) is not None:
            yield call


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", TRANSLATIONS)
def test_torchs_own_samples(operators, name, dtype):
    found = list(calls(operators[name], TRANSLATIONS[name], dtype))
    assert found
    for ours, arguments, options in found:
        assert_agrees(FUNCTIONALS[ours], arguments, options)
