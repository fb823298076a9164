"""Joins several outputs into one for a comparison; autograd splits them again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor


def joined(outputs: Tensor | Sequence[Tensor]) -> Tensor:
    """The one output as it is; of several all entries, concatenated."""
    if isinstance(outputs, Tensor):
        return outputs
    return torch.cat([output.reshape(-1) for output in outputs])


def of_statements(values: Sequence[Tensor]) -> Tensor:
    """The same for outputs in a list, even a single one."""
    return joined(values[0] if len(values) == 1 else values)


def apart(entries: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """Split entries into the gradients of several outputs."""
    if len(like) == 1:
        return [entries.reshape(like[0].shape)]
    parts = entries.split([output.numel() for output in like])
    return [part.reshape(output.shape) for part, output in zip(parts, like, strict=True)]


def one_by_one(
    function: Callable[..., tuple[Tensor, ...]],
    leaves_of: Callable[[Sequence[str]], Mapping[str, object]],
    inputs: Sequence[str],
    upstream: Tensor,
) -> list[Tensor]:
    """The sum of the gradients of one output at a time, where no other one has any."""
    total: list[Tensor] = []
    for i, part in enumerate(apart(upstream, function(**leaves_of(())))):
        leaves = leaves_of(inputs)
        output, own = function(**leaves)[i], [leaves[name] for name in inputs]
        found = [torch.zeros_like(t) for t in own]
        if output.requires_grad:
            found = torch.autograd.grad(output, own, part, materialize_grads=True)
        total = [a + b for a, b in zip(total, found, strict=True)] if total else [*found]
    return total
