"""Square matrices in comparisons: positive definite ones, and those without inverse or factor.

torch raises an error for these. Where data are drawn at random, or an entry is put on an edge, such
a point has no value, as the logarithm of a negative number has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from derive.language.nodes import MatrixNode
from derive.language.notation.definition import Definition

OF_MATRIX = (torch.linalg.inv, torch.linalg.cholesky, torch.linalg.solve)


class _Undefined(TorchFunctionMode):
    """NaN instead of the error, in every derivative too."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        try:
            return func(*args, **(kwargs or {}))
        except torch.linalg.LinAlgError:
            if func is torch.autograd.grad:
                return tuple(torch.exp(t * torch.nan) for t in args[1])
            if func not in OF_MATRIX:
                raise
            return torch.exp(_made_of(*args, **(kwargs or {})) * torch.nan)


def _made_of(matrix: Tensor, right: Tensor | None = None, left: bool = True) -> Tensor:
    """A tensor of the result's shape, made of its operands."""
    if right is None:
        return matrix
    if right.dim() < matrix.dim():
        return (matrix.mT @ right.unsqueeze(-1)).squeeze(-1)
    return matrix.mT @ right if left else right @ matrix.mT


@contextmanager
def undefined_where_singular(definition: Definition) -> Iterator[None]:
    """Context in which a matrix without an inverse or a factor gives NaN."""
    if not any(s.expression.has(MatrixNode) for s in definition.statements):
        yield
        return
    with _Undefined():
        yield


def positive_definite(shape: tuple[int, ...], **how) -> Tensor:
    """Symmetric positive definite matrices along two dimensions of one length, if there are such;
    else positive numbers.
    """
    drawn = torch.rand(shape, **how) + 0.5
    pairs = [(i, j) for j in range(len(shape)) for i in range(j) if shape[i] == shape[j]]
    if not pairs:
        return drawn
    matrix = drawn.movedim(pairs[-1], (-2, -1))
    return (matrix @ matrix.mT + torch.eye(matrix.shape[-1])).movedim((-2, -1), pairs[-1])
