"""Functions to compare with in benchmarks/gpu.py: torch's own and Liger's, under the names of ours.
They take the same arguments by name; a test compares torch's with ours.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from importlib import import_module

import torch
import torch.nn.functional as F
from torch import Tensor

EPS = 1e-5
P = 3


def rms_norm(x: Tensor, gain: Tensor) -> Tensor:
    return F.rms_norm(x, gain.shape, gain, EPS)


def add_rms_norm(x: Tensor, residual: Tensor, gain: Tensor) -> tuple[Tensor, Tensor]:
    h = x + residual
    return rms_norm(h, gain), h


def layer_norm(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, gain.shape, gain, bias, EPS)


def batch_norm_evaluation(x, running_mean, running_var, gain, bias) -> Tensor:
    return F.batch_norm(x, running_mean, running_var, gain, bias, eps=EPS)


def masked_softmax(x: Tensor, mask: Tensor) -> Tensor:
    return x.masked_fill(mask == 0, -float("inf")).softmax(-1)


def masked_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(query, key, value, mask != 0)


def focal(logits: Tensor, target: Tensor) -> Tensor:
    loss = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    p = logits.sigmoid()
    right = p * target + (1 - p) * (1 - target)
    weight = 0.25 * target + 0.75 * (1 - target)
    return (weight * (1 - right) ** 2 * loss).mean()


def cell(function: Callable) -> Callable[..., Tensor]:
    def by_name(x, h, weight_ih, weight_hh, bias_ih, bias_hh) -> Tensor:
        return function(x, h, weight_ih, weight_hh, bias_ih, bias_hh)

    return by_name


def lstm_cell(x, h, c, weight_ih, weight_hh, bias_ih, bias_hh) -> Tensor:
    return torch.stack(torch.lstm_cell(x, (h, c), weight_ih, weight_hh, bias_ih, bias_hh))


TORCHS: dict[str, Callable] = {
    "add_rms_norm": add_rms_norm,
    "batch_norm_biased": lambda x, gain, bias: F.batch_norm(x, None, None, gain, bias, True),
    "batch_norm_evaluation": batch_norm_evaluation,
    "bce_with_logits": lambda logits, target: F.binary_cross_entropy_with_logits(logits, target),
    "biased_attention": lambda query, key, value, bias: F.scaled_dot_product_attention(
        query, key, value, bias
    ),
    "bilinear": lambda x1, x2, weight, bias: F.bilinear(x1, x2, weight, bias),
    "causal_attention": lambda query, key, value: F.scaled_dot_product_attention(
        query, key, value, is_causal=True
    ),
    "conv1d": lambda x, weight, bias: F.conv1d(x, weight, bias),
    "conv2d": lambda x, weight, bias: F.conv2d(x, weight, bias),
    "cosine_embedding": lambda x1, x2, target: F.cosine_embedding_loss(x1, x2, target),
    "cross_entropy": lambda logits, labels: F.cross_entropy(logits, labels),
    "cross_entropy_probabilities": lambda logits, target: F.cross_entropy(logits, target),
    "elu": lambda x: F.elu(x),
    "embedding": lambda index, table: F.embedding(index, table),
    "focal": focal,
    "geglu": lambda gate, x: F.gelu(gate) * x,
    "gelu": lambda x: F.gelu(x),
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "group_norm": lambda x, gain, bias, groups: F.group_norm(x, groups, gain, bias),
    "gru_cell": cell(torch.gru_cell),
    "hinge_embedding": lambda x, target: F.hinge_embedding_loss(x, target),
    "huber": lambda x, target: F.huber_loss(x, target),
    "instance_norm": lambda x, gain, bias: F.instance_norm(x, weight=gain, bias=bias),
    "kl_div": lambda x, target: F.kl_div(x, target, reduction="mean"),
    "kl_div_log_target": lambda x, target: F.kl_div(x, target, reduction="mean", log_target=True),
    "l1": lambda x, target: F.l1_loss(x, target),
    "l2_normalize": lambda x: F.normalize(x, dim=-1),
    "layer_norm": layer_norm,
    "leaky_relu": lambda x: F.leaky_relu(x),
    "linear": lambda x, weight, bias: torch.addmm(bias, x, weight),
    "log_softmax": lambda x: F.log_softmax(x, -1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "lstm_cell": lstm_cell,
    "masked_attention": masked_attention,
    "masked_softmax": masked_softmax,
    "mish": lambda x: F.mish(x),
    "mse": lambda x, target: F.mse_loss(x, target),
    "nll": lambda logprobs, labels: F.nll_loss(logprobs, labels),
    "norm": lambda x: torch.linalg.vector_norm(x, dim=-1),
    "norm1": lambda x: torch.linalg.vector_norm(x, 1, dim=-1),
    "norm_inf": lambda x: torch.linalg.vector_norm(x, float("inf"), dim=-1),
    "norm_p": lambda x: torch.linalg.vector_norm(x, P, dim=-1),
    "relu": lambda x: F.relu(x),
    "rms_norm": rms_norm,
    "rnn_cell": cell(torch.rnn_tanh_cell),
    "scaled_dot_product_attention": lambda query, key, value: F.scaled_dot_product_attention(
        query, key, value
    ),
    "sigmoid": lambda x: x.sigmoid(),
    "silu": lambda x: F.silu(x),
    "smooth_l1": lambda x, target: F.smooth_l1_loss(x, target),
    "softmax": lambda x: F.softmax(x, -1),
    "softmax_nll": lambda logits, labels: F.cross_entropy(logits, labels),
    "softplus": lambda x: F.softplus(x),
    "softplus_threshold": lambda x: F.softplus(x),
    "std": lambda x: x.std(-1),
    "swiglu": lambda gate, x: F.silu(gate) * x,
    "tanh": lambda x: x.tanh(),
    "triplet": lambda anchor, positive, negative: F.triplet_margin_loss(anchor, positive, negative),
    "var": lambda x: x.var(-1),
    "weight_norm": lambda v, g: torch._weight_norm(v, g[:, None], 0),
}

# Liger's function, the arguments of ours in its order, and what follows them. Its GEGLU has the
# tanh approximation of GELU.
LIGERS: dict[str, tuple[str, str, tuple]] = {
    "add_rms_norm": ("FusedAddRMSNorm", "x residual gain", (EPS,)),
    "cross_entropy": ("CrossEntropy", "logits labels", (None,)),
    "cross_entropy_softcap": (
        "CrossEntropy",
        "logits labels",
        (None, -100, 0.0, 0.0, "mean", 30.0),
    ),
    "cross_entropy_z_loss": ("CrossEntropy", "logits labels", (None, -100, 1e-4)),
    "geglu": ("GELUMul", "gate x", ()),
    "kl_div": ("KLDivLoss", "x target", ("mean",)),
    "kl_div_log_target": ("KLDivLoss", "x target", ("mean", True)),
    "layer_norm": ("LayerNorm", "x gain bias", (EPS,)),
    "rms_norm": ("RMSNorm", "x gain", (EPS,)),
    "softmax": ("Softmax", "x", ()),
    "softmax_nll": ("CrossEntropy", "logits labels", (None,)),
    "swiglu": ("SiLUMul", "gate x", ()),
}

BY_HAND = {"silu"}


def ligers_of(name: str) -> Callable | None:
    """Liger's function of the same name, where there is one and its package is installed."""
    if name not in LIGERS or importlib.util.find_spec("liger_kernel") is None:
        return None
    own, order, more = LIGERS[name]
    function = getattr(import_module("liger_kernel.ops"), f"Liger{own}Function")

    def ligers(**given):
        return function.apply(*(given[each] for each in order.split()), *more)

    return ligers


def by_hand(name: str) -> Callable | None:
    """A function of benchmarks/gpu_by_hand.py, where there is one and Triton is installed."""
    if name not in BY_HAND or importlib.util.find_spec("triton") is None:
        return None
    return getattr(import_module("gpu_by_hand"), name)
