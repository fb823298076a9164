"""Count the collectives of a rank in torch's dispatcher, forward and backward: those of
torch.distributed and the functional ones of DTensor.
"""

from __future__ import annotations

from collections import Counter

import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode


class Collectives(TorchDispatchMode):
    """The calls of this rank, and the bytes it sends in a ring algorithm: all-reduce goes round
    twice, a part at a time, all-gather once.
    """

    GIVEN = {"allreduce_": 0, "all_reduce": 0, "allgather_": 1, "all_gather_into_tensor": 0}
    LOCAL = ("wait_tensor", "_wrap_tensor_autograd")

    def __init__(self):
        super().__init__()
        self.calls: Counter[str] = Counter()
        self.sent = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if any(issubclass(kind, DTensor) for kind in types):
            return NotImplemented  # it comes again as what is done with the parts
        space, name = function.namespace, function._schema.name.split("::")[1]
        if space in ("c10d", "_c10d_functional") and name not in self.LOCAL:
            if name not in self.GIVEN:
                raise NotImplementedError(f"what {name} sends is not known: add it to GIVEN")
            self._note(name, args[self.GIVEN[name]])
        return function(*args, **(kwargs or {}))

    def _note(self, name: str, given: Tensor | list[Tensor]) -> None:
        tensors, others = [given] if isinstance(given, Tensor) else given, dist.get_world_size() - 1
        size, reduces = sum(tensor.nbytes for tensor in tensors), "reduce" in name
        self.calls["all_reduce" if reduces else "all_gather"] += 1
        self.sent += size * 2 * others // (others + 1) if reduces else size * others

    def __str__(self):
        return "\n".join(f"{times} {name}" for name, times in self.calls.items()) or "-"
