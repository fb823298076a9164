"""Time one training step of the character model, written six ways: microseconds and ratios.

    python benchmarks/training_step.py [--hidden H] [--threads T ...] [--rounds R] [--no-compile]

A step picks the batch, runs forward and backward, and updates the seven parameters in place. First,
every variant must reach the same parameters as autograd. Exit status: 0 done; 1 they do not agree;
2 invalid arguments.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor

from gradform.generated.kernels.mlp import training_step
from gradform.generated.mlp import mlp_backward, mlp_forward

CONTEXT, EMBEDDING, SYMBOLS, BATCH = 3, 10, 27, 32
EXAMPLES = 182_625  # the published training set: picking rows of a small table would be cheaper
SEED = 2147483647
RATE = 0.1
EPS = 1e-5
STEPS_COMPARED = 3
TOLERANCE = 1e-6  # of the largest entry of a parameter, in float32
WARM_UP = 3  # rounds
WIDTH = 80

Parameters = dict[str, Tensor]
OURS, AUTOGRAD, COMPILED, ONE_CALL = "ours", "autograd", "ours, compiled", "ours, one call"


class Examples(NamedTuple):
    """A training set: contexts (n, 3) and the symbol that follows each (n)."""

    contexts: Tensor
    labels: Tensor


def drawn_examples() -> Examples:
    """As many random examples as in the published run."""
    generator = torch.Generator().manual_seed(SEED)
    return Examples(
        torch.randint(SYMBOLS, (EXAMPLES, CONTEXT), generator=generator),
        torch.randint(SYMBOLS, (EXAMPLES,), generator=generator),
    )


def drawn_parameters(hidden: int) -> Parameters:
    """Small random numbers everywhere, in the published order."""
    generator = torch.Generator().manual_seed(SEED)

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    inputs = CONTEXT * EMBEDDING
    return {
        "C": normal(SYMBOLS, EMBEDDING),
        "W1": normal(inputs, hidden) * (5 / 3) / inputs**0.5,
        "b1": normal(hidden) * 0.1,
        "W2": normal(hidden, SYMBOLS) * 0.1,
        "b2": normal(SYMBOLS) * 0.1,
        "bngain": normal(hidden) * 0.1 + 1.0,
        "bnbias": normal(hidden) * 0.1,
    }


# The step, spelled in different ways: (parameters, examples, the rows of the batch) -> nothing


def step_as_published(parameters: Parameters, examples: Examples, chosen: Tensor) -> None:
    step_by_hand(parameters, examples, chosen, add_rows_one_by_one)


def step_with_index_add(parameters: Parameters, examples: Examples, chosen: Tensor) -> None:
    step_by_hand(parameters, examples, chosen, add_rows_at_once)


def step_by_autograd(parameters: Parameters, examples: Examples, chosen: Tensor) -> None:
    """The parameters are leaves that require a gradient."""
    loss = forward_by_hand(parameters, *picked(examples, chosen)).loss
    for parameter in parameters.values():
        parameter.grad = None
    loss.backward()
    update(parameters, [parameter.grad for parameter in parameters.values()])


@torch.no_grad()
def step_of_ours(parameters: Parameters, examples: Examples, chosen: Tensor) -> None:
    contexts, labels = picked(examples, chosen)
    _, *kept = mlp_forward(contexts, labels, **parameters, eps=EPS)
    read = [parameters[name] for name in ("C", "W1", "W2", "bngain")]
    update(parameters, mlp_backward(torch.ones(()), contexts, labels, *read, *kept))


def picked(examples: Examples, chosen: Tensor) -> Examples:
    return Examples(examples.contexts[chosen], examples.labels[chosen])


def update(parameters: Parameters, gradients: Iterable[Tensor]) -> None:
    """The published update, for all variants."""
    for parameter, gradient in zip(parameters.values(), gradients, strict=True):
        parameter.data += -RATE * gradient


class Activations(NamedTuple):
    """The tensors that the manual backward reads, and the loss."""

    emb: Tensor
    embcat: Tensor
    bnvar_inv: Tensor
    bnraw: Tensor
    h: Tensor
    logits: Tensor
    loss: Tensor


def forward_by_hand(parameters: Parameters, contexts: Tensor, labels: Tensor) -> Activations:
    """The forward of the published loop, also for autograd."""
    C, W1, b1, W2, b2, bngain, bnbias = parameters.values()
    emb = C[contexts]
    embcat = emb.view(emb.shape[0], -1)
    hprebn = embcat @ W1 + b1
    bnmean = hprebn.mean(0, keepdim=True)
    bnvar = hprebn.var(0, keepdim=True, unbiased=True)
    bnvar_inv = (bnvar + EPS) ** -0.5
    bnraw = (hprebn - bnmean) * bnvar_inv
    hpreact = bngain * bnraw + bnbias
    h = torch.tanh(hpreact)
    logits = h @ W2 + b2
    return Activations(emb, embcat, bnvar_inv, bnraw, h, logits, F.cross_entropy(logits, labels))


@torch.no_grad()
def step_by_hand(parameters: Parameters, examples: Examples, chosen: Tensor, add_rows) -> None:
    """The published backward, with a choice of how to sum the rows of the embedding."""
    C, W1, _, W2, _, bngain, _ = parameters.values()
    contexts, labels = picked(examples, chosen)
    emb, embcat, bnvar_inv, bnraw, h, logits, _ = forward_by_hand(parameters, contexts, labels)
    n = contexts.shape[0]
    dlogits = F.softmax(logits, 1)
    dlogits[range(n), labels] -= 1
    dlogits /= n
    dh = dlogits @ W2.T
    dW2 = h.T @ dlogits
    db2 = dlogits.sum(0)
    dhpreact = (1.0 - h**2) * dh
    dbngain = (bnraw * dhpreact).sum(0)
    dbnbias = dhpreact.sum(0)
    correlation = n / (n - 1) * bnraw * (dhpreact * bnraw).sum(0)
    dhprebn = bngain * bnvar_inv / n * (n * dhpreact - dhpreact.sum(0) - correlation)
    dembcat = dhprebn @ W1.T
    dW1 = embcat.T @ dhprebn
    db1 = dhprebn.sum(0)
    dC = torch.zeros_like(C)
    add_rows(dC, contexts, dembcat.view(emb.shape))
    update(parameters, (dC, dW1, db1, dW2, db2, dbngain, dbnbias))


def add_rows_one_by_one(dC: Tensor, contexts: Tensor, demb: Tensor) -> None:
    for k in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            row = contexts[k, j]
            dC[row] += demb[k, j]


def add_rows_at_once(dC: Tensor, contexts: Tensor, demb: Tensor) -> None:
    dC.index_add_(0, contexts.flatten(), demb.flatten(0, 1))


# The contenders


class Spelling(NamedTuple):
    """A variant of the step, and how many steps to take per round."""

    step: Callable[[Parameters, Examples, Tensor], None]
    steps: int = 20


SPELLINGS = {
    "published loop": Spelling(step_as_published, 5),
    "published, index_add": Spelling(step_with_index_add),
    AUTOGRAD: Spelling(step_by_autograd),
    OURS: Spelling(step_of_ours),
}


def compiled() -> Spelling:
    """The whole step as one graph, compiled at the first call."""
    return Spelling(torch.compile(step_of_ours, fullgraph=True, dynamic=False))


def in_one_call() -> Spelling:
    """The kernel, always in one thread; compiled at the first call."""
    steps: dict[int, Callable[[Tensor, float], float]] = {}  # by where the parameters lie

    def step(parameters: Parameters, examples: Examples, chosen: Tensor) -> None:
        place = parameters["W1"].data_ptr()
        if place not in steps:
            steps[place] = training_step(*examples, **parameters, eps=EPS, batch=BATCH)
        steps[place](chosen, RATE)

    return Spelling(step)


class Contender:
    """A variant with its current parameters and its batches.

    All contenders start from the same parameters and see the same batches.
    """

    def __init__(self, spelling: Spelling, examples: Examples, hidden: int):
        self.spelling, self.examples = spelling, examples
        self.parameters = drawn_parameters(hidden)
        if spelling.step is step_by_autograd:
            for parameter in self.parameters.values():
                parameter.requires_grad_()
        self.generator = torch.Generator().manual_seed(SEED)

    def take(self, steps: int) -> float:
        """Take the given number of steps and return the seconds per step."""
        rows = (steps, BATCH)
        batches = list(torch.randint(len(self.examples.labels), rows, generator=self.generator))
        step, parameters, examples = self.spelling.step, self.parameters, self.examples
        start = time.perf_counter()
        for chosen in batches:
            step(parameters, examples, chosen)
        return (time.perf_counter() - start) / steps


def disagreement(ours: Parameters, reference: Parameters) -> str | None:
    """The first parameter whose shape differs or that differs by more than rounding, or None."""
    for name, expected in reference.items():
        if ours[name].shape != expected.shape:
            return f"{name} has the shape {tuple(ours[name].shape)}, not {tuple(expected.shape)}"
        difference = (ours[name] - expected).abs().max().item()
        # Written so that a NaN disagrees.
        if not difference <= TOLERANCE * expected.abs().max().item():
            return f"{name} differs by {difference:.1e}"
    return None


# The measurement


class Disagrees(Exception):
    """A contender disagrees with autograd."""


def agreed(spellings: dict[str, Spelling], examples: Examples, hidden: int) -> dict[str, Contender]:
    """The contenders after a few steps that agree. Raises Disagrees."""
    contenders = {name: Contender(s, examples, hidden) for name, s in spellings.items()}
    for contender in contenders.values():
        contender.take(STEPS_COMPARED)
    reference = contenders[AUTOGRAD].parameters
    for name, contender in contenders.items():
        if wrong := disagreement(contender.parameters, reference):
            raise Disagrees(f"{name}, after {STEPS_COMPARED} steps: {wrong} from autograd")
    return contenders


def medians(contenders: dict[str, Contender], rounds: int) -> dict[str, float]:
    """Seconds of a step: A B C A B C ..., so that a drift of the machine meets all alike."""
    times = {name: [] for name in contenders}
    for turn in range(WARM_UP + rounds):
        for name, contender in contenders.items():
            seconds = contender.take(contender.spelling.steps)
            if turn >= WARM_UP:
                times[name].append(seconds)
    return {name: statistics.median(kept) for name, kept in times.items()}


def why_not_compiled(spelling: Spelling, examples: Examples, hidden: int) -> str | None:
    """Why the step cannot be compiled, or None."""
    try:
        Contender(spelling, examples, hidden).take(1)
    except Exception as failure:  # a missing compiler has many faces, and the others go on
        return str(failure).strip().split("\n")[0] or type(failure).__name__
    return None


def measure(examples: Examples, hidden: int, rounds: int, compiling: bool, console) -> None:
    """One table, for the current number of torch threads."""
    spellings, notes = dict(SPELLINGS), {}
    candidates = {ONE_CALL: in_one_call()}
    if compiling:
        torch.compiler.reset()  # what is compiled is compiled for one size and number of threads
        candidates[COMPILED] = compiled()
    for name, candidate in candidates.items():
        note = why_not_compiled(candidate, examples, hidden)
        if note is None:
            spellings[name] = candidate
        else:
            notes[name] = note
    times = medians(agreed(spellings, examples, hidden), rounds)
    threads = torch.get_num_threads()
    table = Table(title=f"{hidden} hidden units, {threads} thread{'s'[: threads > 1]}")
    table.add_column("step")
    for heading in ("us, median", f"/ {OURS}", f"/ {COMPILED}"):
        table.add_column(heading, justify="right")
    for name, seconds in times.items():
        ratios = [
            f"{seconds / times[base]:.2f}" if base in times else "-" for base in (OURS, COMPILED)
        ]
        table.add_row(name, f"{seconds * 1e6:.0f}", *ratios)
    for name in notes:
        table.add_row(name, "failed", "-", "-")
    console.print(table)
    for name, note in notes.items():
        console.print(f"{name}: {note}")


# The command line


def processor() -> str:
    """The processor's name, if known."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().split("\n") if file.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hidden", type=positive, nargs="+", default=[64], metavar="H")
    parser.add_argument("--threads", type=positive, nargs="+", default=[1, 2], metavar="T")
    parser.add_argument("--rounds", type=positive, default=60)
    parser.add_argument("--no-compile", action="store_true")
    options = parser.parse_args(arguments)
    # A pipe has no width of its own; 80 columns hold the table.
    console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
    capability = torch.backends.cpu.get_cpu_capability()
    console.print(
        f"{processor()} ({capability}, {os.cpu_count()} cores), torch {torch.__version__}; "
        f"batch {BATCH}, float32, {options.rounds} rounds"
    )
    examples = drawn_examples()
    for hidden in options.hidden:
        for threads in options.threads:
            torch.set_num_threads(threads)
            try:
                measure(examples, hidden, options.rounds, not options.no_compile, console)
            except Disagrees as disagrees:
                console.print(f"not timed: {disagrees}")
                return 1
    return 0


def positive(text: str) -> int:
    """An argparse type: a positive integer."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
