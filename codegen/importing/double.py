"""Run a function in float64 whatever dtype it asks for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import nan

import torch
from torch.distributions import Distribution
from torch.utils._python_dispatch import TorchDispatchMode

COARSE = (torch.float32, torch.float16, torch.bfloat16)  # replaced by float64
HARD_EDGE = 3  # of the hard sigmoid


def _hard_sigmoid_backward(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.where(x.abs() < HARD_EDGE, dy / (2 * HARD_EDGE), 0)


# Operations in which torch uses a float32 constant for every dtype.
EXACT = {torch.ops.aten.hardsigmoid_backward.default: _hard_sigmoid_backward}

UNWRITTEN = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")


class _Float64Mode(TorchDispatchMode):
    """Replace coarser dtypes by float64, and fill uninitialized memory with NaN."""

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
    """Make created tensors float64 like the arguments; skip value checks of distributions, and
    autocast, which leaves float64 alone.
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
    """The same, and ``.float()`` is the identity."""
    with in_double(), _Float64Mode():
        yield
