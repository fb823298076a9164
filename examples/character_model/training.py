"""The run: its settings, its state, and the training loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from character_model.network import TORCH, Calibration, Parameters, descent, drawn_parameters
from character_model.words import SYMBOLS, Examples

BATCH = 32
RATE, LATER_RATE = 0.1, 0.01
SECONDS_BETWEEN_REPORTS = 0.25


class Diverged(Exception):
    """The loss is not finite."""


@dataclass(frozen=True)
class Settings:
    """Everything that determines the results of a run, besides its data.

    This includes threads and target, which affect rounding.
    """

    steps: int = 200_000
    hidden: int = 200
    seed: int = 2147483647
    threads: int = 1
    target: str = TORCH


@dataclass
class Run:
    """The complete state of a run: equal runs continue equally.

    ``data`` is the file of words (None: the project's own), ``losses`` the loss of every step so
    far, ``calibration`` the statistics after the last one.
    """

    settings: Settings
    data: str | None
    fingerprint: str
    parameters: Parameters
    generator: torch.Generator
    symbols: str = SYMBOLS
    losses: Tensor = field(default_factory=lambda: torch.empty(0))
    seconds: float = 0.0
    calibration: Calibration | None = None

    @property
    def step(self) -> int:
        return len(self.losses)

    @property
    def finished(self) -> bool:
        return self.step == self.settings.steps


def begin(settings: Settings, data: str | None, fingerprint: str) -> Run:
    """A run before its first step. One generator draws parameters and batches."""
    generator = torch.Generator().manual_seed(settings.seed)
    parameters = drawn_parameters(len(SYMBOLS), settings.hidden, generator)
    return Run(settings, data, fingerprint, parameters, generator)


def rate_at(step: int, steps: int) -> float:
    """The learning rate: a tenth in the second half of the steps."""
    return RATE if 2 * step < steps else LATER_RATE


def train(run: Run, examples: Examples, stop: Callable[[], bool]) -> Iterator[float]:
    """Train ``run`` in place to its last step or until ``stop()``.

    Yields the mean loss since the last report, a few times per second and at the end. Only then is
    ``run`` complete and may be saved. Raises Diverged, and Mistake if the target cannot be built.
    """
    take = descent(run.parameters, examples, BATCH, run.settings.target)
    count, losses, begun = len(examples), [], time.perf_counter()
    for step in range(run.step, run.settings.steps):
        chosen = torch.randint(count, (BATCH,), generator=run.generator)
        losses.append(take(chosen, rate_at(step, run.settings.steps)))
        now = time.perf_counter()
        stopping = stop()
        if stopping or now - begun >= SECONDS_BETWEEN_REPORTS:
            yield _record(run, losses, now - begun)
            losses, begun = [], now
        if stopping:
            return
    if losses:
        yield _record(run, losses, time.perf_counter() - begun)


def _record(run: Run, losses: list[Tensor | float], seconds: float) -> float:
    """Add the losses since the last report to the run and return their mean."""
    recent = torch.tensor([float(loss) for loss in losses])
    run.losses = torch.cat([run.losses, recent])
    run.seconds += seconds
    mean = recent.mean().item()
    if not math.isfinite(mean):
        raise Diverged(f"the training diverged: the loss is {mean} after {run.step:,} steps")
    return mean
