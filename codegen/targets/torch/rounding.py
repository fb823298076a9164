"""Rounding error in float32: of the generated module, and of autograd.

Both are given the same data, rounded to float32 once; the reference is autograd through the
statements in float64 (``interpret.py``). Autograd in float32 goes through the statements in torch
as they are written, as a person types them without us.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from codegen.files.quality import Rounding
from codegen.program import Program
from codegen.targets.torch.check import DRAWS, arguments_of, dims_tried
from codegen.targets.torch.interpret import interpreted
from codegen.targets.torch.several import joined, of_statements
from derive.language.notation.definition import Definition

ZERO_BUT_FOR_ROUNDING = 1e-12  # of gradients in float64, which are around 1


def rounding(
    function: Callable, written: Callable, definition: Definition, program: Program
) -> Rounding:
    """The largest errors of the gradients in float32, on random data: of the ``function``, and of
    the statements as they are ``written``, differentiated by autograd.
    """
    for draw in DRAWS:
        single = _in(torch.float32, _drawn(definition, program, draw), program)
        double = _in(torch.float64, single, program)
        statements = interpreted(definition, double)
        output = of_statements([statements[name] for name in program.outputs])
        upstream = draw(
            tuple(output.shape), generator=torch.Generator().manual_seed(1), dtype=torch.float32
        )
        expected = _gradients(output, double, upstream.double())
        if all(bool(g.isfinite().all()) for g in expected.values()):
            break
    found = joined(function(**single)), of_statements(written(**single))
    return Rounding(*(_largest(_gradients(y, single, upstream), expected) for y in found))


def _drawn(definition: Definition, program: Program, draw) -> dict[str, object]:
    dims = next(dims_tried(definition))
    return arguments_of(definition, program, draw, torch.Generator().manual_seed(0), dims)


def _in(kind: torch.dtype, arguments: Mapping[str, object], program: Program):
    """The arguments with numbers of this kind; the differentiable ones as leaves."""
    differentiable = {p.name for p in program.forward.parameters if p.role == "input"}
    return {
        name: value.detach().to(kind).requires_grad_(name in differentiable)
        if isinstance(value, Tensor) and value.is_floating_point()
        else value
        for name, value in arguments.items()
    }


def _gradients(output: Tensor, arguments: Mapping[str, object], upstream: Tensor):
    leaves = {
        name: value
        for name, value in arguments.items()
        if isinstance(value, Tensor) and value.requires_grad
    }
    found = {name: torch.zeros_like(leaf) for name, leaf in leaves.items()}
    if output.requires_grad:
        gradients = torch.autograd.grad(
            output, list(leaves.values()), upstream.reshape(output.shape), allow_unused=True
        )
        found |= {n: g for n, g in zip(leaves, gradients, strict=True) if g is not None}
    return found


def _largest(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> float:
    return max((_error(found[name].double(), expected[name]) for name in expected), default=0.0)


def _error(found: Tensor, expected: Tensor) -> float:
    """The error relative to the largest entry; absolute if that is zero up to rounding."""
    if not expected.numel():
        return 0.0
    gap, scale = (found - expected).abs().max().item(), expected.abs().max().item()
    gap = gap / scale if scale > ZERO_BUT_FOR_ROUNDING else gap
    return gap if gap == gap else float("inf")
