"""``python -m derive``: the verbs that need no code generation."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from derive.notation.definition import IGNORE_INDEX, REDUCTION
from derive.notation.library import list_forwards
from derive.running.command import DONE, guarded

VERBS = {
    "list": "list the forwards of derive/math",
    "show": "show how a closed form comes about",
    "check": "prove or refute a formula for a gradient",
    "site": "write a page for every forward",
}


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
        names += [t.name for t, _ in definition.scalars]
        names += [IGNORE_INDEX] * bool(definition.ignoring)
        names += [REDUCTION] * bool(definition.reductions)
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
