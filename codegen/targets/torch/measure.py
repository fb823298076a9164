"""A generated function and its statements, run at given numbers in float32 and in float64: the
outputs, and the gradients of the inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property

import torch
from torch import Tensor

from codegen.program import Program
from codegen.targets.torch.check import arguments_of, dims_tried
from codegen.targets.torch.several import joined
from derive.language.notation.definition import Definition

LARGEST = torch.finfo(torch.float32).max

Found = dict[str, Tensor]
Arguments = Mapping[str, object]
Run = Callable[..., Tensor | tuple[Tensor, ...]]  # of arguments by name
Draw = Callable[..., Tensor]


class Measure:
    """A function, ``ours``, compared with itself in float64 and with its ``statements``, at inputs
    drawn by ``draw``.
    """

    def __init__(
        self, ours: Run, statements: Run, definition: Definition, program: Program, draw: Draw
    ):
        self.ours, self.statements = ours, statements
        self.definition, self.program = definition, program
        generator = torch.Generator().manual_seed(0)
        dims = next(dims_tried(definition))
        self.sizes = {axis: math.prod(lengths) for axis, lengths in dims.items()}
        self.arguments = arguments_of(definition, program, draw, generator, dims)
        self.inputs = tuple(p.name for p in program.forward.parameters if p.role == "input")

    @cached_property
    def usual(self) -> Found:
        """Results at numbers around 1."""
        return self.found(self.arguments, self.ours, torch.float64)

    @property
    def is_defined(self) -> bool:
        return all(bool(value.isfinite().any()) for value in self.usual.values())

    @property
    def is_whole(self) -> bool:
        return all(map(is_finite, self.usual.values()))

    def found(self, arguments: Arguments, run: Run, kind: torch.dtype) -> Found:
        """The outputs, and the gradients of the inputs."""
        leaves = in_dtype(kind, arguments)
        inputs = {name: leaves[name].requires_grad_() for name in self.inputs}
        y = run(**leaves)
        outputs = (y,) if isinstance(y, Tensor) else y
        found = {n: o.detach() for n, o in zip(self.program.outputs, outputs, strict=True)}
        y = joined(y)
        gradients = [torch.zeros_like(leaf) for leaf in inputs.values()]
        if y.requires_grad:
            upstream = torch.linspace(0.5, 1, y.numel(), dtype=y.dtype).reshape(y.shape)
            gradients = torch.autograd.grad(y, [*inputs.values()], upstream, materialize_grads=True)
        found |= {f"d{name}": g for name, g in zip(inputs, gradients, strict=True)}
        return {name: value.double() for name, value in found.items()}


def signed(shape, *, generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    signs = torch.rand(shape, generator=generator, dtype=dtype) - 0.5
    return positive(shape, generator=generator, dtype=dtype).copysign(signs)


def positive(shape, *, generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    """Numbers up to 1, none of them small."""
    return (torch.rand(shape, generator=generator, dtype=dtype) + 1) / 2


def in_dtype(kind: torch.dtype, arguments: Arguments) -> dict[str, object]:
    return {
        name: value.detach().to(kind)
        if isinstance(value, Tensor) and value.is_floating_point()
        else value
        for name, value in arguments.items()
    }


def is_finite(value: Tensor) -> bool:
    return bool(value.isfinite().all())
