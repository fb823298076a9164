"""The verbs of ``gradform``: their descriptions, options and implementations.

To add one: its command and its parser in a module that imports neither SymPy nor torch, and an
entry here. Help, completion and the suggestions for a mistyped word follow from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codegen.backwards.command import (
    asks_for_function,
    check_function_command,
    check_function_parser,
)
from codegen.commands.completion import candidates, completion_command, completion_parser
from codegen.commands.diff import diff_command, diff_parser
from codegen.commands.generate import (
    generate_command,
    generate_parser,
    report_command,
    report_parser,
)
from codegen.commands.new import new_command, new_parser
from codegen.commands.trace import trace_command, trace_parser
from codegen.commands.watch import watch_command, watch_parser
from codegen.importing.command import import_command, import_parser
from derive.commands.certificate import certificate_command, certificate_parser
from derive.commands.check import check_command, check_parser
from derive.commands.main import list_command, list_parser
from derive.commands.show import show_command, show_parser, site_command, site_parser
from derive.running.parser import Command, Parsing


@dataclass(frozen=True)
class Verb:
    """``about`` is its line in the help. ``parsers`` build its options: several, if they depend on
    other options.
    """

    about: str
    command: Command
    parsers: tuple[Parsing, ...]

    def options(self, program: str) -> list[str]:
        """All of its options."""
        found = (option for parser in self.parsers for option in parser(program).options)
        return list(dict.fromkeys(found))


def _show(arguments: Sequence[str], program: str) -> int:
    """``show``, with the generated lines of code."""

    def lines_of(forward, proved):
        from codegen.driver.passed import lines_of_code

        return lines_of_code(forward, proved)

    return show_command(arguments, program, lines_of)


def _check(arguments: Sequence[str], program: str) -> int:
    """``check`` a formula; with --axes a torch Function."""
    if asks_for_function(arguments):
        return check_function_command(arguments, program)
    return check_command(arguments, program)


def _import(arguments: Sequence[str], program: str) -> int:
    """``import``; with --emit it also generates."""
    return import_command(arguments, program, lambda names: generate_command(names, program))


def _completion(arguments: Sequence[str], program: str) -> int:
    about = {name: verb.about for name, verb in VERBS.items()}
    return completion_command(
        arguments,
        program,
        lambda words: candidates(words, about, lambda verb: VERBS[verb or GENERATE].parsers),
    )


GENERATE = "generate"
VERBS: dict[str, Verb] = {
    GENERATE: Verb(
        "derive, prove and write torch code; the verb may be left out",
        generate_command,
        (generate_parser,),
    ),
    "new": Verb("begin a forward of your own", new_command, (new_parser,)),
    "watch": Verb("derive again on every save; print what changed", watch_command, (watch_parser,)),
    "show": Verb("show a derivation, step by step", _show, (show_parser,)),
    "check": Verb(
        "prove or refute a gradient that you wrote", _check, (check_parser, check_function_parser)
    ),
    "certificate": Verb(
        "a proof of the gradients that Coq checks", certificate_command, (certificate_parser,)
    ),
    "diff": Verb(
        "what changed since a git revision, or since it was written",
        diff_command,
        (diff_parser,),
    ),
    "import": Verb("turn torch code into a forward", _import, (import_parser,)),
    "list": Verb("the forwards of the gallery", list_command, (list_parser,)),
    "site": Verb("write a page for every forward", site_command, (site_parser,)),
    "report": Verb("write the table of costs and errors", report_command, (report_parser,)),
    "trace": Verb("a forward's way through gradform itself", trace_command, (trace_parser,)),
    "completion": Verb("complete with Tab in your shell", _completion, (completion_parser,)),
}
