"""Compare activations and losses with torch's own functions, and with autograd on the same
statements: ratios of medians.

    python benchmarks/pointwise.py [NAME ...] [--size N] [--threads T] [--rounds R]

Forward and backward together, N x N entries in float32. Below 1, the generated function is faster.
Autograd differentiates the lines of its forward.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module

import torch
import torch.nn.functional as F
from second_order import by_autograd
from torch import Tensor

WARM_UP = 3  # rounds that are not counted


@dataclass(frozen=True)
class Pointwise:
    """A generated function, torch's own (or None), the kinds of its arguments, and which have a
    gradient.
    """

    name: str
    torchs: Callable[..., Tensor] | None
    arguments: str = "x"
    gradients: int = 1


def log_cosh(x: Tensor, target: Tensor) -> Tensor:
    return torch.log(torch.cosh(x - target)).mean()


def hinge(x: Tensor, target: Tensor) -> Tensor:
    return torch.relu(1 - target * x).mean()


FUNCTIONS = (
    Pointwise("relu", F.relu),
    Pointwise("leaky_relu", F.leaky_relu),
    Pointwise("elu", F.elu),
    Pointwise("sigmoid", F.sigmoid),
    Pointwise("tanh", torch.tanh),
    Pointwise("softplus", F.softplus),
    Pointwise("silu", F.silu),
    Pointwise("mish", F.mish),
    Pointwise("gelu", F.gelu),
    Pointwise("gelu_tanh", partial(F.gelu, approximate="tanh")),
    Pointwise("huber", F.huber_loss, "xx", 2),
    Pointwise("smooth_l1", F.smooth_l1_loss, "xx", 2),
    Pointwise("l1", F.l1_loss, "xx", 2),
    Pointwise("mse", F.mse_loss, "xx", 2),
    Pointwise("hinge", hinge, "xs"),
    Pointwise("log_cosh", log_cosh, "xx", 2),
    Pointwise("bce_with_logits", F.binary_cross_entropy_with_logits, "xp"),
    Pointwise("bce_with_logits", F.binary_cross_entropy_with_logits, "xp", 2),
    Pointwise("focal", None, "xp"),
    Pointwise("focal", None, "xp", 2),
    Pointwise("kl_div", partial(F.kl_div, reduction="mean"), "lp"),
    Pointwise("kl_div", partial(F.kl_div, reduction="mean"), "lp", 2),
    Pointwise("entropy", None, "p"),
    Pointwise("js_div", None, "pp", 2),
    Pointwise("softmax", partial(torch.softmax, dim=-1)),
    Pointwise("log_softmax", partial(torch.log_softmax, dim=-1)),
    Pointwise("logsumexp", partial(torch.logsumexp, dim=-1)),
)


def drawn(kind: str, size: int, generator: torch.Generator) -> Tensor:
    """Random numbers: x any, s of signs, p between 0 and 1 and some of them 0, l logarithms."""
    x = torch.randn(size, size, generator=generator)
    probs = x.softmax(-1)
    kinds = {"x": x, "s": x.sign(), "p": F.threshold(probs, 1e-4, 0.0), "l": probs.log()}
    return kinds[kind]


def both_ways(function: Callable[..., Tensor], inputs: list[Tensor], gradients: int) -> None:
    leaves = [t.detach().requires_grad_(i < gradients) for i, t in enumerate(inputs)]
    output = function(*leaves)
    torch.autograd.grad(output, leaves[:gradients], torch.ones_like(output))


def medians(functions, inputs: list[Tensor], gradients: int, rounds: int) -> list[float]:
    """Seconds for each function, in turn, so that a drift of the machine meets all alike."""
    times: list[list[float]] = [[] for _ in functions]
    for turn in range(rounds + WARM_UP):
        for kept, function in zip(times, functions, strict=True):
            start = time.perf_counter()
            both_ways(function, inputs, gradients)
            if turn >= WARM_UP:
                kept.append(time.perf_counter() - start)
    return [statistics.median(kept) for kept in times]


def line(case: Pointwise, size: int, rounds: int) -> str:
    """The name, milliseconds, and the two ratios."""
    module = import_module(f"gradform.generated.{case.name}")
    functions = [getattr(module, case.name), by_autograd(module, case.name)]
    functions += [case.torchs] * (case.torchs is not None)
    generator = torch.Generator().manual_seed(0)
    inputs = [drawn(kind, size, generator) for kind in case.arguments]
    ours, autograd, *torchs = medians(functions, inputs, case.gradients, rounds)
    name = case.name + f", {case.gradients} of {len(inputs)}" * (len(inputs) > 1)
    beside = f"{ours / torchs[0]:6.2f}" if torchs else "     -"
    return (
        f"{name:24} {ours * 1e3:8.2f} ms {beside} of torch's {ours / autograd:6.2f} of autograd's"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="of functions; all where there are none")
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"{options.size} x {options.size}, float32, {options.threads} thread(s), medians")
    for case in FUNCTIONS:
        if not options.names or case.name in options.names:
            print(line(case, options.size, options.rounds), flush=True)


if __name__ == "__main__":
    main()
