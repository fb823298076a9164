"""torch's own sample inputs of its normalisations and blocks, through ours."""

from __future__ import annotations

import pytest
import torch
from functionals import assert_agrees, is_floating
from references import drawing
from test_gallery_blocks import ALL as BLOCKS
from test_gallery_norms import ALL as NORMS
from test_gallery_samples import DTYPES, Call, calls, operators

pytestmark = pytest.mark.samples

FUNCTIONALS = NORMS | BLOCKS
__all__ = ["operators"]  # the fixture


def of_channels(name: str, x, gain, bias, options) -> Call:
    """None where there is no entry to take a mean of."""
    if not x.numel():
        return None
    return name, {"x": x, "gain": gain, "bias": bias}, options


def eps_in(sample) -> dict:
    return {"eps": sample.kwargs["eps"]} if "eps" in sample.kwargs else {}


def batch_norm(sample) -> Call:
    mean, var, gain, bias = (*sample.args, None, None)[:4]
    if sample.kwargs.get("training"):
        return of_channels("batch_norm_biased", sample.input, gain, bias, eps_in(sample))
    if sample.input.dim() < 2:
        return None  # nothing, along one axis
    arguments = {"x": sample.input, "running_mean": mean, "running_var": var}
    return "batch_norm_evaluation", arguments | {"gain": gain, "bias": bias}, eps_in(sample)


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


def flat(tensor):
    return None if tensor is None else tensor.flatten()


def layer_norm(sample) -> Call:
    """Over several axes: over one of the size of them all."""
    shape, gain, bias = (*sample.args, None, None)[:3]
    arguments = {"x": sample.input.flatten(-len(shape)), "gain": flat(gain), "bias": flat(bias)}
    return "layer_norm", arguments, eps_in(sample)


def rms_norm(sample) -> Call:
    shape, gain = (*sample.args, None)[:2]
    eps = torch.finfo(sample.input.dtype).eps  # torch's default, whatever is computed in
    arguments = {"x": sample.input.flatten(-len(shape)), "gain": flat(gain)}
    return "rms_norm", arguments, {"eps": eps} | eps_in(sample)


def normalize(sample) -> Call:
    options = dict(sample.kwargs)
    dim = options.get("dim", 1)
    if options.get("p", 2.0) != 2 or sample.input.dim() == 0 or isinstance(dim, tuple):
        return None
    return "l2_normalize", {"x": sample.input.movedim(dim, -1)}, eps_in(sample)


def spread(name: str):
    def translated(sample) -> Call:
        """Along several axes: along one of the size of them all."""
        x, options = sample.input, dict(sample.kwargs)
        dims = sample.args[0] if sample.args else options.get("dim")
        dims = range(x.dim()) if dims is None else dims if isinstance(dims, tuple) else (dims,)
        correction = options.get("correction", int(options.get("unbiased", True)))
        correction = 1 if correction is None else correction
        if not dims or not x.numel():
            return None
        rows = x.movedim(tuple(dims), tuple(range(-len(dims), 0))).flatten(-len(dims))
        if correction > rows.shape[-1]:
            return None
        return name, {"x": rows}, {"correction": correction}

    return translated


def linear(sample) -> Call:
    weight, *bias = sample.args
    if weight.dim() != 2:
        return None  # a single output, without an axis
    return "linear", {"x": sample.input, "weight": weight.mT, "bias": (*bias, None)[0]}, {}


def bilinear(sample) -> Call:
    x2, weight, *bias = sample.args
    return (
        "bilinear",
        {"x1": sample.input, "x2": x2, "weight": weight, "bias": (*bias, None)[0]},
        {},
    )


def embedding(sample) -> Call:
    """Without what its backward does besides: rows that are not trained, or scaled."""
    padding, options = sample.kwargs.get("padding_idx"), dict(sample.kwargs)
    if padding is not None or any(options.get(n) for n in ("max_norm", "scale_grad_by_freq")):
        return None
    return "embedding", {"index": sample.args[0], "table": sample.input}, {}


def attention(sample) -> Call:
    """Without dropout."""
    options, mask = dict(sample.kwargs), sample.kwargs.get("attn_mask")
    if options.get("dropout_p"):
        return None
    tensors = dict(zip(("query", "key", "value"), (sample.input, *sample.args), strict=True))
    leading = torch.broadcast_shapes(*(t.shape[:-2] for t in tensors.values()))
    arguments = {name: t.expand(*leading, *t.shape[-2:]) for name, t in tensors.items()}
    scale = {"scale": options["scale"]} if options.get("scale") is not None else {}
    if options.get("is_causal"):
        return "causal_attention", arguments, scale
    if mask is None:
        return "scaled_dot_product_attention", arguments, scale
    seen = mask.expand(*leading, *mask.shape[-2:])
    if mask.dtype == torch.bool:
        return "masked_attention", arguments | {"mask": seen}, scale
    return "biased_attention", arguments | {"bias": seen}, scale


TRANSLATIONS = {
    "nn.functional.batch_norm": batch_norm,
    "nn.functional.instance_norm": instance_norm,
    "nn.functional.group_norm": group_norm,
    "nn.functional.layer_norm": layer_norm,
    "nn.functional.rms_norm": rms_norm,
    "nn.functional.normalize": normalize,
    "nn.functional.linear": linear,
    "nn.functional.bilinear": bilinear,
    "nn.functional.embedding": embedding,
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
        functional = FUNCTIONALS[ours]
        same = {n: t.detach().to(dtype) if is_floating(t) else t for n, t in arguments.items()}
        like = functional.reference(*same.values(), **options)
        upstream = drawing(1)(*like.shape, 1)[..., 0].to(dtype)
        assert_agrees(functional, same, options, upstream)
