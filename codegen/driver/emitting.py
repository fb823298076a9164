"""All forwards of a run: unchanged ones come from the cache, the others are derived, on all cores
where that pays. Each derivation is printed for every target.

The processes of a pool load the forwards again from their files, and known results from the cache;
they return plain data. Errors, their order and the bytes that are emitted are those of one process
alone.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable, Container, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cache as remembered
from importlib import import_module
from pathlib import Path

from codegen import targets
from codegen.driver import lean
from codegen.driver.cache import TORCH, Cache
from codegen.driver.chain import keep_chain, recalled_chain
from codegen.driver.qualities import emitted
from codegen.files.quality import Emitted
from codegen.program import Program
from codegen.program.packed import unpacked
from codegen.targets.languages import kernels
from derive.language.errors import NotationWarning, QuestionError
from derive.language.notation.forward import Forward
from derive.language.notation.library import load, source_hash

FEWEST = 4  # forwards for which a pool pays: a process takes two seconds to begin
PRELOADED = [f"{__package__}.gate", f"{targets.__package__}.torch.check"]

# Called with a forward's name and its current stage; and with one that is done.
Working = Callable[[str, str], None]
Finished = Callable[[str], None]
# A time limit, a target, the folder of the cache, and whether the chain is asked for.
Asked = tuple[float | None, str, Path | None, bool]


def emit_all(
    forwards: Sequence[type[Forward]],
    cache: Cache,
    working: Working = lambda name, what: None,
    finished: Finished = lambda name: None,
    processes: int | None = None,
    limit: float | None = None,
    chained: Container[str] = (),
) -> list[Emitted]:
    """The module of every forward, in their order, with the chain where its name is among those
    ``chained``. Writes nothing but the cache.

    Raises what `generate` raises, for the first forward that fails. ``processes`` None takes as
    many as there are cores. ``limit`` is in seconds, for each forward. The ``cache`` knows for
    which target.

    Long: the request, its callbacks, and its limits.
    """
    asks = [forward.definition.snake in chained for forward in forwards]
    known = [_known(forward, cache, chain) for forward, chain in zip(forwards, asks, strict=True)]
    missing = []
    for forward, found, chain in zip(forwards, known, asks, strict=True):
        if found is not None:
            finished(found.quality.name)
        else:
            missing.append((forward, (limit, cache.target, cache.folder, chain)))
    processes = min(processes or _cores(), len(missing))
    if processes > 1 and len(missing) >= FEWEST:
        made = _in_parallel(missing, processes, finished)
    else:
        made = _one_by_one(missing, working, finished)
    results = []
    for forward, found in zip(forwards, known, strict=True):
        if found is None:
            found = next(made)
            _keep(forward, found, cache)
        results.append(found)
    return results


def _known(forward: type[Forward], cache: Cache, chain: bool) -> Emitted | None:
    """The cached result with everything that is asked for; None if anything is missing."""
    found = cache.get(forward)
    if found is None or (cache.target in kernels and found.kernels is None):
        return None
    if not chain:
        return found
    text = recalled_chain(forward, cache.folder)
    return None if text is None else replace(found, chain=text)


def _keep(forward: type[Forward], found: Emitted, cache: Cache) -> None:
    cache.put(forward, found)
    if found.chain is not None and cache.folder is not None and not found.cut_short:
        keep_chain(forward, found.chain, cache.folder)


def _one_by_one(missing, working: Working, finished: Finished) -> Iterator[Emitted]:
    if missing:
        for module in PRELOADED:  # torch takes a second, which is no forward's
            import_module(module)
    for forward, asked in missing:
        name = forward.definition.snake
        result = _generated(forward, asked, lambda what, name=name: working(name, what))
        finished(name)
        yield result


def _in_parallel(missing, processes: int, finished: Finished) -> Iterator[Emitted]:
    """Run in a pool. No process gets more data than a pipe holds: the sending thread would wait for
    ever for one that was ended, and the pool for that thread.
    """
    with _pool(processes) as pool:
        futures = []
        for forward, asked in missing:
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
    """Block Ctrl-C in a process that begins here: its imports take two seconds, in which it would
    answer with a traceback. For this one it is only put off.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    """Initialize a process: its parent answers Ctrl-C, it uses one thread, and it ends if the
    parent is killed.
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


def _emitted(file: str, name: str, asked: Asked) -> Emitted:
    """In a process: derive one forward, from its file."""
    found = [forward for forward in _loaded(file) if forward.__name__ == name]
    if not found:
        raise QuestionError(f"{name} is no longer in {file}", "run the same command again")
    return _generated(found[0], asked)


def _generated(forward: type[Forward], asked: Asked, progress=lambda what: None) -> Emitted:
    """Derive a lean module; if it is in the cache, only the kernels."""
    limit, target, folder, chain = asked
    if target == TORCH:
        return emitted(lean.generate(forward, progress, limit, chain))
    known = Cache(folder).get(forward)
    program = None if known is None else _program(known, forward)
    if program is None:
        made = lean.generate(forward, progress, limit)
        known, program = emitted(made), made.whole
    texts, why = lean.with_kernels(forward, program, known.text, kernels[target], progress)
    name = forward.definition.name
    slow = f"{name} has no kernels, and torch computes it; {why}" if why else ""
    return replace(known, kernels=texts, slow=slow)


def _program(known: Emitted, forward: type[Forward]) -> Program | None:
    """The cached program, unless the forward has been edited since."""
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
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
