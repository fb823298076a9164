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

from derive.definition import IGNORE_INDEX
from derive.errors import NotationWarning, Place, QuestionError, UnprovedError
from derive.library import list_forwards

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
    try:
        with _said_once():
            status = command()
        if sys.stdout is not None:
            sys.stdout.flush()  # a reader who has gone is noticed here, not when Python ends
        return status
    except QuestionError as error:
        _say(f"error: {error}")
        return NOT_UNDERSTOOD
    except UnprovedError as error:
        _say(f"unproved: {error}")
        return WRONG
    except KeyboardInterrupt:
        _say("interrupted; nothing was written")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        if os.environ.get("GRADFORM_TRACEBACK"):
            raise
        _say(
            f"error in gradform itself: {type(error).__name__}: {error}\n"
            "    nothing was written; GRADFORM_TRACEBACK=1 shows where, for a report"
        )
        return WRONG


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
            _say(text)

    with warnings.catch_warnings():
        warnings.simplefilter("always", NotationWarning)
        shown_before, warnings.showwarning = warnings.showwarning, show
        yield


def _say(message: str) -> None:
    sys.stderr.write(f"{message}\n")


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
        from derive.checking.command import check_command

        return check_command
    from derive.presentation.command import show_command, site_command

    return {"list": list_command, "show": show_command, "site": site_command}[verb]
