"""``show``: a derivation in the terminal, or as a document."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from derive.command import DONE, guarded
from derive.derivation import derive
from derive.errors import QuestionError
from derive.library import forwards_from, list_forwards
from derive.presentation.document import Document
from derive.presentation.formats import FORMATS
from derive.presentation.sections import CHAIN, CODE, FORWARD, TITLES, document_of
from derive.presentation.terminal import rendered
from derive.proof import Proved
from derive.writing import write_all

PLAIN_WIDTH = 160
MOST_ENTRIES = 6

Lines = Callable[[Proved], Mapping[str, str]]


def show_command(
    arguments: Sequence[str] | None = None,
    program: str = "python -m derive show",
    lines: Lines = lambda proved: {},
) -> int:
    """Show how the closed form comes about, step by step, from the record that was proved."""
    parser = argparse.ArgumentParser(prog=program, description=show_command.__doc__)
    parser.add_argument("name", metavar="NAME or FILE", help="a forward, or a file of your own")
    parser.add_argument("--of", metavar="INPUT", help="the gradient of this input alone")
    parser.add_argument("--chain", action="store_true", help="the forward and the chain alone")
    parser.add_argument(
        "--small-batch", type=int, default=3, metavar="N", help="entries of the first axis (3)"
    )
    parser.add_argument("--format", choices=("text", *FORMATS), default="text")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write to a file")
    options = parser.parse_args(arguments)
    return guarded(lambda: _show(options, lines))


def site_command(
    arguments: Sequence[str] | None = None, program: str = "python -m derive site"
) -> int:
    """Write a page for every forward of derive/math, and an index."""
    parser = argparse.ArgumentParser(prog=program, description=site_command.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME or FILE", help="others than all of them")
    parser.add_argument("--output", type=Path, default=Path("site"), metavar="DIR")
    options = parser.parse_args(arguments)
    return guarded(lambda: _site(options.names, options.output))


def _site(names: Sequence[str], folder: Path) -> int:
    if folder.exists() and not folder.is_dir():
        raise QuestionError(f"{folder} is not a folder", "choose another one with --output")
    from rich.progress import track

    from derive.presentation.site import write_site

    forwards = [f for name in names for f in forwards_from(name)] if names else list_forwards()
    console = Console(stderr=True)

    def progress(forwards):
        return track(forwards, "pages", console=console, disable=not console.is_terminal)

    files = write_site(folder, forwards, progress)
    sys.stdout.write(f"written to {folder}: {', '.join(file.name for file in files)}\n")
    return DONE


def _show(options: argparse.Namespace, lines: Lines) -> int:
    if not 1 <= options.small_batch <= MOST_ENTRIES:
        raise QuestionError(
            f"--small-batch {options.small_batch}: a person compares 1 to {MOST_ENTRIES} entries",
            "leave it out for 3",
        )
    proved = derive(options.name)
    _check_input(proved, options.of)
    titles = (FORWARD, CHAIN) if options.chain else TITLES
    code = lines(proved) if CODE in titles else {}
    document = document_of(proved, options.of, code, options.small_batch, titles)
    text = None if options.format == "text" else FORMATS[options.format](document)
    if options.output is not None:
        plain = text if text is not None else _plain(document)
        write_all({options.output: plain}, "choose another file with --output")
    elif text is not None:
        sys.stdout.write(text)
    elif sys.stdout.isatty():
        Console(highlight=False, markup=False, emoji=False).print(rendered(document))
    else:
        sys.stdout.write(_plain(document))
    return DONE


def _check_input(proved: Proved, of: str | None) -> None:
    names = [t.name for t in proved.definition.differentiable]
    if of is not None and of not in names:
        raise QuestionError(
            f"{of} is no differentiable input of {proved.definition.name}",
            f"--of takes one of {', '.join(names)}",
        )


def _plain(document: Document) -> str:
    """Without colours, and without spaces at the ends of lines."""
    plain = {"highlight": False, "markup": False, "emoji": False, "color_system": None}
    console = Console(width=PLAIN_WIDTH, **plain)
    with console.capture() as captured:
        console.print(rendered(document))
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())
