"""Functions that a lean module prints into itself where its lines call them; others, which are
plain torch throughout, are taken from the runtime of modules (``torch/_runtime.py``).
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterable
from types import FunctionType

import torch
from torch import Tensor

from codegen.targets.torch import _runtime
from codegen.targets.torch._runtime import scanned, stepped

CALLED = re.compile(r"_runtime\.(\w+)")


def by_lines() -> bool:
    """Whether torch differentiates the lines: in forward mode, or in a compiled transform."""
    if torch.compiler.is_compiling():
        return torch._C._are_functorch_transforms_active()
    return torch.autograd.forward_ad._current_level >= 0


def refuse_lines(said: str) -> None:
    """Refuse to be differentiated by lines, which could be differentiated again."""
    if by_lines():
        raise NotImplementedError(said)


def in_range(said: str, index: Tensor, *lengths: int) -> None:
    """Refuse an index that plain indexing would count from the end, or that is in no row. Not on a
    GPU, which would wait for it, nor in a transform.
    """
    away = index.device.type != "cpu" or torch.compiler.is_compiling()
    if away or torch._C._are_functorch_transforms_active() or not index.numel():
        return
    low, high = (int(bound) for bound in index.aminmax())
    if low < 0 or high >= min(lengths):
        wrong = low if low < 0 else high
        raise IndexError(f"{said} holds {wrong}, not in 0 .. {min(lengths) - 1}")


def logcumsumexp(tensor: Tensor, along: int) -> Tensor:
    """torch's own; where that is differentiated forward it loses what is far below the largest, so
    there it is a recurrence of exponentials relative to the largest so far.
    """
    if not by_lines():
        return tensor.logcumsumexp(along)
    most = torch.finfo(tensor.dtype).max
    largest = tensor.detach().cummax(along).values.clamp(-most, most)
    steps = torch.exp(stepped(largest, along, -math.inf) - largest)
    return largest + torch.log(scanned(steps, torch.exp(tensor - largest), along))


def solve(matrix: Tensor, right: Tensor, left: bool = True) -> Tensor:
    """torch.linalg.solve; in forward mode by the factors, which torch takes for constants there."""
    if not by_lines():
        return torch.linalg.solve(matrix, right, left=left)
    factors, pivots = torch.linalg.lu_factor(matrix)
    if right.dim() < matrix.dim():
        return torch.linalg.lu_solve(factors, pivots, right.unsqueeze(-1)).squeeze(-1)
    return torch.linalg.lu_solve(factors, pivots, right, left=left)


def logdet(matrix: Tensor) -> Tensor:
    """The logarithm of torch.linalg.slogdet; in forward mode by the factors, which torch takes for
    constants there.
    """
    if not by_lines():
        return torch.linalg.slogdet(matrix).logabsdet
    return torch.linalg.lu_factor(matrix).LU.diagonal(0, -2, -1).abs().log().sum(-1)


def index_added(tensor: Tensor, index: Tensor, source: Tensor) -> Tensor:
    """``tensor`` with the rows of ``source`` added."""
    return tensor.index_add(0, index, source)


def once(said: str, gradients: tuple, of: tuple) -> tuple:
    """The gradients, which cannot be differentiated by what they are made ``of``."""
    if not torch.is_grad_enabled():
        return gradients

    class Once(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*tensors):
            return tuple(t if t is None else t.clone() for t in tensors[: len(gradients)])

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, *_):
            raise NotImplementedError(said)

    return Once.apply(*gradients, *of)


def one_hot(index: Tensor, count: int, dtype: torch.dtype) -> Tensor:
    """torch.nn.functional.one_hot by comparing, which vmap has a rule for in a backward."""
    return (index.unsqueeze(-1) == torch.arange(count, device=index.device)).to(dtype)


def uncast(tensor: Tensor) -> torch.autocast:
    """A block without autocast, which would change the format of products of matrices; a tensor
    that only has a shape has none.
    """
    return torch.autocast("cpu" if tensor.is_meta else tensor.device.type, enabled=False)


def spread(said: str, tensor: Tensor, shape: tuple) -> Tensor:
    """``tensor`` broadcast to a shape; where it does not fit, ValueError says so."""
    pairs = zip(tensor.shape[::-1], shape[::-1], strict=False)
    if tensor.dim() > len(shape) or any(own not in (1, size) for own, size in pairs):
        raise ValueError(f"{said}, got {tuple(tensor.shape)}")
    return tensor.expand(shape)


def sqrt(square: Tensor) -> Tensor:
    """torch.sqrt; while autograd records made of 1 where it is 0, as no gradient counts there."""
    if not torch.is_grad_enabled():
        return torch.sqrt(square)
    return torch.where(square == 0, 0, torch.sqrt(torch.where(square == 0, 1, square)))


def flatten(tensor: Tensor, first: int, last: int) -> Tensor:
    """torch.flatten by reshape, which has a rule for is_grads_batched."""
    before, along, after = (
        tensor.shape[:first],
        tensor.shape[first : last + 1],
        tensor.shape[last + 1 :],
    )
    return tensor.reshape(*before, math.prod(along), *after)


def unflatten(tensor: Tensor, along: int, sizes: tuple) -> Tensor:
    """torch.unflatten by reshape, which has a rule for is_grads_batched."""
    return tensor.reshape(*tensor.shape[:along], *sizes, *tensor.shape[along + 1 :])


def einsum(equation: str, *tensors: Tensor) -> Tensor:
    """torch.einsum by what it is made of, which has rules for is_grads_batched."""
    if torch.compiler.is_compiling():
        return torch.einsum(equation, *tensors)
    return torch.ops.aten.einsum.default.decompose(equation, tensors)


def added_on_diagonal(tensor: Tensor, first: int, second: int, source) -> Tensor:
    """``tensor`` with ``source`` added on its diagonal."""
    diagonal = tensor.diagonal(0, first, second)
    return tensor.diagonal_scatter(diagonal + source, 0, first, second)


def printed_helpers(names: Iterable[str]) -> tuple[str, ...]:
    """The source of these functions and of those that they call, each with a leading underscore."""
    found: dict[str, str] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop(0)
        if name in found:
            continue
        source = inspect.getsource(_helper(name)).rstrip()
        found[name] = source
        words = dict.fromkeys(re.findall(r"(?<![.\w])([a-z_]\w*)\(", source))
        waiting += [word for word in words if word != name and _is_helper(word)]
    called = re.compile(rf"(?<![.\w])({'|'.join(found)})(?=\()") if found else None
    return tuple(called.sub(r"_\1", source) for source in found.values())


def _helper(name: str) -> FunctionType:
    own = globals().get(name)
    return own if isinstance(own, FunctionType) else getattr(_runtime, name)


def _is_helper(name: str) -> bool:
    own = globals().get(name, getattr(_runtime, name, None))
    return isinstance(own, FunctionType) and own.__module__ in (__name__, _runtime.__name__)
