"""``python -m derive``: the verbs that need no code generation, and ``list``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from derive.commands.certificate import certificate_command
from derive.commands.check import check_command
from derive.commands.show import show_command, site_command
from derive.language.errors import QuestionError
from derive.language.nearest import did_you_mean
from derive.language.notation.gallery import gallery
from derive.running.command import DONE, guarded
from derive.running.parser import Command, Parser

EVERY = "gradform list alone names them all"


def list_parser(program: str) -> Parser:
    """The parser of ``list``."""
    parser = Parser(program, list_command.__doc__)
    parser.add_argument(
        "word",
        nargs="?",
        default="",
        metavar="WORD",
        help="only those with this word in their name or description",
    )
    return parser


def list_command(
    arguments: Sequence[str] | None = None, program: str = "python -m derive list"
) -> int:
    """List the forwards of the gallery with arguments, outputs and descriptions."""
    word = list_parser(program).parse_args(arguments).word
    return guarded(lambda: _list(word))


def _list(word: str) -> int:
    """List the forwards from their source files, without running them."""
    known = gallery()
    asked = word.lower()
    found = [f for f in known if asked in f"{f.function} {f.name} {f.about}".lower()]
    if word and not found:
        names = [each.function for each in known]
        raise QuestionError(
            f"no forward of the gallery matches {word!r}", did_you_mean(word, names, EVERY)
        )
    width = max((len(f.function) for f in found), default=0)
    for f in found:
        print(f"{f.function:{width}}  {', '.join(f.takes)} -> {f.returns}   {f.about}")
    return DONE


VERBS: dict[str, Command] = {
    "list": list_command,
    "show": show_command,
    "check": check_command,
    "certificate": certificate_command,
    "site": site_command,
}
ABOUT = f"""\
Derivations, without code: {", ".join(VERBS)}.
{"python -m derive VERB --help"} says what each takes.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """``python -m derive``."""
    program = "python -m derive"
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments and arguments[0] in VERBS:
        return VERBS[arguments[0]](arguments[1:], f"{program} {arguments[0]}")
    parser = Parser(program, ABOUT)
    parser.add_argument("verb", metavar="VERB", help=", ".join(VERBS))
    verb = parser.parse_args(arguments[:1]).verb
    known = ", ".join(VERBS)
    parser.error(f"there is no verb {verb}; {did_you_mean(verb, VERBS, f'there are {known}')}")
