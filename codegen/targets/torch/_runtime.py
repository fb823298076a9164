"""What all generated modules share: how arguments are looked at, and how torch is met.

This file stands beside the modules that gradform writes, and needs torch alone. It is the only one
that knows torch's private names.

What holds for all functions:

- TypeError for what is no tensor, and for inputs that are not floating point, or not all of one
  dtype; a tensor without gradient may be of any dtype that the one computed in holds. ValueError
  for shapes that do not fit.
- TypeError where a number is none of Python's or numpy's, such as a tensor.
- float16 and bfloat16 are computed in float32, and rounded once at the end; under torch.autocast
  nothing changes.
- Derivatives of any order: those of which a module prints the closed form, higher ones by autograd
  through its lines, by torch.func as by torch.autograd.
- Under torch.compile NotImplementedError where a gradient is asked for with create_graph=True.

Long: one file is copied beside the modules, and it is read there as one.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from numbers import Real

import torch
from torch import Tensor
from torch._C import _are_functorch_transforms_active as transforms_active
from torch._C import _functorch as functorch
from torch._functorch.utils import unwrap_dead_wrappers
from torch._subclasses import FakeTensor
from torch.autograd import Function, forward_ad
from torch.compiler import is_compiling

HALF = (torch.float16, torch.bfloat16)


class Arguments:
    """The arguments of the functions of one module, which is called ``name`` in errors."""

    def __init__(self, name: str):
        self.name = name

    def fits(self, name, tensor, axes, shape, dtype=None, single=False) -> None:
        """TypeError for what is no tensor of the ``dtype`` (``single``: float32 will do),
        ValueError for one of another ``shape``, of which None and ``...`` are not known.
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
                    f"{self.name}: {name} must have the dimensions {axes}, here ({here}),"
                    f" got the shape {tuple(tensor.shape)}"
                )
        if tensor.dtype != dtype:
            if not (tensor.is_floating_point() or dtype == torch.int64):
                raise TypeError(f"{self.name}: {name} must be floating point, got {tensor.dtype}")
            pair = (tensor.dtype, dtype)
            enough = single and torch.float32 in pair and (pair[0] in HALF or pair[1] in HALF)
            if dtype is not None and not enough:
                raise TypeError(
                    f"{self.name}: {name} is of {tensor.dtype}, but computed is in {dtype}:"
                    f" convert one of them, as in {name}.to({dtype})"
                )

    def index(self, name: str, label) -> Tensor:
        """A label of integers as an index; TypeError for any other kind of tensor."""
        self._is_tensor(name, label)
        if label.dtype == torch.bool or label.is_floating_point() or label.is_complex():
            raise TypeError(f"{self.name}: {name} must be of an integer dtype, got {label.dtype}")
        return label.long()

    def in_range(self, name: str, index: Tensor, *lengths: int) -> None:
        """IndexError outside of an axis; not asked are a GPU, which would have to wait, and what
        has no data.
        """
        on_cpu = index.device.type == "cpu" and not is_compiling()
        if lengths and index.numel() and on_cpu:
            while functorch.is_functorch_wrapped_tensor(index):
                index = functorch.get_unwrapped(index)  # under vmap all of them at once
            if isinstance(index, FakeTensor):
                return
            low, high = (bound.item() for bound in index.aminmax())
            if low < 0 or high >= min(lengths):
                wrong = low if low < 0 else high
                last = min(lengths) - 1
                raise IndexError(f"{self.name}: {name} holds {wrong}, outside of 0 .. {last}")

    def split_label(self, name, label, ignored, dtype, *lengths) -> tuple[Tensor, Tensor]:
        """The label as an index, 0 where it is ``ignored``, and 1 where it counts, else 0.

        IndexError where it counts and is outside of the axis.
        """
        kept = label != ignored
        index = torch.where(kept, label, 0)
        self.in_range(name, index, *lengths)
        return index, kept.to(dtype)

    def as_number(self, name: str, tensor, dtype: torch.dtype) -> Tensor:
        """A tensor without gradient in the format that is computed in; TypeError where that does
        not hold what it has.
        """
        computed = torch.float32 if dtype in HALF else dtype
        self._is_tensor(name, tensor)
        if tensor.dtype == computed:
            return tensor
        if tensor.is_complex():
            raise TypeError(f"{self.name}: {name} must be real, got {tensor.dtype}")
        if torch.promote_types(tensor.dtype, computed) != computed:
            raise TypeError(
                f"{self.name}: {name} is of {tensor.dtype}, but computed is in {computed}:"
                f" convert it, as in {name}.to({computed})"
            )
        return tensor.to(computed)

    def without_gradient(self, name: str, tensor) -> None:
        """RuntimeError where a gradient is required that is not derived."""
        if isinstance(tensor, Tensor) and tensor.requires_grad and torch.is_grad_enabled():
            raise RuntimeError(
                f"{self.name}: {name} requires a gradient, and none is derived for it: pass"
                f" {name}.detach()"
            )

    def number(self, name: str, value) -> float:
        """A number as one of Python's; TypeError for what is none."""
        if isinstance(value, Real):
            return float(value)
        raise TypeError(
            f"{self.name}: {name} must be a number, got {type(value).__name__}; it has no gradient,"
            " so a tensor is to be passed as the number that it holds: .item()"
        )

    def whole(self, name: str, value) -> int:
        """A whole number as one of Python's; TypeError for what is none."""
        try:
            return operator.index(value)
        except TypeError:
            kind = type(value).__name__
            raise TypeError(f"{self.name}: {name} must be a whole number, got {kind}") from None

    def one_of(self, name: str, word, *words: str) -> None:
        """ValueError for a word that is none of the ``words``."""
        if word not in words:
            *others, last = map(repr, words)
            raise ValueError(
                f"{self.name}: {name} must be {', '.join(others)} or {last}, got {word!r}"
            )

    def shape(self, name: str, shape) -> tuple[int, ...]:
        """TypeError for what is no shape."""
        if not isinstance(shape, tuple):
            kind = type(shape).__name__
            raise TypeError(f"{self.name}: {name} must be a shape, a tuple of sizes, got {kind}")
        return shape

    def _is_tensor(self, name: str, value) -> None:
        if not isinstance(value, Tensor):
            kind = type(value).__name__
            raise TypeError(f"{self.name}: {name} must be a tensor, got {kind}")


# Tensors as the lines of a module take them


def single(*tensors: Tensor | None) -> list:
    """The tensors in the format that is computed in."""
    return [t.float() if t is not None and t.dtype in HALF else t for t in tensors]


def spread(tensor, shape):
    """The tensor repeated to a shape without memory, where broadcasting gets it there."""
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
    """The dimensions from ``first`` to ``last`` (counted from the end) as one; new, for none."""
    found = []
    for tensor in tensors:
        if tensor is not None:
            shape = list(tensor.shape)
            shape[first : last + tensor.dim()] = [math.prod(shape[first : last + tensor.dim()])]
            tensor = tensor.reshape(shape)
        found.append(tensor)
    return found


def restored(tensor: Tensor | None, place: int, sizes: Sequence[int]) -> Tensor | None:
    """The dimension at ``place`` as the several that it stands for; None as it is."""
    if len(sizes) == 1 or tensor is None:
        return tensor
    return tensor.reshape((*tensor.shape[:place], *sizes, *tensor.shape[place + 1 :]))


def all_count(label: Tensor, ignored: int, *lengths: int) -> bool:
    """Whether no label is ignored and all are in range; False where a GPU would have to wait, and
    without data.
    """
    if not label.numel() or label.device.type != "cpu" or is_compiling():
        return False
    if isinstance(label, FakeTensor):
        return False
    low, high = (bound.item() for bound in label.aminmax())
    return low >= 0 and high < min(lengths, default=math.inf) and not low <= ignored <= high


def index_added(tensor: Tensor, index: Tensor, source: Tensor) -> Tensor:
    """``tensor`` with the rows of ``source`` added, in place unless there is a batch."""
    if batched(source):
        return tensor.index_add(0, index, source)
    return tensor.index_add_(0, index, source)


def scatter_added(tensor: Tensor, along: int, index: Tensor, source: Tensor) -> Tensor:
    """``tensor`` with ``source`` added, in place unless there is a batch."""
    if batched(source):
        return tensor.scatter_add(along, index, source)
    return tensor.scatter_add_(along, index, source)


def added_at(tensor: Tensor, along: int, place: int, source: Tensor) -> Tensor:
    """``tensor`` with ``source`` added at one place, in place unless there is a batch."""
    if batched(source):  # there select_scatter is silently wrong
        index = torch.tensor([place], device=tensor.device)
        return tensor.index_add(along, index, source.unsqueeze(along))
    tensor.select(along, place).add_(source)
    return tensor


# What is at work around a call


def batched(tensor: Tensor) -> bool:
    """Whether it may be a batch of tensors, which nothing that is none holds in place."""
    if transforms_active():
        return True
    if is_compiling():
        return False
    return functorch.is_legacy_batchedtensor(tensor)


def in_plain_torch(*tensors: Tensor) -> bool:
    """Whether something is at work that sees through plain torch alone: forward mode, a transform
    under the compiler, or a batch of gradients.
    """
    if forward_ad._current_level >= 0:
        return True
    if not transforms_active():
        return any(functorch.is_legacy_batchedtensor(tensor) for tensor in tensors)
    if is_compiling():
        return True
    seen = (functorch.TransformType.Grad, functorch.TransformType.Vmap)
    return any(i.key() not in seen for i in functorch.get_interpreter_stack())


def applied(function: type[Function], *arguments):
    """``function.apply`` without its look at the signature, which transforms alone need."""
    if transforms_active() or is_compiling():
        return function.apply(*arguments)
    arguments = unwrap_dead_wrappers(arguments)
    return super(Function, function).apply(*arguments)


def differentiated(outputs, vectors, inputs, needs, graph: bool) -> list:
    """What the ``outputs``, times their ``vectors`` and added up, have as gradients, of which
    ``needs`` says that they are asked for; None for the others.
    """
    pairs = zip(outputs, vectors, strict=False)
    given = [(o, v) for o, v in pairs if v is not None and o is not None and o.requires_grad]
    asked = [tensor for tensor, need in zip(inputs, needs, strict=False) if need]
    if not given or not asked:
        return [None] * len(needs)
    outputs, vectors = zip(*given, strict=True)
    how = {"create_graph": graph, "allow_unused": True}
    found = iter(torch.autograd.grad(outputs, asked, vectors, **how))
    return [next(found) if need else None for need in needs]


def uncast(function: Callable) -> Callable:
    """The function without torch.autocast, which would change the format of matrix products."""

    @functools.wraps(function)
    def called(*args, **kwargs):
        device = next(a.device.type for a in (*args, *kwargs.values()) if isinstance(a, Tensor))
        if device == "meta" or not torch.is_autocast_enabled(device):
            return function(*args, **kwargs)
        with torch.autocast(device, enabled=False):
            return function(*args, **kwargs)

    return called


class TakenApart(torch.overrides.TorchFunctionMode):
    """flatten, unflatten and einsum as the operations that they are made of."""

    made_of = {
        Tensor.flatten: torch.ops.aten.flatten.using_ints,
        Tensor.unflatten: torch.ops.aten.unflatten.int,
    }

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.einsum:
            return torch.ops.aten.einsum.default.decompose(args[0], args[1:])
        if function in self.made_of:
            return self.made_of[function].decompose(*args)
        return function(*args, **(kwargs or {}))


def for_batches(backward: Callable) -> Callable:
    """The backward, for batches of gradients too (is_grads_batched): torch's vmap of these has no
    rule for what is made of other operations.
    """

    @functools.wraps(backward)
    def called(ctx, *gradients):
        given = [g for g in gradients if g is not None]
        if is_compiling() or not any(map(functorch.is_legacy_batchedtensor, given)):
            return backward(ctx, *gradients)
        with TakenApart():
            return backward(ctx, *gradients)

    return called


class Once(Function):
    """The output under torch.compile, which runs a backward as if none could be differentiated."""

    @staticmethod
    def forward(ctx, output, refusal):
        ctx.refusal = refusal
        return output.view_as(output)

    @staticmethod
    def backward(ctx, upstream):
        if torch.is_grad_enabled():
            raise NotImplementedError(f"{ctx.refusal}; no create_graph under torch.compile")
        return upstream, None


if not hasattr(torch.ops.gradform, "once"):  # an operation, since Dynamo traces what is none
    torch.library.define("gradform::once", "(Tensor(a) output, str refusal) -> Tensor(a)")
    torch.library.impl("gradform::once", "CompositeImplicitAutograd", Once.apply)
