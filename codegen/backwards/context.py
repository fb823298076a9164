"""A ``ctx`` of our own for tracing a Function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.utils._pytree import tree_leaves

NOTED = "what is noted of a call"  # no attribute of the user's can have this name


@dataclass
class Noted:
    """Record of the calls that a forward and a backward made on their ``ctx``, with the answers."""

    needs: tuple[bool, ...]
    is_asked: bool = False
    materializes: bool = True
    saved: tuple = ()
    not_differentiable: tuple = ()


class RecordedContext:
    """The ``ctx`` of a forward and a backward: torch's names; all others belong to the Function."""

    def __init__(self, needs_input_grad: Sequence[bool]):
        vars(self)[NOTED] = Noted(tuple(needs_input_grad))

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """As in torch; the access is recorded."""
        noted_of(self).is_asked = True
        return noted_of(self).needs

    def save_for_backward(self, *tensors) -> None:
        noted_of(self).saved = tensors

    save_for_forward = save_for_backward

    @property
    def saved_tensors(self) -> tuple:
        return noted_of(self).saved

    saved_variables = saved_tensors

    def mark_non_differentiable(self, *tensors) -> None:
        noted_of(self).not_differentiable = tensors

    def mark_dirty(self, *tensors) -> None:
        """Accepted and ignored: writes into memory do not matter here."""

    def set_materialize_grads(self, value: bool) -> None:
        """If False, None arrives for an output that no loss reads."""
        noted_of(self).materializes = value


def noted_of(context: RecordedContext) -> Noted:
    return vars(context)[NOTED]


def kept_in(context: RecordedContext) -> list[torch.Tensor]:
    """All tensors that the forward left for the backward."""
    own = [value for name, value in vars(context).items() if name != NOTED]
    return [t for t in tree_leaves([*context.saved_tensors, own]) if isinstance(t, torch.Tensor)]
