"""``gradform completion SHELL``: the script that makes a shell complete commands.

The shell asks gradform itself for the next words, so they are always the current verbs, options and
forwards.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence

from derive.language.notation.gallery import gallery
from derive.running.command import DONE, NAME, guarded
from derive.running.parser import OneOf, Parser, Parsing

BASH = """\
_gradform() {
    local IFS=$'\\n'
    COMPREPLY=($(gradform completion bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o bashdefault -o default -F _gradform gradform
"""
ZSH = """\
#compdef gradform
_gradform() {
    local -a found
    found=("${(@f)$(gradform completion zsh "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "$found" ]]; then _describe gradform found; else _files; fi
}
compdef _gradform gradform
"""
FISH = """\
function __gradform_words
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    gradform completion fish $before[2..-1] "$current" 2>/dev/null
end
complete -c gradform -a '(__gradform_words)'
"""
SHELLS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
BETWEEN = {"zsh": ":", "fish": "\t"}  # a word and its description; bash shows none
FIRST = {"--help": "show the commands", "--version": "show the version"}
EXAMPLES = """\
  source <(gradform completion bash)                              in ~/.bashrc
  source <(gradform completion zsh)                               in ~/.zshrc, after compinit
  gradform completion fish > ~/.config/fish/completions/gradform.fish
"""

# A word that may come next, and its description.
Word = tuple[str, str]


def completion_parser(program: str) -> Parser:
    """The parser of ``completion``."""
    parser = Parser(program, completion_command.__doc__, EXAMPLES)
    parser.add_argument(
        "shell", type=OneOf(SHELLS), metavar="SHELL", help=f"{', '.join(SHELLS)}: yours"
    )
    return parser


def completion_command(
    arguments: Sequence[str], program: str, known: Callable[[Sequence[str]], Iterator[Word]]
) -> int:
    """Print what makes your shell complete commands, forwards and options with Tab.

    With words behind the shell, what the shell asks: which words may stand in the last one's place.
    """
    shell, *words = arguments or [""]
    if shell not in SHELLS or not words:
        shell = completion_parser(program).parse_args(arguments).shell
        return guarded(lambda: _print(SHELLS[shell]))
    return guarded(lambda: _print("".join(_line(shell, word) for word in known(words))))


def candidates(
    words: Sequence[str], verbs: dict[str, str], parsing: Callable[[str], tuple[Parsing, ...]]
) -> Iterator[Word]:
    """Completions of the last of ``words``; none if it is a file.

    ``verbs`` maps each verb to its description; ``parsing`` gives the parsers of a verb, or those
    of a command without one.
    """
    *before, current = words
    verb = before[0] if before and before[0] in verbs else ""
    parsers = [parser("gradform") for parser in parsing(verb)]
    found = dict(_at(before[bool(verb) :], current, parsers))
    if not before:
        found |= FIRST if current.startswith("-") else verbs
    return ((word, about) for word, about in found.items() if word.startswith(current))


def _at(before: Sequence[str], current: str, parsers: Sequence[Parser]) -> Iterator[Word]:
    """Completions within a verb: values of an option, its options, or its arguments."""
    actions = [action for parser in parsers for action in parser._actions]
    asked = next((a for a in actions if before and before[-1] in a.option_strings), None)
    if asked is not None and asked.nargs != 0:
        yield from _of(asked)
    elif current.startswith("-"):
        for action in actions:
            yield from ((option, action.help or "") for option in action.option_strings)
    else:
        for action in actions:
            if not action.option_strings:
                yield from _of(action)


def _of(action: argparse.Action) -> Iterator[Word]:
    if isinstance(action.type, OneOf):
        yield from ((word, "") for word in action.type.words)
    elif action.metavar == NAME:
        yield from ((each.function, each.about) for each in gallery())


def _line(shell: str, word: Word) -> str:
    name, about = word
    return f"{name}{BETWEEN[shell]}{about}\n" if shell in BETWEEN and about else f"{name}\n"


def _print(text: str) -> int:
    sys.stdout.write(text)
    return DONE
