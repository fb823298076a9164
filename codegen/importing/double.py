"""Everything in float64, whatever a function asks for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import nan

import torch
from torch.distributions import Distribution
from torch.utils._python_dispatch import TorchDispatchMode

COARSE = (torch.float32, torch.float16, torch.bfloat16)  # to which nothing is rounded here
HARD_EDGE = 3  # of the hard sigmoid


def _hard_sigmoid_backward(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.where(x.abs() < HARD_EDGE, dy / (2 * HARD_EDGE), 0)


# What torch computes with a constant of float32, whatever the dtype.
EXACT = {torch.ops.aten.hardsigmoid_backward.default: _hard_sigmoid_backward}

UNWRITTEN = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")


class _InDouble(TorchDispatchMode):
    """What asks for a coarser format gets float64; what nobody has written yet is no number."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        function = EXACT.get(function, function)
        kwargs = {n: torch.float64 if v in COARSE else v for n, v in (kwargs or {}).items()}
        result = function(*args, **kwargs)
        if (
            getattr(function, "overloadpacket", function).__name__ in UNWRITTEN
            and result.is_floating_point()
        ):
            result.fill_(nan)
        return result


@contextmanager
def in_double() -> Iterator[None]:
    """Tensors that a function makes are of float64, as its arguments are; distributions do not
    look at their values, and autocast, which leaves float64 as it is, is not entered.
    """
    before, checks = torch.get_default_dtype(), Distribution._validate_args
    entered, left = torch.autocast.__enter__, torch.autocast.__exit__
    torch.set_default_dtype(torch.float64)
    Distribution.set_default_validate_args(False)
    torch.autocast.__enter__ = lambda self: self
    torch.autocast.__exit__ = lambda self, *raised: False
    try:
        yield
    finally:
        torch.set_default_dtype(before)
        Distribution.set_default_validate_args(checks)
        torch.autocast.__enter__, torch.autocast.__exit__ = entered, left


@contextmanager
def run_in_double() -> Iterator[None]:
    """The same, and ``.float()`` rounds nothing."""
    with in_double(), _InDouble():
        yield
