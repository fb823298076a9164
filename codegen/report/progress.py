"""Progress of a run over many forwards: a bar in a terminal, else a line from time to time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from codegen.driver.emitting import Finished, Working
from derive.running.progress import told


@contextmanager
def in_a_bar(count: int, console: Console) -> Iterator[tuple[Working, Finished]]:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=count)
        yield (
            lambda name, what: bar.update(task, description=f"{name}: {what}"),
            lambda name: bar.update(task, advance=1, description=name),
        )


@contextmanager
def in_lines(count: int, console: Console) -> Iterator[tuple[Working, Finished]]:
    done = []
    with told() as tell:
        tell(f"0 of {count} done")

        def finished(name: str) -> None:
            done.append(name)
            tell(f"{len(done)} of {count} done")

        yield lambda name, what: tell(f"{name}: {what}"), finished
