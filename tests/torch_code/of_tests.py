"""The references of the other tests, typed by hand or torch's own, with the axes of their tensors.

What gradform cannot say is not among them: what a test only needs to raise, what depends on values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import test_captured_axes as captured
import test_flatten as flattened
import test_gallery_blocks as blocks
import test_gallery_labels as labels
import test_gallery_losses as losses
import test_gallery_norms as norms
import test_given as given
import test_hard_forwards as hard
import test_mlp as mlp
import test_position as position
import torch
import torch.nn.functional as F
from references import batch_norm_by_hand, batch_norm_through_torch, softmax_nll_by_hand


class Reference(NamedTuple):
    function: Callable
    axes: str
    sizes: str = ""


ENTRIES, PAIRS, LOGITS = "x: N C", "x: N C, target: N C", "logits: N C, target: N C"
CHANNELS = "x: N C S, gain: C, bias: C"
ROWS = "x: N C, gain: C, bias: C"
LABELLED = "logits: N C, target: N int"

ACTIVATIONS = {
    **{name: getattr(F, name) for name in ("relu", "leaky_relu", "elu", "silu", "mish", "selu")},
    **{name: getattr(F, name) for name in ("celu", "hardswish", "hardsigmoid", "logsigmoid")},
    **{name: getattr(F, name) for name in ("softplus", "gelu", "softsign", "tanhshrink", "relu6")},
    "sigmoid": torch.sigmoid,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "variance": norms.variance,
    "deviation": norms.deviation,
    "l2_normalize": norms.l2_normalize,
}
OF_PAIRS = {
    "mse": F.mse_loss,
    "l1": F.l1_loss,
    "smooth_l1": F.smooth_l1_loss,
    "huber": F.huber_loss,
    "kl_div": F.kl_div,
    "soft_margin": F.soft_margin_loss,
    "poisson_nll": F.poisson_nll_loss,
    "hinge_embedding": F.hinge_embedding_loss,
}
MLP = (
    "contexts: N T int, labels: N int, C: V E, W1: K H, b1: H, W2: H V, b2: V, bngain: H, bnbias: H"
)


def references() -> Iterator[tuple[str, Reference]]:
    """Every reference under its name."""
    yield from (
        (f"activation {n}", Reference(f, _named(f, ENTRIES))) for n, f in ACTIVATIONS.items()
    )
    for name, f in OF_PAIRS.items():
        yield f"loss {name}", Reference(f, "input: N C, target: N C")
    for word in ("mean", "sum", "none"):
        for name in ("hinge", "log_cosh"):
            own = _with(getattr(losses, name), reduction=word)
            yield f"loss {name} {word}", Reference(own, PAIRS)
        own = _with(losses.focal, reduction=word)
        yield f"loss focal {word}", Reference(own, LOGITS)
        own = _with(losses.bce, reduction=word)
        axes = f"{LOGITS}, weight: N C, pos_weight: C"
        yield f"loss bce {word}", Reference(own, axes)
        own = _with(labels.cross_entropy, reduction=word)
        yield f"loss cross entropy {word}", Reference(own, f"{LABELLED}, weight: C given")
    yield from LOSSES.items()
    yield from LAYERS.items()
    yield from HARD.items()
    yield from FLATTENED.items()


def _named(function: Callable, axes: str) -> str:
    """torch's own functions call their tensor input."""
    own = getattr(function, "__module__", "") in ("torch.nn.functional", "torch._C._nn")
    return axes.replace("x:", "input:") if own else axes


def _with(function: Callable, **options) -> Callable:
    """The same function with other defaults."""
    return partial(function, **options)


LOSSES = {
    "js_div": Reference(losses.jensen_shannon, "p: N C, q: N C"),
    "kl_div of logarithms": Reference(
        lambda x, target: F.kl_div(x, target, log_target=True), PAIRS
    ),
    "cosine embedding": Reference(
        F.cosine_embedding_loss, "input1: N D, input2: N D, target: N given"
    ),
    "info_nce": Reference(losses.info_nce, "queries: N D, keys: N D"),
    "nll": Reference(labels.nll, "logprobs: N C, labels: N int, weight: C given"),
    "cross entropy": Reference(labels.cross_entropy, LABELLED),
    "cross entropy of images": Reference(
        labels.cross_entropy, "logits: N C S, target: N S int, weight: C given"
    ),
    "cross entropy of probabilities": Reference(labels.cross_entropy, LOGITS),
    "cross entropy smoothed": Reference(
        lambda logits, target, weight: F.cross_entropy(logits, target, weight, label_smoothing=0.1),
        f"{LABELLED}, weight: C given",
    ),
    "softcapped": Reference(labels.softcapped, "logits: N C, labels: N int"),
    "softmax nll": Reference(softmax_nll_by_hand, "logits: N C, labels: N int"),
    "margin ranking": Reference(F.margin_ranking_loss, "input1: N, input2: N, target: N"),
    "triplet margin": Reference(F.triplet_margin_loss, "anchor: N D, positive: N D, negative: N D"),
    "gaussian nll": Reference(
        lambda x, target, var: F.gaussian_nll_loss(x, target, var.exp(), full=True),
        "x: N D, target: N D, var: N D",
    ),
    "pairwise distance": Reference(F.pairwise_distance, "x1: N D, x2: N D"),
}
CELL = "x: N K, h: N H, w_ih: G K, w_hh: G H, b_ih: G, b_hh: G"
ATTENDED = "query: B T E, key: B S E, value: B S D"
LAYERS = {
    "batch norm by hand": Reference(batch_norm_by_hand, ROWS),
    "batch norm through torch": Reference(batch_norm_through_torch, ROWS),
    "batch norm": Reference(norms.batch_norm, CHANNELS),
    "batch norm evaluated": Reference(
        norms.batch_norm_evaluation,
        "x: N C S, mean: C given, var: C given, gain: C, bias: C",
    ),
    "instance norm": Reference(norms.instance_norm, CHANNELS),
    "group norm": Reference(_with(norms.group_norm, groups=4), CHANNELS),
    "layer norm": Reference(norms.layer_norm, ROWS),
    "rms norm": Reference(norms.rms_norm, "x: N C, gain: C"),
    "weight norm": Reference(norms.weight_norm, "v: N K, g: N"),
    "linear": Reference(blocks.linear, "x: N K, weight: K H, bias: H"),
    "bilinear": Reference(F.bilinear, "input1: N K, input2: N L, weight: H K L, bias: H"),
    "embedding": Reference(lambda index, table: F.embedding(index, table), "index: N, table: V D"),
    "rnn cell": Reference(
        lambda x, h, w_ih, w_hh, b_ih, b_hh: torch.rnn_tanh_cell(x, h, w_ih, w_hh, b_ih, b_hh),
        CELL.replace("G", "H"),
    ),
    "gru cell": Reference(
        lambda x, h, w_ih, w_hh, b_ih, b_hh: torch.gru_cell(x, h, w_ih, w_hh, b_ih, b_hh), CELL
    ),
    "lstm cell": Reference(
        lambda x, h, c, w_ih, w_hh: torch.stack(torch.lstm_cell(x, (h, c), w_ih, w_hh)),
        "x: N K, h: N H, c: N H, w_ih: G K, w_hh: G H",
    ),
    "swiglu": Reference(lambda gate, x: F.silu(gate) * x, "gate: N C, x: N C"),
    "geglu": Reference(lambda gate, x: F.gelu(gate) * x, "gate: N C, x: N C"),
    "attention": Reference(blocks.attention, ATTENDED),
    "attention masked": Reference(blocks.attention, f"{ATTENDED}, mask: B T S bool"),
    "attention biased": Reference(blocks.attention, f"{ATTENDED}, mask: B T S given"),
    "attention causal": Reference(blocks.causal_attention, ATTENDED),
    "mlp": Reference(mlp.by_hand, MLP),
    "causal": Reference(position.causal_by_hand, "x: N N"),
    "pairs": Reference(position.pairs_by_hand, "x: N D"),
    "masked": Reference(given.masked_by_hand, "x: N C, mask: N C, target: N"),
}
AXES_OF_HARD = {
    "NegativeHalfPower": "x: N C",
    "LeakyRelu": "x: N",
    "HuberLoss": "x: N, t: N",
    "Mask": "x: N, w: N",
    "Clip": "x: N",
    "DiceOfClasses": "z: N C K, i: N K int",
    "NestedMax": "x: N H K",
    "StandardDeviation": "x: N C, g: C",
    "ThreeMatrices": "a: N C, b: C D, c: D K",
    "Images": "x: N C H, gain: C",
    "SigmoidLoss": "x: N D, z: N D",
    "RootOfAFunction": "x: N C",
    "MaximumMetTwice": "x: N C",
    "SignedPower": "x: N",
    "ThreeChoicesInAnExponent": "x: N",
    "PowerOverAScalar": "x: N C",
    "WeightedBatchNorm": "x: N C, w: N, gain: C, bias: C",
    "StudentT": "z: N D, mu: K D, t: N K",
    "FocalTversky": "x: N C, t: N C",
    "Sinkhorn": "x: N C",
    "WeightedLogSumExp": "x: N C, w: C",
}
HARD = {
    f"hard {name}": Reference((hard.CASES | hard.LARGE)[name][1], axes)
    for name, axes in AXES_OF_HARD.items()
}
AXES_OF_FLATTENED = {
    "as a whole": "x: N T E",
    "in a matrix product": "x: N T E, w: K H",
}
FLATTENED = {
    f"flattened {name}": Reference(flattened.CASES[name][1], axes)
    for name, axes in AXES_OF_FLATTENED.items()
    if name in getattr(flattened, "CASES", {})
} | {
    "captured attention": Reference(captured.attention, "scores: E, h: N D, src: E, dst: E"),
}
