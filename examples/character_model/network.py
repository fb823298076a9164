"""The character model: gradient descent by the closed form, losses and samples.

No parameter requires grad, so autograd builds no graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from character_model.mistakes import Mistake
from character_model.words import CONTEXT, Examples
from gradform.generated.chain.mlp import mlp_atoms
from gradform.generated.mlp import mlp_backward, mlp_forward
from gradform.generated.softmax_nll import softmax_nll_backward, softmax_nll_forward

EMBEDDING = 10
EPS = 1e-5
LONGEST_NAME = 40  # an untrained network may never end a word
ENTRIES_AT_ONCE = 1 << 22  # of the hidden layer in an evaluation: 16 MiB for each tensor
UPSTREAM = torch.ones(())
TARGETS = TORCH, CPP = "torch", "cpp"

Parameters = dict[str, Tensor]


class Calibration(NamedTuple):
    """Mean and unbiased variance (h) of the pre-activations over the whole training set."""

    mean: Tensor
    var: Tensor


def parameter_shapes(symbols: int, hidden: int) -> dict[str, tuple[int, ...]]:
    """The shapes of the parameters, in the order of initialization."""
    return {
        "C": (symbols, EMBEDDING),
        "W1": (CONTEXT * EMBEDDING, hidden),
        "b1": (hidden,),
        "W2": (hidden, symbols),
        "b2": (symbols,),
        "bngain": (hidden,),
        "bnbias": (hidden,),
    }


def drawn_parameters(symbols: int, hidden: int, generator: torch.Generator) -> Parameters:
    """Small random numbers everywhere: exact zeros in a bias would hide a wrong gradient."""
    drawn = {
        name: torch.randn(shape, generator=generator)
        for name, shape in parameter_shapes(symbols, hidden).items()
    }
    drawn["W1"] = drawn["W1"] * (5 / 3) / (CONTEXT * EMBEDDING) ** 0.5  # 5/3: the gain of a tanh
    for name in ("b1", "W2", "b2", "bngain", "bnbias"):
        drawn[name] = drawn[name] * 0.1
    drawn["bngain"] = drawn["bngain"] + 1.0
    return drawn


def descent(
    parameters: Parameters, examples: Examples, batch: int, target: str
) -> Callable[[Tensor, float], Tensor | float]:
    """A function that takes one step in place, given indices of examples and a learning rate, and
    returns the loss before it. Raises Mistake if the target is cpp and there is no compiler.
    """
    if target == CPP:
        from gradform.generated.kernels.mlp import (  # whose import takes time
            NoCompiler,
            training_step,
        )

        try:
            return training_step(
                examples.contexts, examples.labels, **parameters, eps=EPS, batch=batch
            )
        except NoCompiler as error:
            raise Mistake(f"{error}; --target {TORCH} needs no compiler") from None

    def take(chosen: Tensor, rate: float) -> Tensor:
        return descend(parameters, examples.contexts[chosen], examples.labels[chosen], rate)

    return take


def descend(parameters: Parameters, contexts: Tensor, labels: Tensor, rate: float) -> Tensor:
    """One step of gradient descent, in place. Returns the loss before it."""
    loss, gradients = loss_and_gradients(parameters, contexts, labels, UPSTREAM)
    for name, parameter in parameters.items():
        parameter.sub_(gradients[name], alpha=rate)
    return loss


def loss_and_gradients(
    parameters: Parameters, contexts: Tensor, labels: Tensor, upstream: Tensor
) -> tuple[Tensor, Parameters]:
    """The loss, and the gradients of all parameters by the closed form."""
    loss, *kept = mlp_forward(contexts, labels, **parameters, eps=EPS)
    read = [parameters[name] for name in ("C", "W1", "W2", "bngain")]
    gradients = mlp_backward(upstream, contexts, labels, *read, *kept)
    return loss, dict(zip(parameters, gradients, strict=True))


def calibrate(parameters: Parameters, contexts: Tensor) -> Calibration:
    """The statistics of the pre-activations, in one pass over the contexts.

    The parts are merged as Chan, Golub and LeVeque (1983) merge them: with d the distance of two
    means, the sums of squared deviations add up to S1 + S2 + d**2 * n1 * n2 / (n1 + n2).
    """
    hidden = len(parameters["b1"])
    count, mean, squares = 0, torch.zeros(hidden).double(), torch.zeros(hidden).double()
    for part in contexts.split(_rows_at_once(parameters)):
        n = len(part)
        part_var, part_mean = torch.var_mean(
            _preactivations(parameters, part).double(), 0, correction=0
        )
        distance = part_mean - mean
        squares += part_var * n + distance**2 * (count * n / (count + n))
        count += n
        mean += distance * (n / count)
    return Calibration(mean.float(), (squares / (count - 1)).float())


def mean_loss(parameters: Parameters, calibration: Calibration, examples: Examples) -> float:
    """The mean negative log likelihood of the labels of one or more examples."""
    total = torch.zeros(()).double()
    for part in _parts(examples, _rows_at_once(parameters)):
        logits = logits_of(parameters, calibration, part.contexts)
        total += F.cross_entropy(logits, part.labels, reduction="sum")
    return total.item() / len(examples)


def logits_of(parameters: Parameters, calibration: Calibration, contexts: Tensor) -> Tensor:
    """The logits (n, symbols) with fixed statistics, so examples are independent."""
    xhat = (_preactivations(parameters, contexts) - calibration.mean) * (
        calibration.var + EPS
    ) ** -0.5
    h = torch.tanh(parameters["bngain"] * xhat + parameters["bnbias"])
    return h @ parameters["W2"] + parameters["b2"]


def sampled_names(
    parameters: Parameters, calibration: Calibration, symbols: str, seed: int, count: int
) -> Iterator[str]:
    """Names sampled symbol by symbol, with a separate generator."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        yield _sampled_name(parameters, calibration, symbols, generator)


def logits_gradient(parameters: Parameters, contexts: Tensor, labels: Tensor) -> Tensor:
    """The gradient (n, symbols) of the loss with respect to the logits of one batch."""
    logits = mlp_atoms(contexts, labels, **parameters, eps=EPS).logits
    _, *kept = softmax_nll_forward(logits, labels)
    return softmax_nll_backward(UPSTREAM, logits, labels, *kept)


def _sampled_name(
    parameters: Parameters, calibration: Calibration, symbols: str, generator: torch.Generator
) -> str:
    name, context = "", [0] * CONTEXT
    while len(name) < LONGEST_NAME:
        probs = logits_of(parameters, calibration, torch.tensor([context])).softmax(1)
        symbol = torch.multinomial(probs, 1, generator=generator).item()
        if symbol == 0:
            break
        name += symbols[symbol]
        context = [*context[1:], symbol]
    return name


def _preactivations(parameters: Parameters, contexts: Tensor) -> Tensor:
    """The input of the batch norm (n, h)."""
    return parameters["C"][contexts].flatten(1) @ parameters["W1"] + parameters["b1"]


def _rows_at_once(parameters: Parameters) -> int:
    return max(1, ENTRIES_AT_ONCE // len(parameters["b1"]))


def _parts(examples: Examples, rows: int) -> Iterator[Examples]:
    for contexts, labels in zip(
        examples.contexts.split(rows), examples.labels.split(rows), strict=True
    ):
        yield Examples(contexts, labels)
