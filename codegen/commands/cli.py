"""The commands: the console script ``gradform``, and ``python -m codegen``.

Exit status: 0 done; 1 unproved or out of date; 2 the command was not understood.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from codegen.commands.generate import generate_command, report_command
from codegen.commands.verbs import GENERATE, VERBS
from derive.language.errors import QuestionError
from derive.language.nearest import nearest
from derive.language.notation.gallery import gallery_names, path_in
from derive.running.command import DONE, guarded
from derive.running.parser import STATUS
from derive.version import VERSION

PROGRAM = "gradform"
HELP, HELPS, VERSIONS = "help", ("-h", "--help"), ("-V", "--version")
ABOUT = """\
usage: gradform [COMMAND] [NAME or FILE ...] [OPTIONS]

Write the forward; gradform derives the backward pass, proves it, and writes it as torch code.

commands:
{verbs}

examples:
  gradform new my_norm           begin a forward of your own, in my_norm.py
  gradform my_norm.py            derive its backward pass, prove it, write it to generated/
  gradform show linear           see how a gradient is derived, step by step

gradform COMMAND --help lists the options of a command, gradform --version says which one this is.
exit status: {status}
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """``python -m codegen``: generate, or ``report``."""
    program = "python -m codegen"
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments[:1] == ["report"]:
        return report_command(arguments[1:], f"{program} report")
    return generate_command(arguments, program)


def gradform(arguments: Sequence[str] | None = None) -> int:
    """The console script: runs a verb; names alone are generated, no words print help."""
    words = list(sys.argv[1:] if arguments is None else arguments) or [HELP]
    first, *rest = words
    asks_help = first == HELP or first in HELPS
    if asks_help and (not rest or rest[0] == HELP):
        return guarded(lambda: _print(help_text()))
    if asks_help:
        return guarded(lambda: _verb_of(rest[0])) or gradform([rest[0], HELPS[-1]])
    if first in VERSIONS:
        return guarded(lambda: _print(f"{PROGRAM} {VERSION}\n"))
    if first in VERBS:
        return VERBS[first].command(rest, f"{PROGRAM} {first}")
    generate = VERBS[GENERATE].command
    return guarded(lambda: _verb_meant(first)) or generate(words, f"{PROGRAM} {GENERATE}")


def help_text() -> str:
    """All verbs, one line each."""
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {name:{width}}   {verb.about}" for name, verb in VERBS.items())
    return ABOUT.format(verbs=verbs, status=STATUS)


def _print(text: str) -> int:
    sys.stdout.write(text)
    return DONE


def _verb_of(word: str) -> int:
    """Raise `QuestionError` for an unknown verb."""
    if word not in VERBS:
        raise _no_verb(word, nearest(word, VERBS))
    return DONE


def _verb_meant(word: str) -> int:
    """Raise `QuestionError` for a word that is more like a verb than like any forward."""
    if word.startswith("-") or path_in(word) or Path(word).exists():
        return DONE
    names = gallery_names()
    near = nearest(word, [*VERBS, *names])
    if word not in names and near in VERBS:
        raise _no_verb(word, near)
    return DONE


def _no_verb(word: str, near: str | None) -> QuestionError:
    meant = f"did you mean {PROGRAM} {near}? " if near else ""
    return QuestionError(
        f"{PROGRAM} has no command {word!r}", f"{meant}{PROGRAM} --help names them all"
    )
