"""Progress of a run: loss, speed and remaining time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from character_model.training import Run


@contextmanager
def progress(run: Run) -> Iterator[Callable[[float], None]]:
    """A bar on a terminal, otherwise a line per tenth of the run."""
    console = Console(stderr=True, highlight=False)
    steps, first, begun = run.settings.steps, run.step, time.perf_counter()
    tenth = 10 * first // steps
    columns = BarColumn(bar_width=None), TextColumn("{task.description}")
    # No thread of its own: it would take time from the steps.
    with Progress(
        *columns,
        console=console,
        auto_refresh=False,
        expand=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("", total=steps, completed=first)

        def report(loss: float) -> None:
            nonlocal tenth
            speed = (run.step - first) / (time.perf_counter() - begun)
            left = clock((steps - run.step) / speed)
            words = (
                f"step {run.step:,} of {steps:,}, "
                f"loss {loss:.4f}, {speed:,.0f} steps/s, {left} left"
            )
            bar.update(task, completed=run.step, description=words, refresh=True)
            if not console.is_terminal and 10 * run.step // steps > tenth:
                tenth = 10 * run.step // steps
                sys.stderr.write(f"{words}\n")

        yield report


def clock(seconds: float) -> str:
    """Seconds as h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
