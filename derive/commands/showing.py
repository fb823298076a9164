"""Shared by ``show`` and ``site``: a derivation in the terminal, as a document, or as a page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection

from rich.console import Console
from rich.progress import track

from derive.commands.order import order_of
from derive.commands.reduction import asked_forward
from derive.derivation import derive
from derive.gradient.orders import FIRST, THIRD
from derive.gradient.orders.second import second_order
from derive.gradient.orders.sections import document_of_second, document_of_third
from derive.gradient.orders.third import third_order
from derive.language.errors import QuestionError, UndecidedError
from derive.language.nearest import did_you_mean
from derive.language.notation.forward import Forward
from derive.language.notation.library import files_read, forwards_from, list_forwards
from derive.proof.proving.proved import Proved
from derive.running.command import DONE, WRONG, say
from derive.running.limits import Doing, Stage, limited, seconds_of
from derive.running.progress import told
from derive.running.writing import MARK, refuse, write_all
from derive.show.document import Document, ProgramLines
from derive.show.formats import FORMATS
from derive.show.sections import CHAIN, CODE, FORWARD, TITLES, document_of
from derive.show.terminal import rendered

PLAIN_WIDTH = 160  # columns, if the output is not a terminal
MOST_ENTRIES = 6  # of the first axis, written out: more are hard to compare
FILE_REMEDY = "choose another file with --output"

# Returns the code of a forward, if it is known.
LinesOf = Callable[[type[Forward], Proved], ProgramLines | None]


def site(options: argparse.Namespace) -> int:
    """Write the pages of the selected forwards."""
    from derive.commands.site import SiteLinks, write_site  # imports Jinja

    names, folder = options.names, options.output
    if folder.exists() and not folder.is_dir():
        raise QuestionError(f"{folder} is not a folder", "choose another one with --output")
    forwards = [f for name in names for f in forwards_from(name)] if names else list_forwards()
    console = Console(stderr=True)

    def progress(forwards):
        return track(forwards, "pages", console=console, disable=not console.is_terminal)

    if options.docs is not None and not options.docs.is_dir():
        raise QuestionError(f"{options.docs} is not a folder", "name the documentation folder")
    beside = SiteLinks(options.playground, options.lessons, options.docs)
    files = write_site(folder, forwards, progress, options.force, beside)
    names = ", ".join(file.relative_to(folder).as_posix() for file in files)
    sys.stdout.write(f"written to {folder}: {names}\n")
    return DONE


def show(options: argparse.Namespace, lines_of: LinesOf) -> int:
    """Print or write the requested derivation."""
    if not 1 <= options.small_batch <= MOST_ENTRIES:
        raise QuestionError(
            f"--small-batch {options.small_batch}: it must be between 1 and {MOST_ENTRIES}",
            "leave it out for 3",
        )
    seconds_of(options.limit)
    if order_of(options, THIRD) == THIRD and options.of is not None:
        raise QuestionError(
            f"--of {options.of}: a third order is shown as a whole",
            "leave it out, or take --order 2",
        )
    forward = asked_forward(options)
    if options.output is not None:
        refuse([options.output], FILE_REMEDY, files_read(), options.force)
    document, code = _found(forward, options, lines_of)
    text = None if options.format == "text" else FORMATS[options.format](document)
    if options.output is not None:
        plain = text if text is not None else f"{MARK}\n\n{_plain(document)}"
        write_all({options.output: plain}, FILE_REMEDY, files_read(), options.force)
    elif text is not None:
        _in_utf8()  # the encoding that documents declare
        sys.stdout.write(text)
    elif sys.stdout.isatty():
        Console(highlight=False, markup=False, emoji=False).print(rendered(document))
    else:
        sys.stdout.write(_plain(document))
    if code is not None and code.refused:
        say(f"unproved: {code.refused}")
        return WRONG
    return DONE


def _found(
    forward: type[Forward], options: argparse.Namespace, lines_of: LinesOf
) -> tuple[Document, ProgramLines | None]:
    """The derivation as a document, and the lines of code in it."""
    limit, titles = seconds_of(options.limit), (FORWARD, CHAIN) if options.chain else TITLES
    name = forward.definition.snake
    with told() as tell:
        doing = Doing(lambda what: tell(f"{name}: {what}"))
        _check_input(forward, options.of)
        proved = derive(forward, doing, limit)
        if proved.cut_short:
            say(f"note: {proved.cut_short}")
        again = _again(proved, options, doing, limit, titles)
        with limited(limit), Stage():
            if again is not None:
                return again(), None
            doing("comparing the code with autograd")
            code = lines_of(forward, proved) if CODE in titles else None
            doing("looking for what else there is to show")
            return document_of(proved, options.of, code, options.small_batch, titles), code
    raise UndecidedError(
        f"{forward.definition.name}: the gradients are proved ({proved.summary}), but the time "
        f"limit was reached before they were shown\n    being done: {doing}\n    give a "
        "longer limit"
    )


def _again(
    proved: Proved,
    options: argparse.Namespace,
    doing: Doing,
    limit: float | None,
    titles: Collection[str],
) -> Callable[[], Document] | None:
    """The document of a higher order, if requested; else None."""
    order = order_of(options, THIRD)
    if order == FIRST:
        return None
    second = second_order(proved, doing, limit)
    programs = [second.second, second.pullback]
    third = third_order(second, doing, limit) if order == THIRD else None
    programs += [again.program for again in third.programs] if third is not None else []
    for program in programs:
        if program.proved.cut_short:
            say(f"note: {program.proved.cut_short}")
    if third is not None:
        return lambda: document_of_third(third, options.small_batch, titles)
    return lambda: document_of_second(second, options.of, options.small_batch, titles)


def _in_utf8() -> None:
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")


def _check_input(forward: type[Forward], of: str | None) -> None:
    names = [t.name for t in forward.definition.differentiable]
    if of is not None and of not in names:
        raise QuestionError(
            f"{of} is not a differentiable input of {forward.definition.name}",
            did_you_mean(of, names, f"--of takes one of {', '.join(names)}"),
        )


def _plain(document: Document) -> str:
    """The text without colours, and without trailing spaces."""
    plain = {"highlight": False, "markup": False, "emoji": False, "color_system": None}
    console = Console(width=PLAIN_WIDTH, **plain)
    with console.capture() as captured:
        console.print(rendered(document))
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())
