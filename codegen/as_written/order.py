"""Digits that a class body keeps in float32 as written, and the function made of it loses: SymPy
sorts the terms of a sum, and may compute ``(x - w) + v`` as ``v - w + x``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, product

import torch
from sympy import Add
from torch import Tensor

from codegen.as_written.comparing import LENGTHS, said_by
from codegen.as_written.entries import Unreadable
from codegen.as_written.wider import defined
from codegen.program import Program
from codegen.targets.torch.check import dims_tried
from derive.language.notation.forward import Forward

LARGE = 2.0**30  # beside which all digits of a number around 1 are rounded off in float32
FAR, BETTER = 1e-3, 100.0  # relative to the largest entry; that many times as exact


def digits_lost_by_order(
    forward: type[Forward], program: Program, function: Callable
) -> tuple[str, ...]:
    """Inputs that cancel in the class body before digits of others are rounded off, in words."""
    pairs: dict[str, dict[str, None]] = {}
    try:
        for name, pair in _lost(forward, program, function):
            pairs.setdefault(name, {})[pair] = None
    except Unreadable:
        return ()
    return tuple(
        f"float32: {name} loses digits where {', '.join(own)} are large and cancel: "
        "give what cancels a line of its own"
        for name, own in pairs.items()
    )


def _lost(
    forward: type[Forward], program: Program, function: Callable
) -> Iterator[tuple[str, str]]:
    """Outputs, each with the two inputs that cancel."""
    definition = forward.definition
    inputs = [p.name for p in program.forward.parameters if p.role == "input"]
    if len(inputs) < 3 or not any(s.expression.atoms(Add) for s in definition.statements):
        return
    dims = next(dims_tried(definition, LENGTHS[0]))
    sizes = {axis: n for axis, (n, *more) in dims.items() if not more}
    for given in defined(forward, program, inputs, dims, sizes):
        for (one, other), sign in product(combinations(inputs, 2), (1, -1)):
            own = {
                **given,
                one: torch.full_like(given[one], LARGE),
                other: torch.full_like(given[other], sign * LARGE),
            }
            single = {n: t.float() if _is_real(t) else t for n, t in own.items()}
            truth, found = _outputs(function(**own)), _outputs(function(**single))
            gaps = [_gap(ours, exact) for ours, exact in zip(found, truth, strict=True)]
            if not any(FAR < gap < torch.inf for gap in gaps):
                continue
            said = said_by(forward, single, sizes)
            for t, exact, gap, typed in zip(definition.results, truth, gaps, said, strict=True):
                if FAR < gap < torch.inf and _gap(typed.wide(t.home), exact) * BETTER < gap:
                    yield t.name, f"{one} and {other}"


def _outputs(found: Tensor | tuple) -> tuple:
    return (found,) if isinstance(found, Tensor) else found


def _is_real(value: object) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _gap(found: Tensor, truth: Tensor) -> float:
    scale = truth.abs().max()
    return float((found.detach() - truth).abs().max() / scale) if scale > 0 else 0.0
