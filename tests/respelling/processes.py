"""Many tasks, each in a process of its own that may take so much time and no more."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import TypeVar

T, R = TypeVar("T"), TypeVar("R")


def apart(
    work: Callable[[T], R], tasks: Iterable[T], seconds: int, processes: int
) -> Iterator[tuple[T, R | None, str]]:
    """Every task with what ``work`` gives for it, or with what went wrong, in the order in which
    they end.

    Whatever does not end is ended by the kernel, wherever it is. Nothing is in the memory of such a
    process that another one computed, so what comes out does not depend on what else was asked.
    """
    context = get_context("fork")
    waiting, running = list(tasks)[::-1], {}
    while waiting or running:
        while waiting and len(running) < processes:
            task = waiting.pop()
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=_tell, args=(there, work, task, seconds), daemon=True)
            process.start()
            there.close()
            running[here] = task, process
        for here in wait(list(running)):
            task, process = running.pop(here)
            with here:
                try:
                    result, error = here.recv()
                except (EOFError, OSError):
                    process.join()
                    late = process.exitcode == -signal.SIGXCPU
                    result, error = None, "died" if not late else f"not within {seconds} s"
            process.join()
            yield task, result, error


def _tell(there: Connection, work: Callable[[T], R], task: T, seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    try:
        there.send((work(task), ""))
    except Exception as error:  # what a task leads to is what is asked
        words = f"{type(error).__name__}: {' '.join(str(error).split())}"
        there.send((None, words[:100]))
