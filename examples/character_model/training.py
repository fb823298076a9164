"""The run: its settings, where it stands, and the loop that takes it on."""

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
    """The loss is no number any more."""


@dataclass(frozen=True)
class Settings:
    """What the numbers of a run depend on, next to its data.

    The threads and the target are among them: they decide how a sum is rounded.
    """

    steps: int = 200_000
    hidden: int = 200
    seed: int = 2147483647
    threads: int = 1
    target: str = TORCH


@dataclass
class Run:
    """Where a run stands. Equal runs go on equally: there is no other state.

    ``data`` is the file of words (None: the project's own), ``losses`` the loss of every step so
    far, ``calibration`` what was measured after the last one.
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
    """A run before its first step. One generator draws the parameters and then the batches."""
    generator = torch.Generator().manual_seed(settings.seed)
    parameters = drawn_parameters(len(SYMBOLS), settings.hidden, generator)
    return Run(settings, data, fingerprint, parameters, generator)


def rate_at(step: int, steps: int) -> float:
    """The learning rate: one for the first half of the steps, a tenth of it after."""
    return RATE if 2 * step < steps else LATER_RATE


def train(run: Run, examples: Examples, stop: Callable[[], bool]) -> Iterator[float]:
    """Take ``run`` on, in place, to its last step or until ``stop()``.

    Yields the mean loss since the last report, a few times per second and at the end. Only at these
    moments does ``run`` hold all that was computed, and may be saved. Raises Diverged, and Mistake
    where the target cannot be built.
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
    """Add the losses since the last report to the run; their mean."""
    recent = torch.tensor([float(loss) for loss in losses])
    run.losses = torch.cat([run.losses, recent])
    run.seconds += seconds
    mean = recent.mean().item()
    if not math.isfinite(mean):
        raise Diverged(f"the training diverged: the loss is {mean} after {run.step:,} steps")
    return mean
