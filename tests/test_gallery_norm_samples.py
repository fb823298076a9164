"""torch's own sample inputs of its normalisations and blocks, through ours."""

from __future__ import annotations

import pytest
import torch
from functionals import assert_agrees
from references import drawing
from test_gallery_blocks import ALL as BLOCKS
from test_gallery_norms import ALL as NORMS
from test_gallery_samples import DTYPES, Call, calls, operators

pytestmark = pytest.mark.samples

FUNCTIONALS = NORMS | BLOCKS
__all__ = ["operators"]  # the fixture


def of_channels(name: str, x, gain, bias, options) -> Call:
    """None where the gain or the bias is left out, or there is no entry to take a mean of."""
    if gain is None or bias is None or not x.numel():
        return None
    return name, {"x": x, "gain": gain, "bias": bias}, options


def eps_in(sample) -> dict:
    return {"eps": sample.kwargs["eps"]} if "eps" in sample.kwargs else {}


def batch_norm(sample) -> Call:
    _, _, gain, bias = (*sample.args, None, None)[:4]
    if not sample.kwargs.get("training"):
        return None
    return of_channels("batch_norm_biased", sample.input, gain, bias, eps_in(sample))


def instance_norm(sample) -> Call:
    options = sample.kwargs
    if not options.get("use_input_stats", True):
        return None
    gain, bias = options.get("weight"), options.get("bias")
    return of_channels("instance_norm", sample.input, gain, bias, eps_in(sample))


def group_norm(sample) -> Call:
    gain, bias = sample.kwargs.get("weight"), sample.kwargs.get("bias")
    options = {"groups": sample.args[0]} | eps_in(sample)
    return of_channels("group_norm", sample.input, gain, bias, options)


def layer_norm(sample) -> Call:
    """Over several axes: over one of the size of them all."""
    shape, gain, bias = (*sample.args, None, None)[:3]
    if gain is None or bias is None:
        return None
    x = sample.input.flatten(-len(shape))
    arguments = {"x": x, "gain": gain.flatten(), "bias": bias.flatten()}
    return "layer_norm", arguments, eps_in(sample)


def rms_norm(sample) -> Call:
    shape, gain = (*sample.args, None)[:2]
    if gain is None:
        return None
    eps = torch.finfo(sample.input.dtype).eps  # torch's default, whatever is computed in
    arguments = {"x": sample.input.flatten(-len(shape)), "gain": gain.flatten()}
    return "rms_norm", arguments, {"eps": eps} | eps_in(sample)


def normalize(sample) -> Call:
    options = dict(sample.kwargs)
    dim = options.get("dim", 1)
    if options.get("p", 2.0) != 2 or sample.input.dim() == 0 or isinstance(dim, tuple):
        return None
    return "l2_normalize", {"x": sample.input.movedim(dim, -1)}, eps_in(sample)


def spread(name: str):
    def translated(sample) -> Call:
        options = dict(sample.kwargs)
        dims = sample.args[0] if sample.args else options.get("dim")
        dims = dims if isinstance(dims, tuple) else (dims,)
        if None in dims or len(dims) != 1 or options.get("keepdim") or sample.input.dim() == 0:
            return None
        correction = options.get("correction", int(options.get("unbiased", True)))
        if correction is None:
            correction = 1
        if correction > sample.input.shape[dims[0]]:
            return None
        return name, {"x": sample.input.movedim(dims[0], -1)}, {"correction": correction}

    return translated


def bilinear(sample) -> Call:
    x2, weight, *bias = sample.args
    if not bias or bias[0] is None:
        return None
    return "bilinear", {"x1": sample.input, "x2": x2, "weight": weight, "bias": bias[0]}, {}


def attention(sample) -> Call:
    """Without masks, dropout and heads that share a key."""
    key, value, *_ = sample.args
    options = dict(sample.kwargs)
    plain = not options.get("is_causal") and not options.get("dropout_p")
    shared = sample.input.shape[:-2] != key.shape[:-2] or key.shape[:-2] != value.shape[:-2]
    if not plain or shared or options.get("attn_mask") is not None or "scale" in options:
        return None
    arguments = {"query": sample.input, "key": key, "value": value}
    return "scaled_dot_product_attention", arguments, {}


TRANSLATIONS = {
    "nn.functional.batch_norm": batch_norm,
    "nn.functional.instance_norm": instance_norm,
    "nn.functional.group_norm": group_norm,
    "nn.functional.layer_norm": layer_norm,
    "nn.functional.rms_norm": rms_norm,
    "nn.functional.normalize": normalize,
    "nn.functional.bilinear": bilinear,
    "nn.functional.scaled_dot_product_attention": attention,
    "var": spread("var"),
    "std": spread("std"),
}


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", TRANSLATIONS)
def test_torchs_own_samples(operators, name, dtype):
    found = list(calls(operators[name], TRANSLATIONS[name], dtype))
    assert found
    for ours, arguments, options in found:
        same = {n: t.detach().to(dtype) for n, t in arguments.items()}
        assert all(isinstance(t, torch.Tensor) for t in same.values())
        functional = FUNCTIONALS[ours]
        like = functional.reference(*same.values(), **options)
        upstream = drawing(1)(*like.shape, 1)[..., 0].to(dtype)
        assert_agrees(functional, same, options, upstream)
