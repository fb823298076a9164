"""Value and gradients of a spelling in float32, at numbers where what is written naively overflows
or loses its digits, beside those of the usual spelling in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from generating import module_from

from codegen.targets.lean.outside import outside_of, proved_inside
from codegen.targets.lean.target import written
from derive.language.notation.forward import Forward
from derive.proof.proving.proved import Proved

N, C, D, K = 4, 5, 3, 5
SHAPES = {**dict.fromkeys("xwpugt", (N, C)), "q": (N, D), "k": (K, D), "v": (K, D)}
SIZES = (1, 100, 1e4, 1e30)
NEAR, SLACK = 2e-4, 20  # of the largest; times what the usual spelling is off in float32
Results = list[torch.Tensor]


def function_of(forward: type[Forward], proved: Proved, folder: Path, name: str) -> Callable:
    """What is emitted of ``proved``."""
    outside = outside_of(forward.definition)
    text = written(forward, outside, proved_inside(outside, proved))[1]
    module = module_from(text, folder, name)
    return getattr(module, forward.definition.snake)


def places(names: set[str]) -> list[dict[str, torch.Tensor]]:
    """Inputs at each size, and with entries that are 100 or -100, for ``names``."""
    generator = torch.Generator().manual_seed(3)
    found = []
    for size in (*SIZES, 0):
        drawn = {}
        for name, shape in SHAPES.items():
            z = torch.randn(shape, generator=generator)
            z = 100 * z.sign() if size == 0 else size * z
            drawn[name] = _within(name, z)
        drawn["labels"] = torch.randint(C, (N,), generator=generator)
        found.append({name: drawn[name] for name in drawn if name in names})
    return found


def _within(name: str, z: torch.Tensor) -> torch.Tensor:
    """Numbers where what stands under this letter is defined."""
    if name == "p":
        return z.abs() + 1e-3
    if name == "g":
        return z.abs() + 1.001
    if name == "u":
        return 0.999 * torch.tanh(z)
    return torch.sigmoid(z).clamp(0.01, 0.99) if name == "t" else z


def results(function: Callable, inputs: dict[str, torch.Tensor], kind: torch.dtype) -> Results:
    """Value and gradients."""
    leaves = {n: t.to(kind) if t.is_floating_point() else t for n, t in inputs.items()}
    read = [leaf.requires_grad_() for n, leaf in leaves.items() if n not in ("t", "labels")]
    output = function(**leaves)
    weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(8)).to(kind)
    gradients = torch.autograd.grad(output, read, weights)
    return [output.detach().double(), *(g.double() for g in gradients)]


def wrong_at(usual: Callable, other: Callable, names: set[str]) -> list[str]:
    """Where ``other`` is not finite, or off, in float32, while ``usual`` is right there."""
    said = []
    for size, inputs in zip((*map(str, SIZES), "differences"), places(names), strict=True):
        exact = results(usual, inputs, torch.float64)
        good, asked = (results(f, inputs, torch.float32) for f in (usual, other))
        worst = max(map(_gap, exact, asked, good))
        if worst > 1:
            said.append(f"{size}: {worst:.1e}")
    return said


def _gap(exact: torch.Tensor, asked: torch.Tensor, good: torch.Tensor) -> float:
    """How far off ``asked`` is, as a multiple of what may be, where the usual one is a number."""
    known = exact.isfinite() & (exact.abs() < torch.finfo(torch.float32).max) & good.isfinite()
    if not known.any():
        return 0.0
    exact, asked, good = (t[known] for t in (exact, asked, good))
    if not asked.isfinite().all():
        return float("inf")
    may = NEAR * exact.abs() + SLACK * (good - exact).abs() + 1e-6 * exact.abs().max() + 1e-30
    return float(((asked - exact).abs() / may).max())
