"""All forwards of a run: those that are unchanged come from the cache, the others are derived, on
all cores where that pays.

The forwards of a pool are loaded again by the processes, from their files; what comes back is
plain data. Errors, their order and the bytes that are emitted are those of one process alone.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache as remembered
from importlib import import_module
from pathlib import Path

from codegen.cache import Cache
from codegen.driver import generate
from codegen.qualities import emitted
from codegen.quality import Emitted
from codegen.targets import kernels
from derive.language.errors import NotationWarning, QuestionError
from derive.notation.forward import Forward
from derive.notation.library import load
from derive.orders import SECOND

FEWEST = 4  # forwards for which a pool pays: a process takes two seconds to begin
PRELOADED = ["codegen.driver", "codegen.targets.torch.check"]

# Called with a forward's name and what is being done; and with one that is done.
Working = Callable[[str, str], None]
Finished = Callable[[str], None]
# A time limit, an order, and a target.
Asked = tuple[float | None, int, str]


def emit_all(
    forwards: Sequence[type[Forward]],
    cache: Cache,
    working: Working = lambda name, what: None,
    finished: Finished = lambda name: None,
    processes: int | None = None,
    limit: float | None = None,
) -> list[Emitted]:
    """The module of every forward, in their order. Writes nothing but the cache.

    Raises what `generate` raises, for the first forward that fails. ``processes`` None takes as
    many as there are cores. ``limit`` is in seconds, for each forward. The ``cache`` knows up to
    which order, and for which target.
    """
    known = [cache.get(forward) for forward in forwards]
    missing = [f for f, found in zip(forwards, known, strict=True) if found is None]
    for found in known:
        if found is not None:
            finished(found.quality.name)
    processes = min(processes or _cores(), len(missing))
    asked = (limit, cache.order, cache.target)
    if processes > 1 and len(missing) >= FEWEST:
        made = _in_parallel(missing, processes, finished, asked)
    else:
        made = _one_by_one(missing, working, finished, asked)
    results = []
    for forward, found in zip(forwards, known, strict=True):
        if found is None:
            found = next(made)
            cache.put(forward, found)
        results.append(found)
    return results


def _one_by_one(forwards, working: Working, finished: Finished, asked: Asked) -> Iterator[Emitted]:
    if forwards:
        for module in PRELOADED:  # torch takes a second, which is no forward's
            import_module(module)
    for forward in forwards:
        name = forward.definition.snake
        result = _generated(forward, asked, lambda what, name=name: working(name, what))
        finished(name)
        yield result


def _in_parallel(forwards, processes: int, finished: Finished, asked: Asked) -> Iterator[Emitted]:
    with _pool(processes) as pool:
        futures = []
        for forward in forwards:
            definition = forward.definition
            future = pool.submit(_emitted, definition.place.file, forward.__name__, asked)
            future.add_done_callback(_telling(finished, definition.snake))
            futures.append(future)
        for future in futures:
            yield future.result()


def _telling(finished: Finished, name: str) -> Callable[[Future], None]:
    return lambda future: None if future.cancelled() else finished(name)


@contextmanager
def _pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with the block, at once where it ends with an error.

    They are not forked from this process: its threads (of torch, of the progress bar) would be
    missing in them. They are forked from one that has imported torch and began no thread.
    """
    kinds = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in kinds else "spawn")
    if "forkserver" in kinds:
        context.set_forkserver_preload(PRELOADED)
        from multiprocessing import forkserver  # not on Windows

        with _without_interrupts():
            forkserver.ensure_running()
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(processes, context, _begin)
    try:
        yield pool
    except BaseException:
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """For a process that begins here, Ctrl-C stays blocked: its imports take two seconds, in which
    it would answer with a traceback. For this one it is only put off.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    """Of a process: Ctrl-C is for its parent to answer, one thread is enough, and nobody is left
    behind where the parent was killed.
    """
    import torch

    warnings.simplefilter("ignore", NotationWarning)  # its parent has said them
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    threading.Thread(
        target=_end_with, args=(multiprocessing.parent_process(),), daemon=True
    ).start()


def _end_with(parent) -> None:
    parent.join()
    os._exit(1)


def _emitted(file: str, name: str, asked: Asked = (None, SECOND, "torch")) -> Emitted:
    """Of a process: one forward, from its file."""
    found = [forward for forward in _loaded(file) if forward.__name__ == name]
    if not found:
        raise QuestionError(f"{name} is no longer in {file}", "run the same command again")
    return _generated(found[0], asked)


def _generated(forward: type[Forward], asked: Asked, progress=lambda what: None) -> Emitted:
    limit, order, target = asked
    loops = kernels.get(target)
    found = generate(forward, progress=progress, limit=limit, order=order, kernels=loops)
    return emitted(found)


@remembered
def _loaded(file: str) -> list[type[Forward]]:
    return load(Path(file))


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
