"""Compare a gradient penalty and a Hessian-vector product with autograd on the same statements:
ratios of medians.

    python benchmarks/second_order.py [NAME ...] [--size N] [--threads T] [--rounds R]

Arguments are random, N x N in float32. Below 1, the generated function is faster. Autograd
differentiates the lines of its forward. Last comes the first order: forward and backward.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from importlib import import_module
from types import ModuleType

import torch
from torch import Tensor

WARM_UP = 3  # rounds that are not counted
# Of each the kinds of its arguments: x any numbers, p between 0 and 1, r one row, l labels.
FUNCTIONS = {
    "layer_norm": "xrr",
    "rms_norm": "xr",
    "softmax": "x",
    "log_softmax": "x",
    "softmax_nll": "xl",
    "cross_entropy": "xl",
    "bce_with_logits": "xp",
    "huber": "xx",
    "mse": "xx",
    "gelu_tanh": "x",
    "silu": "x",
    "tanh": "x",
    "mish": "x",
}


def arguments_of(kinds: str, size: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    draw = {
        "x": lambda: torch.randn(size, size, generator=generator),
        "p": lambda: torch.rand(size, size, generator=generator),
        "r": lambda: torch.randn(size, generator=generator),
        "l": lambda: torch.randint(size, (size,), generator=generator),
    }
    return [draw[kind]() for kind in kinds]


def by_autograd(module: ModuleType, name: str) -> Callable:
    """A function whose lines autograd differentiates, as it does in forward mode."""
    own = module._by_lines

    def lines(*arguments: Tensor) -> Tensor:
        module._by_lines = lambda: True
        try:
            return getattr(module, name)(*arguments)
        finally:
            module._by_lines = own

    return lines


def first_order(function: Callable, x: Tensor, rest: list[Tensor], v: Tensor) -> Tensor:
    return torch.autograd.grad(function(x, *rest).square().sum(), x)[0]


def penalty(function: Callable, x: Tensor, rest: list[Tensor], v: Tensor) -> Tensor:
    (gradient,) = torch.autograd.grad(function(x, *rest).square().sum(), x, create_graph=True)
    return torch.autograd.grad((gradient.norm() - 1) ** 2, x)[0]


def hessian_vector(function: Callable, x: Tensor, rest: list[Tensor], v: Tensor) -> Tensor:
    (gradient,) = torch.autograd.grad(function(x, *rest).square().sum(), x, create_graph=True)
    return torch.autograd.grad(gradient, x, v)[0]


ASKED = {"penalty": penalty, "Hessian-vector": hessian_vector, "first order": first_order}


def ratio(asked: Callable, ours: Callable, plain: Callable, drawn: tuple, rounds: int) -> float:
    times: dict[Callable, list[float]] = {ours: [], plain: []}
    for _ in range(WARM_UP + rounds):
        for function, own in times.items():
            start = time.perf_counter()
            asked(function, *drawn)
            own.append(time.perf_counter() - start)
    one, other = (statistics.median(own[WARM_UP:]) for own in times.values())
    return one / other


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(FUNCTIONS))
    parser.add_argument("--size", type=int, default=256, metavar="N")
    parser.add_argument("--threads", type=int, default=1, metavar="T")
    parser.add_argument("--rounds", type=int, default=31, metavar="R")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    print("ours / autograd on the statements", *ASKED, sep="  ")
    for name in chosen.names or FUNCTIONS:
        module = import_module(f"gradform.generated.{name}")
        ours, plain = getattr(module, name), by_autograd(module, name)
        x, *rest = arguments_of(FUNCTIONS[name], chosen.size)
        x.requires_grad_()
        v = torch.randn(x.shape, generator=torch.Generator().manual_seed(1))
        drawn = (x, rest, v)
        found = [ratio(asked, ours, plain, drawn, chosen.rounds) for asked in ASKED.values()]
        print(
            f"{name:34}",
            *(f"{one:.2f}".rjust(len(a)) for one, a in zip(found, ASKED, strict=True)),
            sep="  ",
        )


if __name__ == "__main__":
    main()
