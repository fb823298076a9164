"""What the commands share: the exit status of every outcome, and the verbs that need no code
generation.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from derive.language.errors import NotationWarning, Place, QuestionError, UnprovedError
from derive.notation.definition import IGNORE_INDEX
from derive.notation.library import list_forwards
from derive.running.starting import flushed
from derive.running.writing import replaced

DONE, WRONG, NOT_UNDERSTOOD, INTERRUPTED = 0, 1, 2, 130

VERBS = {
    "list": "list the forwards of derive/math",
    "show": "show how a closed form comes about",
    "check": "prove or refute a formula for a gradient",
    "site": "write a page for every forward",
}


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
        say(
            f"error in gradform itself: {type(error).__name__}: {error}\n"
            f"    {_outcome(before)}; GRADFORM_TRACEBACK=1 shows where, for a report"
        )
        return WRONG


def _outcome(before: int) -> str:
    """Files are written all or none."""
    return "nothing was written" if replaced() == before else "all files were written"


def say(message: str) -> None:
    """One message on standard error, where there is one."""
    if sys.stderr is not None:
        sys.stderr.write(f"{message}\n")


def add_force(parser: argparse.ArgumentParser) -> None:
    """Of every command that writes files."""
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace files too that gradform did not write, and those that it reads",
    )


def add_limit(parser: argparse.ArgumentParser, what: str) -> None:
    """Of every command that derives."""
    parser.add_argument(
        "--limit",
        metavar="SECONDS",
        help=f"seconds of the clock on the wall {what}: when they are over, what was found and "
        "what was not decided is said (no limit)",
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


def list_command(
    arguments: Sequence[str] | None = None, program: str = "python -m derive list"
) -> int:
    """List the forwards of ``derive/math``."""
    argparse.ArgumentParser(prog=program, description=list_command.__doc__).parse_args(arguments)
    return guarded(_list)


def _list() -> int:
    forwards = list_forwards()
    width = max((len(f.definition.snake) for f in forwards), default=0)
    for forward in forwards:
        definition = forward.definition
        names = [t.name for t in definition.arguments]
        names += [name for name, _ in definition.size_arguments]
        names += [t.name for t, _ in definition.scalars] + [IGNORE_INDEX] * bool(
            definition.ignoring
        )
        about = " ".join(definition.doc.split("\n\n")[0].split()).partition(". ")[0].rstrip(".")
        print(f"{definition.snake:{width}}  {', '.join(names)} -> {definition.output}   {about}")
    return DONE


def main(arguments: Sequence[str] | None = None) -> int:
    """``python -m derive``."""
    parser = argparse.ArgumentParser(
        prog="python -m derive", description="Derivations, without code."
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, about in VERBS.items():
        verbs.add_parser(verb, help=about, add_help=False)
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    verb = parser.parse_args(arguments[:1]).verb  # what follows is for the command of the verb
    return _command(verb)(arguments[1:])


def _command(verb: str) -> Callable[[Sequence[str]], int]:
    """The command of a verb; its modules are imported when it is called for."""
    if verb == "check":
        from derive.commands.check import check_command

        return check_command
    from derive.commands.show import show_command, site_command

    return {"list": list_command, "show": show_command, "site": site_command}[verb]
