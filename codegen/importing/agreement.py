"""How closely a forward that was read agrees with the function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from codegen.importing.double import run_in_double

SEED = 7  # of upstream gradients


@dataclass(frozen=True)
class Agreement:
    """At which sizes the two were compared, and how far apart they were at most."""

    sizes: tuple[Mapping[str, int], ...]
    values: float
    gradients: float
    scalars: tuple[str, ...] = ()
    tried: int = 1  # values of each

    @property
    def at(self) -> str:
        words = f"{len(self.sizes)} sets of sizes"
        named = ", ".join(self.scalars)
        return f"{words} and {self.tried} values of {named}" if named else words


def gradients_of(result: Tensor, leaves: Sequence[Tensor]) -> list[Tensor | None]:
    """Under a random upstream gradient; None of what has none, zero of what has no influence."""
    asked = [leaf for leaf in leaves if leaf.requires_grad]
    upstream = torch.randn(
        tuple(result.shape), generator=torch.Generator().manual_seed(SEED), dtype=torch.float64
    )
    if result.requires_grad:
        with run_in_double():
            found = torch.autograd.grad(
                result, asked, upstream.to(result.dtype), materialize_grads=True, allow_unused=True
            )
    else:
        found = tuple(map(torch.zeros_like, asked))
    each = iter(found)
    return [next(each) if leaf.requires_grad else None for leaf in leaves]


def distance(one: Tensor, other: Tensor) -> float:
    """Of the largest entry."""
    if not other.numel():
        return 0.0
    gap = torch.where(one == other, 0, one - other).abs().max().item()
    return gap / max(other.abs().max().item(), 1.0) if gap == gap else float("inf")
