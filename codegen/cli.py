"""The commands: ``python -m codegen`` and the console script ``gradform``.

Exit status: 0 done; 1 unproved or out of date; 2 the question itself was not understood.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from codegen.backwards.command import asks_for_function, check_function_command
from codegen.cache import Cache, cache_folder
from codegen.driver import file_of
from codegen.emitting import emit_all
from codegen.importing.command import import_command
from codegen.passed import lines_of_code
from codegen.progress import in_a_bar, in_lines
from codegen.quality import Emitted
from codegen.ranks import OfRanks, file_of_ranks, generate_of_ranks, present
from codegen.report import FILE, report
from codegen.sharding import CHUNK, SHARD
from codegen.tables import table, table_of_ranks
from codegen.targets import kernels, targets
from codegen.trace import trace_command
from codegen.writing import REMEDY, kernel_files, outdated, with_runtime, write_modules
from derive.commands.check import check_command
from derive.commands.main import list_command
from derive.commands.order import add_order, order_of
from derive.commands.reduction import add_reduction, refuse_reduction
from derive.commands.show import show_command, site_command
from derive.language.errors import QuestionError
from derive.notation.forward import Forward, reduced_forward
from derive.notation.library import files_read, forwards_from, list_forwards
from derive.orders import SECOND, THIRD
from derive.running.command import add_force, add_limit, guarded, say
from derive.running.limits import seconds_of
from derive.running.writing import current, refuse

DONE, WRONG = 0, 1
TORCH = "torch"
PLAIN_WIDTH = 160  # where there is no terminal: a line of a report is not broken


def main(arguments: Sequence[str] | None = None, program: str = "python -m codegen") -> int:
    """Generate code for forwards, or all of ``derive/math``; ``report`` first reports on them."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments[:1] == ["report"]:
        return report_command(arguments[1:], f"{program} report")
    parser = argparse.ArgumentParser(
        prog=program,
        description="Derive, prove and write out backward passes as vectorized torch code. "
        f"A table of their quality: {program} report.",
    )
    add_order(parser, "write closed forms of", THIRD, default=SECOND)
    parser.add_argument(
        "--target",
        default=TORCH,
        metavar="LANGUAGE",
        help=f"{TORCH}: modules of torch alone; cpp: kernels beside them as well, which a C++ "
        f"compiler builds; {TORCH} without it",
    )
    parser.add_argument(
        "--shard",
        action="append",
        default=[],
        metavar="AXIS",
        help="write the module for the ranks of a group, over which the axis is split; a second "
        "time for a second axis, over a second group",
    )
    parser.add_argument(
        "--chunk",
        action="append",
        default=[],
        metavar="AXIS",
        help="write the module that computes in chunks of an axis, of which one is held at a time",
    )
    parser.add_argument(
        "--standalone",
        action="store_true",
        help="write files that need torch alone, each with all of _runtime.py in it",
    )
    add_reduction(parser)
    options = _options(parser, arguments)
    return guarded(lambda: _generate(options, order_of(options, THIRD)))


def _target(options: argparse.Namespace) -> str:
    """Raises `QuestionError` for one that there is not."""
    if options.target not in targets | kernels:
        known = ", ".join(targets | kernels)
        raise QuestionError(f"there is no target {options.target!r}", f"there are {known}")
    return options.target


def report_command(arguments: Sequence[str], program: str = "gradform report") -> int:
    """Write a table of quality: closed forms, costs, what was proved, errors."""
    parser = argparse.ArgumentParser(prog=program, description=report_command.__doc__)
    options = _options(parser, arguments)
    return guarded(lambda: _report(options, _cache(options)))


def _options(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """What generating and reporting have in common: which forwards, where, and how."""
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME or FILE",
        help="the name of a forward, a file of your own, or file.py:Forward; "
        "without any: all of derive/math",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("generated"), help="the folder to write to (generated)"
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 where a file is out of date"
    )
    parser.add_argument(
        "--no-cache", action="store_true", help="derive and prove all anew, and keep nothing"
    )
    add_limit(parser, "to derive and prove each forward")
    add_force(parser)
    return parser.parse_args(arguments)


def _cache(options: argparse.Namespace, order: int = SECOND, target: str = TORCH) -> Cache:
    cache = Cache(None if options.no_cache else cache_folder(), order, target)
    if cache.distrusted:
        say(cache.distrusted)
    return cache


def gradform(arguments: Sequence[str] | None = None) -> int:
    """The console script: ``gradform`` alone regenerates; it has the verbs list, show,
    check, report, site, trace, import.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    verbs: dict[str, Callable[[Sequence[str]], int]] = {
        "list": lambda rest: list_command(rest, "gradform list"),
        "site": lambda rest: site_command(rest, "gradform site"),
        "show": lambda rest: show_command(rest, "gradform show", lines_of_code),
        "check": _check,
        "report": report_command,
        "trace": trace_command,
        "import": lambda rest: import_command(rest, "gradform import", main),
    }
    if arguments and arguments[0] in verbs:
        return verbs[arguments[0]](arguments[1:])
    return main(arguments, "gradform")


def _check(arguments: Sequence[str]) -> int:
    """A formula; with --axes a Function of torch's."""
    if asks_for_function(arguments):
        return check_function_command(arguments, "gradform check")
    return check_command(arguments, "gradform check")


def _generate(options: argparse.Namespace, order: int) -> int:
    if options.shard or options.chunk:
        return _in_parts(options, order)
    refuse_reduction(options)
    cache, limit = _cache(options, order, _target(options)), seconds_of(options.limit)
    if options.standalone and cache.target in kernels:
        raise QuestionError("kernels stand beside _runtime.py", "leave --standalone out")
    out, forwards = options.out, _forwards(options)
    if not options.check:
        _refuse([out / file_of(forward) for forward in forwards], options)
    results = _emitted(forwards, cache, limit)
    texts = {out / result.file: result.text for result in results}
    for forward in forwards:
        for reduced, way, axes in present(out, forward):
            again = generate_of_ranks(reduced, axes, limit=limit, way=way)
            texts[out / again.file] = again.text
    texts = with_runtime(texts, options.standalone)
    if cache.target in kernels:
        texts |= kernel_files(out, results, kernels[cache.target])
    return _ended(options, texts, results, table(results))


def _in_parts(options: argparse.Namespace, order: int) -> int:
    """Write the modules for the ranks of groups, or those that compute in chunks."""
    way, axes = (SHARD, options.shard) if options.shard else (CHUNK, options.chunk)
    if options.shard and options.chunk:
        raise QuestionError("--shard and --chunk are two modules", "ask for one after the other")
    if not options.names:
        raise QuestionError("which forward is split?", f"name it before --{way}")
    if _target(options) != TORCH or order != SECOND or options.standalone:
        raise QuestionError(
            f"--{way} writes torch code of the first order alone, beside _runtime.py",
            "leave --target, --order and --standalone out",
        )
    forwards, limit = _forwards(options), seconds_of(options.limit)
    forwards = [reduced_forward(forward, options.reduction) for forward in forwards]
    if not options.check:
        _refuse([options.out / file_of_ranks(f, axes, way) for f in forwards], options)
    found = [generate_of_ranks(forward, axes, limit=limit, way=way) for forward in forwards]
    texts = with_runtime({options.out / each.file: each.text for each in found})
    return _ended(options, texts, found, table_of_ranks(found))


def _ended(options, texts: dict[Path, str], found: Sequence[Emitted | OfRanks], shown) -> int:
    """Write the modules, or say which are out of date; either way show the table."""
    if options.check:
        _console().print(shown)
        return _said(outdated(texts))
    write_modules(texts, files_read(), options.force)
    _console().print(shown)
    files = ", ".join(each.file for each in found)
    _console().print(f"written to {options.out}: {files}", soft_wrap=True)
    if not (options.standalone or (options.out / "__init__.py").exists()):
        say(
            f"note: {options.out} has no __init__.py, and its modules import _runtime from their "
            "own package: import them from the folder above, or write them with --standalone"
        )
    return DONE


def _report(options: argparse.Namespace, cache: Cache) -> int:
    path, limit = options.out / FILE, seconds_of(options.limit)
    forwards = _forwards(options)
    if not options.check:
        _refuse([path], options)
    results = _emitted(forwards, cache, limit)
    text = report(results, current(path))
    if options.check:
        return _said(outdated({path: text}))
    write_modules({path: text}, files_read(), options.force)
    _console().print(f"written to {path}", soft_wrap=True)
    return DONE


def _refuse(paths: Sequence[Path], options: argparse.Namespace) -> None:
    """What would be refused after the derivation is refused before it."""
    refuse(paths, REMEDY, files_read(), options.force)


def _said(outdated: Sequence[Path]) -> int:
    if outdated:
        names = ", ".join(map(str, outdated))
        _console(stderr=True).print(
            f"out of date: {names}; run the same command without --check", style="bold red"
        )
    return WRONG if outdated else DONE


def _forwards(options: argparse.Namespace) -> list[type[Forward]]:
    """Those that are meant, each once; all of ``derive/math`` without a name."""
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


def _emitted(forwards: Sequence[type[Forward]], cache: Cache, limit: float | None) -> list[Emitted]:
    """All of them, with a bar, or a line from time to time; what the limit left undone is said."""
    console = _console(stderr=True)
    tell = in_a_bar if console.is_terminal else in_lines
    with tell(len(forwards), console) as (working, finished):
        results = emit_all(forwards, cache, working, finished, limit=limit)
    for result in results:
        if result.cut_short:
            say(f"note: {result.cut_short}")
    return results


def _console(stderr: bool = False) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    terminal = stream is not None and stream.isatty()
    return _Console(
        stderr=stderr, width=None if terminal else PLAIN_WIDTH, highlight=False, markup=False
    )


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Whoever reads has read enough: for `guarded` to settle, not the end of the program."""
        raise BrokenPipeError
