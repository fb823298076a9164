"""The commands: ``python -m codegen`` and the console script ``gradform``.

Exit status: 0 done; 1 unproved or out of date; 2 the question itself was not understood.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table
from rich.text import Text

from codegen.build import program_of
from codegen.driver import Generated, generate
from codegen.targets import targets
from codegen.writing import write_modules
from derive.checking.command import check_command
from derive.command import guarded, list_command
from derive.errors import QuestionError
from derive.library import forwards_from, list_forwards
from derive.presentation.command import show_command, site_command
from derive.proof import Proved
from derive.text import formula
from derive.writing import current

DONE, WRONG = 0, 1
PLAIN_WIDTH = 160


def main(arguments: Sequence[str] | None = None, program: str = "python -m codegen") -> int:
    """Generate code for the named forwards, or for all of ``derive/math``."""
    parser = argparse.ArgumentParser(
        prog=program,
        description="Derive, prove and write out backward passes as vectorized torch code.",
    )
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
    options = parser.parse_args(arguments)
    return guarded(lambda: _run(options.names, options.out, options.check))


def gradform(arguments: Sequence[str] | None = None) -> int:
    """The console script: ``gradform`` alone regenerates; it has the verbs list, show,
    check, site."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    verbs: dict[str, Callable[[Sequence[str]], int]] = {
        "list": lambda rest: list_command(rest, "gradform list"),
        "site": lambda rest: site_command(rest, "gradform site"),
        "show": lambda rest: show_command(rest, "gradform show", _lines_of_code),
        "check": lambda rest: check_command(rest, "gradform check"),
    }
    if arguments and arguments[0] in verbs:
        return verbs[arguments[0]](arguments[1:])
    return main(arguments, "gradform")


def _lines_of_code(proved: Proved) -> dict[str, str]:
    """What the statements of a closed form became, to be shown beside their derivation."""
    program = program_of(proved, Path(proved.definition.place.file), "")
    return targets["torch"].backward_lines(program)


def _run(names: Sequence[str], out: Path, check: bool) -> int:
    if out.exists() and not out.is_dir():
        raise QuestionError(f"{out} is not a folder", "choose another one with --out")
    forwards = [f for name in names for f in forwards_from(name)] if names else list_forwards()
    forwards = list({(f.definition.place.file, f.__name__): f for f in forwards}.values())
    _refuse_same_file(forwards)
    results = _generated(forwards)
    texts = {out / result.file: result.text for result in results}
    if check:
        outdated = [path for path, text in texts.items() if _report_difference(path, text)]
        _console().print(_table(results))
        if outdated:
            names = ", ".join(map(str, outdated))
            _console(stderr=True).print(
                f"out of date: {names}; run the same command without --check", style="bold red"
            )
        return WRONG if outdated else DONE
    write_modules(texts)
    files = ", ".join(result.file for result in results)
    _console().print(_table(results))
    _console().print(f"written to {out}: {files}", soft_wrap=True)
    return DONE


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


def _generated(forwards) -> list[Generated]:
    results = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = _console(stderr=True)
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as bar:
        task = bar.add_task("", total=len(forwards))
        for forward in forwards:
            name = forward.definition.snake

            def progress(what: str, name: str = name) -> None:
                bar.update(task, description=f"{name}: {what}")

            results.append(generate(forward, progress=progress))
            bar.advance(task)
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


def _table(results: Sequence[Generated]) -> Table:
    table = Table(show_lines=True)
    for title, options in {
        "function": {"no_wrap": True},
        "closed form": {"overflow": "fold"},
        "proved": {},
        "difference to autograd": {"justify": "right"},
        "time": {"justify": "right", "no_wrap": True},
    }.items():
        table.add_column(title, **options)
    for result in results:
        form = result.proved.closed_form
        table.add_row(
            Text(result.program.name),
            Text("\n".join(f"{s.tensor} = {formula(s.expression)}" for s in form.statements)),
            Text(_proved(result)),
            Text(f"{result.largest_difference:.1e}"),
            Text(f"{result.seconds:.2f} s"),
        )
    return table


def _proved(result: Generated) -> str:
    batches = result.proved.gradients[0].sizes
    shown = ", ".join("x".join(str(n) for _, n in batch) for batch in batches if batch)
    small = f"exact for {shown}" if shown else "exact"
    return f"{small}; every size" if result.proved.every_size else f"{small}; only those"


def _report_difference(path: Path, text: str) -> bool:
    """Print how the file differs from what it should be; whether it does."""
    old = current(path)
    if old == text:
        return False
    lines = difflib.unified_diff(
        (old or "").splitlines(),
        text.splitlines(),
        f"{path} (as it is)",
        f"{path} (as it should be)",
        lineterm="",
    )
    sys.stdout.write("\n".join(lines) + "\n")
    return True
