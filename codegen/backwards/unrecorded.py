"""Inside a ``torch.autograd.Function`` nothing is recorded: to leave the graph changes nothing.

``x.detach()``, ``x.data`` and ``torch.no_grad()`` are the identity there: the backward alone says
what the derivative is, and it is compared with that of the values.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.overrides import TorchFunctionMode

LEAVING = (torch.Tensor.detach, torch.detach)
SETTING = torch._C._set_grad_enabled


class _Unrecorded(TorchFunctionMode):
    """Lets every tensor stay in the graph that somebody makes of the Function from outside."""

    def __enter__(self):
        self.recorded = torch.is_grad_enabled()
        return super().__enter__()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in LEAVING:
            return torch.ops.aten.alias.default(*args, **(kwargs or {}))
        if function is torch.Tensor.detach_:
            return args[0]
        if function is SETTING and self.recorded:
            return None
        return function(*args, **(kwargs or {}))


@contextmanager
def unrecorded() -> Iterator[None]:
    """For as long as the code of a Function runs."""
    before, own = torch.Tensor.data, torch._C.TensorBase.data
    torch.Tensor.data = property(lambda t: t.detach(), own.__set__)
    try:
        with _Unrecorded():
            yield
    finally:
        if isinstance(before, property):
            torch.Tensor.data = before
        else:
            del torch.Tensor.data
