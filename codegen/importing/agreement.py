"""The measured agreement of an imported forward with the function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from codegen.importing.double import run_in_double

SEED = 7  # of upstream gradients


@dataclass(frozen=True)
class Agreement:
    """The sizes compared, and the largest differences."""

    sizes: tuple[Mapping[str, int], ...]
    values: float
    gradients: float
    scalars: tuple[str, ...] = ()
    tried: int = 1  # values of each scalar

    @property
    def at(self) -> str:
        words = f"{len(self.sizes)} sets of sizes"
        named = ", ".join(self.scalars)
        return f"{words} and {self.tried} values of {named}" if named else words


def gradients_of(result: Tensor, leaves: Sequence[Tensor]) -> list[Tensor | None]:
    """Gradients under a random upstream gradient; None for a tensor without one, zero if it has no
    influence.
    """
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
    """The largest difference, relative to the largest entry."""
    if not other.numel():
        return 0.0
    gap = torch.where(one == other, 0, one - other).abs().max().item()
    return gap / max(other.abs().max().item(), 1.0) if gap == gap else float("inf")
