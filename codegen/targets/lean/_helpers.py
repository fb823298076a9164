"""Functions that lean modules print into themselves where their lines call them: this file is read,
and never imported.
"""

import math

import torch
from torch import Tensor

from codegen.targets.torch._runtime import scanned, stepped


def by_lines() -> bool:
    """Whether torch differentiates the lines: in forward mode, or in a compiled transform."""
    if torch.compiler.is_compiling():
        return torch._C._are_functorch_transforms_active()
    return torch.autograd.forward_ad._current_level >= 0


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
