"""Shared code of modules that compute an axis in parts: checks of their arguments.

This file is copied next to the generated modules and needs only torch. Common to all functions:

- TypeError if a tensor argument is not a tensor, or if an input is not floating point.
- TypeError if inputs differ in dtype; an input that is broadcast along the first, such as the gain
  of a norm, may be float32 next to float16 or bfloat16. A tensor without a gradient may have any
  dtype that converts to the inputs' dtype without loss.
- ValueError if shapes do not match.
- TypeError if a number is not a Python or NumPy number; a tensor is not a number.
- float16 and bfloat16 are computed in float32 and rounded once at the end. torch.autocast has no
  effect.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from numbers import Real

import torch
from torch import Tensor
from torch.compiler import is_compiling

HALF = (torch.float16, torch.bfloat16)


class Arguments:
    """Checks the arguments of the functions of one module; errors begin with its ``name``."""

    def __init__(self, name: str):
        self.name = name

    def fits(self, name, tensor, axes, shape, dtype=None, single=False, *, wide=False) -> None:
        """Long: TypeError unless it is a tensor of the ``dtype`` (``single``: float32 may stand in
        for a half dtype, or a half dtype for it; ``wide``: float32 for a half dtype), ValueError
        unless it has the ``shape``, where None and ``...`` are unknown.
        """
        self._is_tensor(name, tensor)
        if tensor.shape != shape:
            known = list(shape)
            if ... in known:
                place = known.index(...)
                known[place : place + 1] = [None] * (tensor.dim() - len(known) + 1)
            pairs = zip(known, tensor.shape, strict=False)
            if len(known) != tensor.dim() or any(size not in (None, own) for size, own in pairs):
                here = ", ".join({None: "any", ...: "..."}.get(size, str(size)) for size in shape)
                raise ValueError(
                    f"{self.name}: {name} must have shape {axes}, here ({here}),"
                    f" got {tuple(tensor.shape)}"
                )
        if tensor.dtype != dtype:
            if not (tensor.is_floating_point() or dtype == torch.int64):
                raise TypeError(f"{self.name}: {name} must be floating point, got {tensor.dtype}")
            pair = (tensor.dtype, dtype)
            enough = single and torch.float32 in pair and (pair[0] in HALF or pair[1] in HALF)
            enough = enough or (wide and tensor.dtype == torch.float32 and dtype in HALF)
            if dtype is not None and not enough:
                raise TypeError(
                    f"{self.name}: {name} has dtype {tensor.dtype}, expected {dtype}:"
                    f" convert one of them, as in {name}.to({dtype})"
                )

    def index(self, name: str, label) -> Tensor:
        """A tensor of integers as an index; TypeError for any other dtype."""
        self._is_tensor(name, label)
        if label.dtype == torch.bool or label.is_floating_point() or label.is_complex():
            raise TypeError(f"{self.name}: {name} must have an integer dtype, got {label.dtype}")
        return label.long()

    def in_range(self, name: str, index: Tensor, *lengths: int) -> None:
        """IndexError for an index out of range. Not checked on a GPU, which would synchronize, nor
        for a tensor without data.
        """
        on_cpu = index.device.type == "cpu" and not is_compiling()
        if lengths and index.numel() and on_cpu:
            low, high = (bound.item() for bound in index.aminmax())
            if low < 0 or high >= min(lengths):
                wrong = low if low < 0 else high
                last = min(lengths) - 1
                raise IndexError(f"{self.name}: {name} holds {wrong}, not in 0 .. {last}")

    def split_label(self, name, label, ignored, dtype, *lengths) -> tuple[Tensor, Tensor]:
        """The label as an index, with 0 where it is ``ignored``; and a mask, 1 where it counts.

        IndexError if a label that counts is out of range.
        """
        kept = label != ignored
        index = torch.where(kept, label, 0)
        self.in_range(name, index, *lengths)
        return index, kept.to(dtype)

    def as_number(self, name: str, tensor, dtype: torch.dtype) -> Tensor:
        """A tensor without gradient in the dtype of the computation; TypeError if the conversion
        would lose precision.
        """
        computed = torch.float32 if dtype in HALF else dtype
        self._is_tensor(name, tensor)
        if tensor.dtype == computed:
            return tensor
        if tensor.is_complex():
            raise TypeError(f"{self.name}: {name} must be real, got {tensor.dtype}")
        if torch.promote_types(tensor.dtype, computed) != computed:
            raise TypeError(
                f"{self.name}: {name} has dtype {tensor.dtype}, expected {computed}:"
                f" convert it, as in {name}.to({computed})"
            )
        return tensor.to(computed)

    def without_gradient(self, name: str, tensor) -> None:
        """RuntimeError if it requires a gradient that was not derived."""
        if isinstance(tensor, Tensor) and tensor.requires_grad and torch.is_grad_enabled():
            raise RuntimeError(
                f"{self.name}: {name} requires grad, but no gradient is derived for it: pass"
                f" {name}.detach()"
            )

    def number(self, name: str, value) -> float:
        """A number as a Python float; TypeError for anything else."""
        if isinstance(value, Real):
            return float(value)
        raise TypeError(
            f"{self.name}: {name} must be a number, got {type(value).__name__}; it has no gradient,"
            " so pass a one-element tensor as .item()"
        )

    def whole(self, name: str, value) -> int:
        """An integer as a Python int; TypeError for anything else."""
        try:
            return operator.index(value)
        except TypeError:
            kind = type(value).__name__
            raise TypeError(f"{self.name}: {name} must be an integer, got {kind}") from None

    def shape(self, name: str, shape) -> tuple[int, ...]:
        """TypeError unless it is a tuple of sizes."""
        if not isinstance(shape, tuple):
            kind = type(shape).__name__
            raise TypeError(f"{self.name}: {name} must be a tuple of sizes, got {kind}")
        return shape

    def _is_tensor(self, name: str, value) -> None:
        if not isinstance(value, Tensor):
            kind = type(value).__name__
            raise TypeError(f"{self.name}: {name} must be a tensor, got {kind}")


def single(*tensors: Tensor | None) -> list:
    """The tensors in the dtype of the computation."""
    return [t.float() if t is not None and t.dtype in HALF else t for t in tensors]


def spread(tensor, shape):
    """The tensor expanded to a shape without a copy, if it broadcasts to it."""
    fits = (
        isinstance(tensor, Tensor)
        and tensor.dim() <= len(shape)
        and all(
            size in (1, length)
            for size, length in zip(tensor.shape[::-1], shape[::-1], strict=False)
        )
    )
    return tensor.expand(shape) if fits and tensor.shape != shape else tensor


def merged(first: int, last: int, *tensors: Tensor | None) -> list:
    """The dimensions ``first`` to ``last`` (from the end) flattened; a new one, if none."""
    found = []
    for tensor in tensors:
        if tensor is not None:
            shape = list(tensor.shape)
            shape[first : last + tensor.dim()] = [math.prod(shape[first : last + tensor.dim()])]
            tensor = tensor.reshape(shape)
        found.append(tensor)
    return found


def restored(tensor: Tensor | None, place: int, sizes: Sequence[int]) -> Tensor | None:
    """The dimension at ``place`` unflattened into ``sizes``; None stays None."""
    if len(sizes) == 1 or tensor is None:
        return tensor
    return tensor.reshape((*tensor.shape[:place], *sizes, *tensor.shape[place + 1 :]))


def all_count(label: Tensor, ignored: int, *lengths: int) -> bool:
    """Whether no label is ignored and all are in range; False on a GPU, which would synchronize,
    and for a tensor without data.
    """
    if not label.numel() or label.device.type != "cpu" or is_compiling():
        return False
    low, high = (bound.item() for bound in label.aminmax())
    return low >= 0 and high < min(lengths, default=math.inf) and not low <= ignored <= high


def uncast(function: Callable) -> Callable:
    """The function without torch.autocast, which would change the dtype of matrix products."""

    @functools.wraps(function)
    def called(*args, **kwargs):
        device = next(a.device.type for a in (*args, *kwargs.values()) if isinstance(a, Tensor))
        if device == "meta" or not torch.is_autocast_enabled(device):
            return function(*args, **kwargs)
        with torch.autocast(device, enabled=False):
            return function(*args, **kwargs)

    return called
