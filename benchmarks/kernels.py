"""Compare the generated kernels with torch's own functions, forward and backward: ratios of
medians.

    python benchmarks/kernels.py [--rows N] [--columns C] [--threads T] [--compiled] [NAME ...]

Below 1, the kernels are faster. THP_MEM_ALLOC_ENABLE=1 in the environment makes torch allocate
large pages, which speeds up both.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from importlib import import_module

import torch
import torch.nn.functional as F
from gpu_beside import focal  # torch has none
from torch import Tensor

from gradform import generated

GROUPS = 8


def cases(rows: int, columns: int) -> dict[str, tuple[Callable, tuple[Tensor, ...]]]:
    """By name: torch's function, and the arguments of both."""
    generator = torch.Generator().manual_seed(0)
    x, other, target = (torch.randn(rows, columns, generator=generator) for _ in range(3))
    gain, bias = torch.randn(2, columns, generator=generator)
    labels = torch.randint(columns, (rows,), generator=generator)
    share = target.sigmoid()
    norm, pair = (x, gain, bias), (x, target)
    return {
        "softmax": (lambda x: F.softmax(x, 1), (x,)),
        "log_softmax": (lambda x: F.log_softmax(x, 1), (x,)),
        "softmax_nll": (F.cross_entropy, (x, labels)),
        "cross_entropy": (F.cross_entropy, (x, labels)),
        "layer_norm": (lambda x, g, b: F.layer_norm(x, (columns,), g, b), norm),
        "group_norm": (lambda x, g, b: F.group_norm(x, GROUPS, g, b), norm),
        "batch_norm_biased": (lambda x, g, b: F.batch_norm(x, None, None, g, b, True), norm),
        "rms_norm": (lambda x, g: F.rms_norm(x, (columns,), g, 1e-5), (x, gain)),
        "swiglu": (lambda gate, x: F.silu(gate) * x, (x, other)),
        "gelu": (F.gelu, (x,)),
        "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), (x,)),
        "mish": (F.mish, (x,)),
        "tanh": (torch.tanh, (x,)),
        "mse": (F.mse_loss, pair),
        "huber": (F.huber_loss, pair),
        "smooth_l1": (F.smooth_l1_loss, pair),
        "bce_with_logits": (F.binary_cross_entropy_with_logits, (x, share)),
        "focal": (focal, (x, share.round())),
    }


def both_ways(function: Callable, arguments: tuple[Tensor, ...], without: int) -> float:
    """Seconds of a forward and a backward; the last ``without`` arguments have no gradient."""
    known = len(arguments) - without
    leaves = [
        t.detach().requires_grad_(t.is_floating_point() and i < known)
        for i, t in enumerate(arguments)
    ]
    start = time.perf_counter()
    output = function(*leaves)
    upstream = torch.ones_like(output)
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    torch.autograd.grad(output, wanted, upstream)
    return time.perf_counter() - start


def ours_of(name: str) -> Callable:
    function = getattr(import_module(f"gradform.generated.{name}"), name)
    if name == "group_norm":
        return lambda x, gain, bias: function(x, gain, bias, groups=GROUPS)
    return function


def medians(functions, arguments, without: int, rounds: int) -> list[float]:
    """A B C A B C ..., so that a drift of the machine meets all alike."""
    times: list[list[float]] = [[] for _ in functions]
    for turn in range(rounds + 3):
        for kept, function in zip(times, functions, strict=True):
            seconds = both_ways(function, arguments, without)
            if turn >= 3:
                kept.append(seconds)
    return [statistics.median(kept) for kept in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--columns", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--compiled", action="store_true", help="beside torch.compile's too")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    pages = os.environ.get("THP_MEM_ALLOC_ENABLE", "0")
    print(
        f"{options.rows} x {options.columns}, float32, {options.threads} thread(s), "
        f"THP_MEM_ALLOC_ENABLE={pages}, medians of {options.rounds}"
    )
    generated.use("cpp")
    for name, (theirs, arguments) in cases(options.rows, options.columns).items():
        if options.names and name not in options.names:
            continue
        functions = [ours_of(name), theirs]
        functions += [torch.compile(theirs)] if options.compiled else []
        without = int(name in ("mse", "huber", "smooth_l1", "bce_with_logits", "focal"))
        ours, *others = medians(functions, arguments, without, options.rounds)
        words = [f"torch {ours / others[0]:5.2f}"]
        words += [f"compiled {ours / other:5.2f}" for other in others[1:]]
        print(f"{name:18} {ours * 1e6:9.0f} us   {'   '.join(words)}", flush=True)


if __name__ == "__main__":
    main()
