"""Compare the generated functions with autograd and torch's own functions: ratios of medians.

    python benchmarks/closed_forms.py [--rows N] [--columns C] [--threads T]

Forward and backward together, interleaved. Above 1, the other function takes longer.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
import torch.nn.functional as F

from gradform.generated.batch_norm import batch_norm
from gradform.generated.softmax_nll import softmax_nll


def norm_by_autograd(x, gain, bias):
    """The same statements in plain torch, differentiated by autograd."""
    diff = x - x.mean(0, keepdim=True)
    var = (diff**2).sum(0, keepdim=True) / (x.shape[0] - 1)
    return gain * (diff * (var + 1e-5) ** -0.5) + bias


def norm_by_torch(x, gain, bias):
    return F.batch_norm(x, None, None, gain, bias, training=True)


def loss_by_autograd(logits, labels):
    shifted = logits - logits.max(1, keepdim=True).values
    logprobs = shifted - shifted.exp().sum(1, keepdim=True).log()
    return -logprobs[torch.arange(len(labels)), labels].mean()


def both_ways(function, *inputs):
    leaves = [t.detach().requires_grad_() if t.is_floating_point() else t for t in inputs]
    output = function(*leaves)
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    torch.autograd.grad(output, wanted, torch.ones_like(output))


def medians(functions, inputs, rounds: int) -> list[float]:
    """Seconds for each function: A B C A B C ..., so that a drift of the machine meets all
    alike.
    """
    times = [[] for _ in functions]
    for turn in range(rounds + 3):
        for kept, function in zip(times, functions, strict=True):
            start = time.perf_counter()
            both_ways(function, *inputs)
            if turn >= 3:
                kept.append(time.perf_counter() - start)
    return [statistics.median(kept) for kept in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--columns", type=int, default=256)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(options.rows, options.columns, generator=generator)
    gain, bias = torch.randn(2, options.columns, generator=generator)
    labels = torch.randint(options.columns, (options.rows,), generator=generator)
    cases = {
        "batch_norm": ((batch_norm, norm_by_autograd, norm_by_torch), (x, gain, bias)),
        "softmax_nll": ((softmax_nll, loss_by_autograd, F.cross_entropy), (x, labels)),
    }
    print(f"{options.rows} x {options.columns}, float32, {options.threads} thread(s), medians")
    for name, (functions, inputs) in cases.items():
        ours, autograd, torchs = medians(functions, inputs, options.rounds)
        print(
            f"{name:12} {ours * 1e6:8.0f} us   autograd on plain torch: {autograd / ours:5.2f} x   "
            f"torch's own: {torchs / ours:5.2f} x"
        )


if __name__ == "__main__":
    main()
