"""Measure attention in tiles beside torch's scaled_dot_product_attention, on a GPU.

    gradform scaled_dot_product_attention causal_attention --target triton --chunk S --out tiles
    python benchmarks/tiles.py tiles [--dtype bfloat16] [--chunk N]

Forward and backward together: milliseconds, and MiB at the peak beyond the arguments.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

SHAPES = ((64, 1024, 64), (64, 4096, 64), (16, 8192, 128))  # heads, queries and keys, features
MODULES = {False: "scaled_dot_product_attention_tiles_s", True: "causal_attention_tiles_s"}
MIB = 2**20


def measured(function: Callable[..., Tensor], arguments: list[Tensor]) -> tuple[float, float]:
    """Milliseconds and MiB of one call with its gradients."""
    from triton.testing import do_bench

    upstream = torch.randn_like(function(*arguments))

    def both() -> None:
        torch.autograd.grad(function(*arguments), arguments, upstream)

    both()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    both()
    peak = torch.cuda.max_memory_allocated() - before
    return do_bench(both, return_mode="median"), peak / MIB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--chunk", type=int)
    options = parser.parse_args()
    sys.path.insert(0, options.folder)
    torchs = torch.nn.functional.scaled_dot_product_attention
    for is_causal, name in MODULES.items():
        ours = partial(getattr(importlib.import_module(name), name), chunk=options.chunk)
        for heads, length, features in SHAPES:
            shape, dtype = (heads, length, features), getattr(torch, options.dtype)
            how = {"device": "cuda", "dtype": dtype, "requires_grad": True}
            arguments = [torch.randn(shape, **how) for _ in range(3)]
            theirs = measured(partial(torchs, is_causal=is_causal), arguments)
            mine = measured(ours, arguments)
            ratio = mine[0] / theirs[0]
            said = f"{mine[0]:.3f} ms, {mine[1]:.0f} MiB; torch {theirs[0]:.3f}, {theirs[1]:.0f}"
            print(f"{name} {shape}: {said}; ratio {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
