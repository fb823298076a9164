"""All forwards of a run: those that are unchanged come from the cache, the others are derived, on
all cores where that pays. What was derived once is printed for every target.

The forwards of a pool are loaded again by the processes, from their files, and what is known of
them from the cache; what comes back is plain data. Errors, their order and the bytes that are
emitted are those of one process alone.
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
from dataclasses import replace
from functools import cache as remembered
from importlib import import_module
from pathlib import Path

from codegen import lean
from codegen.cache import PAIRS, TORCH, Cache
from codegen.driver import generate, with_kernels
from codegen.program import Program
from codegen.program.packed import unpacked
from codegen.qualities import emitted
from codegen.quality import Emitted
from codegen.targets import kernels
from derive.language.errors import NotationWarning, QuestionError
from derive.notation.forward import Forward
from derive.notation.library import load, source_hash
from derive.orders import SECOND

FEWEST = 4  # forwards for which a pool pays: a process takes two seconds to begin
PRELOADED = ["codegen.driver", "codegen.targets.torch.check"]

# Called with a forward's name and what is being done; and with one that is done.
Working = Callable[[str, str], None]
Finished = Callable[[str], None]
# A time limit, an order, a target, and the folder of the cache.
Asked = tuple[float | None, int, str, Path | None]


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
    missing = []
    for forward, found in zip(forwards, known, strict=True):
        if _is_whole(found, cache.target):
            finished(found.quality.name)
        else:
            missing.append(forward)
    processes = min(processes or _cores(), len(missing))
    asked = (limit, cache.order, cache.target, cache.folder)
    if processes > 1 and len(missing) >= FEWEST:
        made = _in_parallel(missing, processes, finished, asked)
    else:
        made = _one_by_one(missing, working, finished, asked)
    results = []
    for forward, found in zip(forwards, known, strict=True):
        if not _is_whole(found, cache.target):
            found = next(made)
            cache.put(forward, found)
        results.append(found)
    return results


def _is_whole(found: Emitted | None, target: str) -> bool:
    return found is not None and (target not in kernels or found.kernels is not None)


def _one_by_one(missing, working: Working, finished: Finished, asked: Asked) -> Iterator[Emitted]:
    if missing:
        for module in PRELOADED:  # torch takes a second, which is no forward's
            import_module(module)
    for forward in missing:
        name = forward.definition.snake
        result = _generated(forward, asked, lambda what, name=name: working(name, what))
        finished(name)
        yield result


def _in_parallel(missing, processes: int, finished: Finished, asked: Asked) -> Iterator[Emitted]:
    """Processes are handed no more than a pipe holds: the thread that hands it on would wait for
    ever for one that was ended, and the pool for that thread.
    """
    with _pool(processes) as pool:
        futures = []
        for forward in missing:
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


def _emitted(file: str, name: str, asked: Asked = (None, SECOND, TORCH, None)) -> Emitted:
    """Of a process: one forward, from its file."""
    found = [forward for forward in _loaded(file) if forward.__name__ == name]
    if not found:
        raise QuestionError(f"{name} is no longer in {file}", "run the same command again")
    return _generated(found[0], asked)


def _generated(forward: type[Forward], asked: Asked, progress=lambda what: None) -> Emitted:
    """A lean module; or pairs, and of what the cache knows the kernels alone."""
    limit, order, target, folder = asked
    if target == TORCH:
        return emitted(lean.generate(forward, progress, limit))
    known = Cache(folder, order).get(forward)
    program = None if known is None else _program(known, forward)
    if program is None:
        made = generate(forward, progress=progress, limit=limit, order=order)
        known, program = emitted(made), made.program
    if target == PAIRS:
        return known
    texts, why = with_kernels(forward, program, known.text, kernels[target], progress)
    name = forward.definition.name
    slow = f"{name} has no kernels, and torch computes it; {why}" if why else ""
    return replace(known, kernels=texts, slow=slow)


def _program(known: Emitted, forward: type[Forward]) -> Program | None:
    """What was derived, unless the forward has been edited since."""
    definition = forward.definition
    try:
        program = unpacked(known.program, definition.axes)
    except (ValueError, RecursionError, QuestionError):
        return None
    own = definition.snake, Path(definition.place.file).name, source_hash(forward)
    return program if (program.name, program.source, program.source_hash) == own else None


@remembered
def _loaded(file: str) -> list[type[Forward]]:
    return load(Path(file))


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
