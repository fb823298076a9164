"""Implementation of ``gradform NAME`` and ``gradform report``: a run writes all files or none."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Container, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from codegen.chunking import BOTH, CHUNK, RING
from codegen.driver.cache import Cache, cache_folder
from codegen.driver.chain import FOLDER, kept_chain
from codegen.driver.emitting import emit_all
from codegen.driver.gate import file_of
from codegen.driver.ranks import (
    MOST_AXES,
    OfRanks,
    file_of_ranks,
    generate_of_ranks,
    present,
)
from codegen.driver.writing import (
    REMEDY,
    from_other_files,
    kernel_files,
    outdated,
    with_runtime,
    write_modules,
)
from codegen.files.quality import Emitted
from codegen.report.page import FILE, report
from codegen.report.progress import in_a_bar, in_lines
from codegen.report.tables import table, table_of_ranks
from codegen.sharding import SHARD
from codegen.targets import TORCH
from codegen.targets.languages import KernelLanguage, kernels
from codegen.targets.torch.parts import RUNTIME
from codegen.tiles import TILES
from derive.commands.reduction import refuse_reduction
from derive.language.errors import QuestionError
from derive.language.notation.definition import NONE
from derive.language.notation.forward import Forward, reduced_forward
from derive.language.notation.library import files_read, forwards_from, list_forwards
from derive.running.command import DONE, WRONG, say
from derive.running.limits import seconds_of
from derive.running.writing import current, refuse, sealed

DEVICES = {"cpp": "CPU", "triton": "GPU"}
PLAIN_WIDTH = 160  # where there is no terminal: a line of a report is not broken

# Forwards, and the module of each.
Derived = tuple[list[type[Forward]], list[Emitted]]


def generate(options: argparse.Namespace) -> int:
    """Derive, prove and write the requested modules, and show the table."""
    if options.chain:
        return _chains(options)
    if options.shard or options.chunk or options.ring:
        return _in_parts(options)
    refuse_reduction(options)
    derived = derive_modules(options, not options.check)
    results = derived[1]
    shown = results if options.names else [each for each in results if not each.unchanged]
    definitions = [forward.definition for forward in derived[0]]
    reduced = {d.snake for d in definitions if d.reduction not in ("", NONE)}
    said = table(shown, reduced) if shown else ""
    return _ended(options, texts_of(options, derived), results, said)


def changed_modules(options: argparse.Namespace) -> dict[Path, bool]:
    """The modules of the requested forwards, each with whether it reads as it was written; the
    differences of those that are there are printed.
    """
    texts = {
        options.out / each.file: sealed(each.text) for each in derive_modules(options, False)[1]
    }
    there = {path: text for path, text in texts.items() if path.exists()}
    return dict.fromkeys(texts, True) | dict.fromkeys(outdated(there), False)


def derive_modules(options: argparse.Namespace, writes: bool) -> Derived:
    """Derive the modules that are asked for, ready to be written. If the caller ``writes``, a file
    that must not be overwritten raises at once.
    """
    if options.target in kernels:
        kernels[options.target].ready()
    limit = seconds_of(options.limit)
    cache, forwards = _cache(options, options.target), _forwards(options)
    chained = _chained(options, forwards)
    if writes:
        files, folder = [file_of(forward) for forward in forwards], options.out / FOLDER
        paths = [options.out / file for file in files]
        _refuse([*paths, *(folder / f for f in files if Path(f).stem in chained)], options)
    return forwards, _emitted(forwards, cache, limit, chained)


def _chained(options: argparse.Namespace, forwards: Sequence[type[Forward]]) -> set[str]:
    """Forwards whose chain is written as well: all of the gallery, and those with a chain already
    there.
    """
    if options.target != TORCH:
        return set()
    names = (forward.definition.snake for forward in forwards)
    return {n for n in names if not options.names or (options.out / FOLDER / f"{n}.py").exists()}


def texts_of(options: argparse.Namespace, derived: Derived) -> dict[Path, str]:
    """The files to write, with those that exist already for the same forwards."""
    (forwards, results), out, limit = derived, options.out, seconds_of(options.limit)
    texts = {out / result.file: sealed(result.text) for result in results}
    texts |= {out / FOLDER / r.file: sealed(r.chain) for r in results if r.chain is not None}
    for forward in forwards:
        for reduced, way, axes in present(out, forward):
            again = generate_of_ranks(reduced, axes, limit=limit, way=way)
            texts[out / again.file] = again.text
    texts = with_runtime(texts)
    if options.target in kernels:
        texts |= kernel_files(out, results, kernels[options.target])
    return texts


def _cache(options: argparse.Namespace, target: str = TORCH) -> Cache:
    cache = Cache(None if options.no_cache else cache_folder(), target)
    if cache.distrusted:
        say(cache.distrusted)
    return cache


def _in_parts(options: argparse.Namespace) -> int:
    """Write the modules for the ranks of groups, or those that compute in chunks."""
    way, axes = _way_of(options)
    if not options.names:
        raise QuestionError("which forward is split?", f"name it before --{way}")
    if options.target != TORCH and way != CHUNK:
        raise QuestionError(
            f"--{SHARD} writes torch code alone, beside _runtime.py", "leave --target out"
        )
    language = None if options.target == TORCH else kernels[options.target]
    if language is not None:
        language.ready()
    forwards, limit = _forwards(options), seconds_of(options.limit)
    forwards = [reduced_forward(forward, options.reduction) for forward in forwards]
    ways = [TILES, CHUNK] if options.target == "triton" else [way]
    if not options.check:
        paths = [options.out / file_of_ranks(f, axes, each) for f in forwards for each in ways]
        _refuse(paths, options)
    found = [_in_one_way(forward, axes, ways, limit, language) for forward in forwards]
    texts = with_runtime({options.out / each.file: each.text for each in found})
    if language is not None and any(each.kernels for each in found):
        texts |= kernel_files(options.out, found, language)
    return _ended(options, texts, found, table_of_ranks(found, way))


def _way_of(options: argparse.Namespace) -> tuple[str, list[str]]:
    """The way in which parts are computed, and its axes."""
    if options.ring and (options.chunk or not options.shard):
        raise QuestionError(
            "--ring passes parts of an axis on between the ranks that split another one",
            "name that one with --shard; the function itself takes chunk",
        )
    if not options.ring and not (options.shard and options.chunk):
        return (SHARD, options.shard) if options.shard else (CHUNK, options.chunk)
    way, axes = RING if options.ring else BOTH, [*options.shard, *options.ring, *options.chunk]
    if len(axes) > MOST_AXES[way]:
        raise QuestionError(
            f"one axis is split over ranks and one {'in a ring' if options.ring else 'in chunks'}",
            "name one with each option",
        )
    return way, axes


def _in_one_way(
    forward: type[Forward],
    axes: Sequence[str],
    ways: Sequence[str],
    limit: float | None,
    language: KernelLanguage | None,
) -> OfRanks:
    """The module in the first of several ways that the function has."""
    *others, last = ways
    for way in others:
        try:
            return generate_of_ranks(forward, axes, limit=limit, way=way)
        except QuestionError as refused:
            say(f"note: no {way}: {refused.problem}")
    return generate_of_ranks(forward, axes, limit=limit, way=last, kernels=language)


def _chains(options: argparse.Namespace) -> int:
    """Write the files of statements and chains, or say which are out of date."""
    refuse_reduction(options)
    if options.target != TORCH or options.shard or options.chunk or options.ring:
        raise QuestionError(
            "--chain writes plain torch for all of every axis",
            "leave --target, --shard, --ring and --chunk out",
        )
    forwards, limit = _forwards(options), seconds_of(options.limit)
    folder = options.out / FOLDER
    paths = [folder / f"{forward.definition.snake}.py" for forward in forwards]
    if not options.check:
        _refuse(paths, options)
    made, console = {}, _console(stderr=True)
    tell = in_a_bar if console.is_terminal else in_lines
    with tell(len(forwards), console) as (working, finished):
        for forward, path in zip(forwards, paths, strict=True):
            doing = partial(working, path.stem)
            made[path] = kept_chain(forward, doing, limit, not options.no_cache)
            finished(path.stem)
    for note in filter(None, (chain.cut_short for chain in made.values())):
        say(f"note: {note}")
    texts = {path: sealed(chain.text) for path, chain in made.items()}
    if options.check:
        return _said(outdated(texts))
    written = write_modules(texts, files_read(), options.force)
    files = [path.name for path in paths if options.names or path in written]
    _print(f"written to {folder}: {', '.join(files)}" if files else f"{folder} is up to date")
    return DONE


def _ended(
    options: argparse.Namespace,
    texts: dict[Path, str],
    found: Sequence[Emitted | OfRanks],
    shown: Table | str,
) -> int:
    """Write the modules, or list outdated ones; either way show the table. Of all that exist, only
    those written are named.
    """
    if options.check:
        _print(shown)
        return _said(outdated(texts))
    replaced = from_other_files(texts)
    written = write_modules(texts, files_read(), options.force)
    _print(shown)
    for sentence in replaced:
        say(f"note: {sentence}")
    files = [_said_of(f) for f in found if options.names or options.out / f.file in written]
    said = f"written to {options.out}: {', '.join(files)}" if files else ""
    _print(said or f"{options.out} is up to date")
    if files and any(each.kernels for each in found):
        folder = options.out / kernels[options.target].folder
        _print(
            f"kernels for the {DEVICES[options.target]} in {folder}, used after "
            f"{options.out.name}.use({options.target!r})"
        )
    if any(path.name == RUNTIME for path in texts) and not (options.out / "__init__.py").exists():
        say(
            f"note: {options.out} has no __init__.py, and its modules import _runtime from their "
            "own package: import them from the folder above"
        )
    return DONE


def _said_of(found: Emitted | OfRanks) -> str:
    """The file, with its function where that has another name than the forward."""
    own = f" (function {Path(found.file).stem})" if isinstance(found, OfRanks) else ""
    return found.file + own


def _print(shown: Table | str) -> None:
    if shown:
        _console().print(shown, soft_wrap=isinstance(shown, str))


def write_report(options: argparse.Namespace) -> int:
    """Write the table of quality, or say that it is out of date."""
    path, limit = options.out / FILE, seconds_of(options.limit)
    forwards = _forwards(options)
    if not options.check:
        _refuse([path], options)
    results = _emitted(forwards, _cache(options), limit)
    text = report(results, current(path), options.out / kernels["triton"].folder)
    if options.check:
        return _said(outdated({path: text}))
    written = write_modules({path: text}, files_read(), options.force)
    _print(f"written to {path}" if written else f"{path} is up to date")
    return DONE


def _refuse(paths: Sequence[Path], options: argparse.Namespace) -> None:
    """Raise before the derivation what would be raised after it."""
    refuse(paths, REMEDY, files_read(), options.force)


def _said(outdated: Sequence[Path]) -> int:
    if outdated:
        names = ", ".join(map(str, outdated))
        _console(stderr=True).print(
            f"out of date: {names}; run the same command without --check", style="bold red"
        )
    return WRONG if outdated else DONE


def _forwards(options: argparse.Namespace) -> list[type[Forward]]:
    """The requested forwards, each once; without a name all of ``derive/math``."""
    names, out = options.names, options.out
    if os.path.lexists(out) and not out.is_dir():
        raise QuestionError(f"{out} is not a folder", REMEDY)
    forwards = [f for name in names for f in forwards_from(name)] if names else list_forwards()
    forwards = list({(f.definition.place.file, f.__name__): f for f in forwards}.values())
    _refuse_same_file(forwards)
    return forwards


def _refuse_same_file(forwards) -> None:
    seen = {}
    for forward in forwards:
        other = seen.setdefault(forward.definition.snake, forward)
        if other is not forward:
            raise QuestionError(
                f"{other.__name__} and {forward.__name__} would be written to the same file, "
                f"{forward.definition.snake}.py",
                "rename one of the two classes",
                forward.definition.place,
            )


def _emitted(
    forwards: Sequence[type[Forward]],
    cache: Cache,
    limit: float | None,
    chained: Container[str] = (),
) -> list[Emitted]:
    """Derive all of them, with a progress bar or lines; report what the time limit left undone."""
    console = _console(stderr=True)
    tell = in_a_bar if console.is_terminal else in_lines
    with tell(len(forwards), console) as (working, finished):
        results = emit_all(forwards, cache, working, finished, limit=limit, chained=chained)
    for result in results:
        for note in filter(None, (result.cut_short, result.slow)):
            say(f"note: {note}")
    return results


def _console(stderr: bool = False) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    terminal = stream is not None and stream.isatty()
    return _Console(
        stderr=stderr, width=None if terminal else PLAIN_WIDTH, highlight=False, markup=False
    )


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """The reader has closed the pipe: left to `guarded`, and not the end of the program."""
        raise BrokenPipeError
