"""References typed by hand, a comparison that refuses what it cannot compare, and data.

Nothing here is generated and nothing here knows a closed form: the gradients come from autograd, in
float64, of the two functions as a person would type them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

torch.set_num_threads(1)

TOLERANCES = {torch.float64: 1e-12, torch.float32: 2e-6}
UPSTREAMS = ("contiguous", "transposed", "stride 0 along the rows", "stride 0 everywhere")
SIZES = [(2, 3), (3, 5), (4, 3), (5, 4), (6, 5), (7, 3), (8, 6), (32, 27), (1000, 10)]


# The comparison


def assert_same_kind(got: Tensor, reference: Tensor, dtype: torch.dtype, name: str) -> None:
    """The result has the dtype asked for, the reference is of float64, and both have one shape."""
    assert got.dtype == dtype, f"{name} is of {got.dtype}, not of {dtype}"
    assert reference.dtype == torch.float64, f"the reference of {name} is of {reference.dtype}"
    assert got.shape == reference.shape, f"{name}: {tuple(got.shape)} != {tuple(reference.shape)}"


def assert_within(
    got: Tensor,
    reference: Tensor,
    dtype: torch.dtype,
    name: str,
    scale: float | None = None,
) -> None:
    """No entry is further from the float64 reference than the dtype's tolerance times ``scale``.

    The scale is the largest reference entry. It is given only for a quantity that cancels, where it
    is the size of the terms that do.
    """
    assert_same_kind(got, reference, dtype, name)
    error = largest(got.double() - reference)
    bound = TOLERANCES[dtype] * (largest(reference) if scale is None else scale)
    assert error <= bound, f"{name}: the largest difference is {error:.3g}, allowed is {bound:.3g}"


def assert_fields_within(
    got: tuple,
    references: dict[str, Tensor],
    dtype: torch.dtype,
    scales: dict[str, float] | None = None,
) -> None:
    """A NamedTuple holds exactly the fields of the references, in their order, each within."""
    assert got._fields == tuple(references)
    for name, reference in references.items():
        assert_within(getattr(got, name), reference, dtype, name, (scales or {}).get(name))


def assert_rounded_once(got: Tensor, reference: Tensor, dtype: torch.dtype, name: str) -> None:
    """Computed in float32 and rounded to ``dtype`` once: half a unit in the last place, no more."""
    assert_same_kind(got, reference, dtype, name)
    unit = torch.finfo(dtype).eps / 2
    subnormal = torch.finfo(dtype).tiny * unit
    allowed = 1.01 * unit * reference.abs() + 2e-6 * largest(reference) + subnormal
    excess = ((got.double() - reference).abs() - allowed).max().item()
    assert excess <= 0, f"{name} lies {excess:.3g} further from the reference than one rounding"


def largest(tensor: Tensor) -> float:
    """The largest magnitude; NaN where there is one."""
    return tensor.abs().max().item()


# Autograd, for any function


def value_and_gradients(function, inputs, upstream: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The function's value, and autograd's gradients of the inputs under the upstream gradient."""
    leaves = [tensor.detach().requires_grad_() for tensor in inputs]
    value = function(*leaves)
    return value.detach(), torch.autograd.grad(value, leaves, upstream)


def doubled(*tensors: Tensor) -> list[Tensor]:
    """The same numbers in float64, in memory of their own."""
    return [tensor.detach().to(torch.float64, copy=True) for tensor in tensors]


def gradients_of_atoms(
    atoms: dict[str, Tensor], inputs: dict[str, Tensor], upstream: Tensor
) -> dict[str, Tensor]:
    """d<name> of every atom and then of every input; the last atom is the output."""
    for atom in atoms.values():
        atom.retain_grad()
    list(atoms.values())[-1].backward(upstream)
    return {f"d{name}": tensor.grad for name, tensor in {**atoms, **inputs}.items()}


# Batch normalization with the unbiased variance


def batch_norm_by_hand(x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    return gain * (x - x.mean(0)) / torch.sqrt(x.var(0, correction=1) + eps) + bias


def batch_norm_through_torch(x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """The same through torch's own batch norm, whose variance is (n-1)/n of the unbiased one."""
    ratio = (x.shape[0] - 1) / x.shape[0]
    return F.batch_norm(x, None, None, gain * ratio**0.5, bias, training=True, eps=eps * ratio)


def torch_batch_norm(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    """torch's own, with its biased variance."""
    return F.batch_norm(x, None, None, gain, bias, training=True, eps=1e-5)


def batch_norm_atoms_by_hand(
    x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5
) -> dict[str, Tensor]:
    """Every tensor on the way, so that autograd can be asked for the gradient of each."""
    n = x.shape[0]
    mean = x.sum(0, keepdim=True) * (1 / n)
    diff = x - mean
    diff2 = diff**2
    var = diff2.sum(0, keepdim=True) * (1 / (n - 1))
    inv_std = (var + eps) ** -0.5
    xhat = diff * inv_std
    y = gain * xhat + bias
    return {
        "mean": mean,
        "diff": diff,
        "diff2": diff2,
        "var": var,
        "inv_std": inv_std,
        "xhat": xhat,
        "y": y,
    }


@dataclass(frozen=True)
class BatchNormCase:
    """Inputs of a batch norm and an upstream gradient, none of them ones."""

    x: Tensor
    gain: Tensor
    bias: Tensor
    dy: Tensor

    @property
    def inputs(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.x, self.gain, self.bias

    def expected(self, eps: float = 1e-5) -> dict[str, Tensor]:
        """y, dx, dgain and dbias by autograd in float64."""
        y, gradients = value_and_gradients(
            lambda x, gain, bias: batch_norm_by_hand(x, gain, bias, eps),
            doubled(*self.inputs),
            self.dy.double(),
        )
        return dict(zip(("y", "dx", "dgain", "dbias"), (y, *gradients), strict=True))

    def size_of_the_terms_of_dx(self, eps: float = 1e-5) -> float:
        """The largest term of the sum that is dx.

        At n = 2 the terms cancel: xhat is +-1/sqrt(2) whatever x is, dx is of the order of eps, and
        what is left of it in any precision is the rounding of these terms.
        """
        x, gain, dy = doubled(self.x, self.gain, self.dy)
        return largest(gain / torch.sqrt(x.var(0, correction=1) + eps) * dy)


def batch_norm_case(
    n: int,
    c: int,
    dtype: torch.dtype = torch.float64,
    *,
    seed: int = 0,
    offset: float = 0.0,
    upstream: str = "contiguous",
) -> BatchNormCase:
    """Random data of a seed; ``offset`` moves half of the columns up and the others down."""
    draw = drawing(seed)
    signs = 1.0 - 2.0 * (torch.arange(c) % 2)
    return BatchNormCase(
        x=(2 * draw(n, c) + 0.5 + offset * signs).to(dtype),
        gain=(1 + 0.5 * draw(c)).to(dtype),
        bias=draw(c).to(dtype),
        dy=laid_out(upstream, n, c, lambda *shape: draw(*shape).to(dtype)),
    )


def drawing(seed: int):
    """Normal numbers of one seeded generator: ``draw(*shape)``."""
    generator = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)


def laid_out(layout: str, n: int, c: int, draw) -> Tensor:
    """Random numbers of the shape (n, c) in one of the layouts of UPSTREAMS."""
    if layout == "contiguous":
        return draw(n, c)
    if layout == "transposed":
        return draw(c, n).t()
    if layout == "stride 0 along the rows":
        return draw(1, c).expand(n, c)
    if layout == "stride 0 everywhere":
        return draw(1).expand(n, c)
    raise ValueError(layout)


# Softmax and mean negative log likelihood


def softmax_nll_by_hand(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits, labels)


def softmax_nll_atoms_by_hand(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Every tensor on the way, so that autograd can be asked for the gradient of each."""
    rows = torch.arange(logits.shape[0])
    logit_maxes = logits.max(1, keepdim=True).values
    norm_logits = logits - logit_maxes
    counts = norm_logits.exp()
    counts_sum = counts.sum(1, keepdim=True)
    counts_sum_inv = counts_sum**-1
    probs = counts * counts_sum_inv
    logprobs = probs.log()
    loss = -logprobs[rows, labels].mean()
    return {
        "logit_maxes": logit_maxes,
        "norm_logits": norm_logits,
        "counts": counts,
        "counts_sum": counts_sum,
        "counts_sum_inv": counts_sum_inv,
        "probs": probs,
        "logprobs": logprobs,
        "loss": loss,
    }


@dataclass(frozen=True)
class SoftmaxNLLCase:
    """Logits, labels and the gradient of the loss, which is not one."""

    logits: Tensor
    labels: Tensor
    dloss: Tensor

    def expected(self) -> dict[str, Tensor]:
        """loss and dlogits by autograd in float64."""
        loss, (dlogits,) = value_and_gradients(
            lambda logits: softmax_nll_by_hand(logits, self.labels.long()),
            doubled(self.logits),
            self.dloss.double(),
        )
        return {"loss": loss, "dlogits": dlogits}


def softmax_nll_case(
    n: int,
    c: int,
    dtype: torch.dtype = torch.float64,
    *,
    seed: int = 0,
    offset: float = 0.0,
) -> SoftmaxNLLCase:
    """Random data of a seed; ``offset`` is added to all logits."""
    draw = drawing(seed)
    generator = torch.Generator().manual_seed(seed)
    return SoftmaxNLLCase(
        logits=(2 * draw(n, c) + offset).to(dtype),
        labels=torch.randint(c, (n,), generator=generator),
        dloss=(0.7 + draw(3)[1].abs()).to(dtype),
    )


# What a function must leave alone


def assert_leaves_alone(function, *arguments, **named) -> None:
    """The call neither changes a value of its arguments nor writes to their memory."""
    tensors = [a for a in (*arguments, *named.values()) if isinstance(a, Tensor)]
    before = [(tensor.clone(), tensor._version) for tensor in tensors]
    function(*arguments, **named)
    for tensor, (value, version) in zip(tensors, before, strict=True):
        assert torch.equal(tensor, value)
        assert tensor._version == version
