"""Shared by the commands: the exit status of every outcome, and its message."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from derive.language.errors import NotationWarning, Place, QuestionError, UnprovedError
from derive.running.limits import LONGEST_ALONE
from derive.running.starting import flushed
from derive.running.writing import replaced

DONE, WRONG, NOT_UNDERSTOOD, INTERRUPTED = 0, 1, 2, 130  # exit statuses
NAME = "NAME or FILE"
ABOUT_NAME = "a forward of the gallery, a file of your own, or file.py:Class for one of several"


def guarded(command: Callable[[], int]) -> int:
    """Run ``command`` and turn every failure into one message on standard error and an exit
    status.
    """
    before = replaced()
    try:
        with _said_once():
            status = command()
        if not flushed():
            return DONE
        return status
    except QuestionError as error:
        say(f"error: {error}")
        return NOT_UNDERSTOOD
    except UnprovedError as error:
        say(f"unproved: {error}")
        return WRONG
    except KeyboardInterrupt as stop:
        words = getattr(stop, "words", "interrupted")
        say(f"{words}; {_outcome(before)}")
        return getattr(stop, "status", INTERRUPTED)
    except BrokenPipeError:
        flushed()
        return DONE
    except OSError as error:
        what = error.filename or "what is printed"
        say(f"error: {what} cannot be read or written: {error.strerror}; {_outcome(before)}")
        return WRONG
    except Exception as error:
        if os.environ.get("GRADFORM_TRACEBACK"):
            raise
        say(f"error in gradform itself: {type(error).__name__}: {error}\n    {_outcome(before)}")
        say(f"    {_for_a_report(error)}")
        return WRONG


def _for_a_report(error: Exception) -> str:
    """Save a report of an internal error, and say where it is."""
    from derive.running.failure import kept  # rarely needed, and slow to import

    file = kept(error, sys.argv)
    if file is None:
        return (
            "no report could be saved: please open an issue with what GRADFORM_TRACEBACK=1 prints"
        )
    return f"please open an issue and attach {file}: versions, command, your file, traceback"


def _outcome(before: int) -> str:
    """Say whether files were written: they are written all or none."""
    return "nothing was written" if replaced() == before else "all files were written"


def say(message: str) -> None:
    """One message on standard error, where there is one."""
    if sys.stderr is not None:
        sys.stderr.write(f"{message}\n")


def add_name(parser: argparse.ArgumentParser) -> None:
    """Add the name, for commands on one forward."""
    parser.add_argument("name", metavar=NAME, help=ABOUT_NAME)


def add_names(parser: argparse.ArgumentParser) -> None:
    """Add the names, for commands on several forwards, or on the whole gallery."""
    parser.add_argument(
        "names", nargs="*", metavar=NAME, help=f"{ABOUT_NAME}; without any, the whole gallery"
    )


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add ``--force``, for commands that write files."""
    parser.add_argument(
        "--force",
        action="store_true",
        help="also replace files that gradform did not write, and those that it reads",
    )


def add_limit(parser: argparse.ArgumentParser, what: str) -> None:
    """Add ``--limit``, for commands that derive."""
    parser.add_argument(
        "--limit",
        metavar="SECONDS",
        help=f"wall-clock seconds {what}: after them, what was found and what is undecided "
        f"is reported ({LONGEST_ALONE:g})",
    )


@contextmanager
def _said_once() -> Iterator[None]:
    """Warnings of the notation as one message on standard error, each once."""
    seen = set()

    def show(message, category, filename, lineno, file=None, line=None):
        if not issubclass(category, NotationWarning):
            return shown_before(message, category, filename, lineno, file, line)
        text = f"warning: {Place(filename, lineno).shown}: {message}"
        if text not in seen:
            seen.add(text)
            say(text)

    with warnings.catch_warnings():
        warnings.simplefilter("always", NotationWarning)
        shown_before, warnings.showwarning = warnings.showwarning, show
        yield
