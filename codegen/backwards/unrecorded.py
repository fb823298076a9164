"""Nothing is recorded inside a ``torch.autograd.Function``: detaching changes nothing.

``x.detach()``, ``x.data`` and ``torch.no_grad()`` are the identity there: the backward alone
defines the derivative, and it is compared with that of the values.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.overrides import TorchFunctionMode

LEAVING = (torch.Tensor.detach, torch.detach)
SETTING = torch._C._set_grad_enabled


class _Unrecorded(TorchFunctionMode):
    """Keeps every tensor in the graph that a caller records of the Function."""

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
    """Context manager around the code of a Function."""
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
