"""The parser of command-line arguments: an error is one message on standard error, with a remedy,
and exit status 2.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NoReturn

from derive.language.errors import said
from derive.language.nearest import did_you_mean
from derive.running.command import NOT_UNDERSTOOD, say

REQUIRED = "the following arguments are required: "  # argparse's
STATUS = "0 done; 1 unproved or out of date; 2 the command was not understood; 130 Ctrl-C"


class Parser(argparse.ArgumentParser):
    """Parser of the command ``program``. ``examples`` are whole lines, each with a line end."""

    def __init__(self, program: str, about: str, examples: str = "", status: str = STATUS):
        shown = f"examples:\n{examples}" if examples else ""
        self.example = next(map(str.strip, examples.splitlines()), "").split("  ")[0]
        super().__init__(
            prog=program,
            description=about,
            epilog=f"{shown}exit status: {status}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def parse_args(self, args=None, namespace=None):
        return self._all_known(*self.parse_known_args(args, namespace))

    def parse_intermixed_args(self, args=None, namespace=None):
        return self._all_known(*self.parse_known_intermixed_args(args, namespace))

    def error(self, message: str) -> NoReturn:
        before, _, names = message.partition(REQUIRED)
        if before or not names:
            self._refuse(message[0].lower() + message[1:], self._remedy)
        example = f"write, for example, {self.example}; " * bool(self.example)
        verb = "are" if ", " in names else "is"
        self._refuse(f"{names} {verb} missing", f"{example}{self._remedy}")

    @property
    def options(self) -> list[str]:
        """The options that it knows, with their dashes."""
        return [word for action in self._actions for word in action.option_strings]

    @property
    def _remedy(self) -> str:
        return f"{self.prog} --help says what it takes"

    def _all_known(self, found: argparse.Namespace, left: Sequence[str]) -> argparse.Namespace:
        if not left:
            return found
        word = next((each for each in left if each.startswith("-")), left[0])
        if not word.startswith("-"):
            self._refuse(f"{word} is not expected by {self.prog}", self._remedy)
        option = word.partition("=")[0]
        remedy = did_you_mean(option, self.options, self._remedy)
        self._refuse(f"{self.prog} has no option {option}", remedy)

    def _refuse(self, problem: str, remedy: str) -> NoReturn:
        say(f"error: {said(problem, remedy)}")
        self.exit(NOT_UNDERSTOOD)


class OneOf:
    """The ``type`` of an argument with a few allowed words; ``instead`` has the way to what other
    words ask for.
    """

    def __init__(self, words: Iterable[str], instead: Mapping[str, str] = MappingProxyType({})):
        self.words, self.instead = tuple(words), instead

    def __call__(self, word: str) -> str:
        if word in self.words:
            return word
        if word.lower() in self.instead:
            raise argparse.ArgumentTypeError(f"there is no {word!r}; {self.instead[word.lower()]}")
        *others, last = self.words
        known = f"it is {', '.join(others)} or {last}"
        raise argparse.ArgumentTypeError(
            f"there is no {word!r}; {did_you_mean(word, self.words, known)}"
        )


class OnlyOne(argparse.Action):
    """The ``action`` of an option with one value, where argparse would silently take the last."""

    def __call__(self, parser, namespace, value, option=None):
        before = getattr(namespace, self.dest)
        if before not in (self.default, value):
            problem = f"{before} and {value} are two runs: ask for one after the other"
            raise argparse.ArgumentError(self, problem)
        setattr(namespace, self.dest, value)


# A command is a parser, and a function that runs it on its arguments.
Parsing = Callable[[str], Parser]
Command = Callable[[Sequence[str], str], int]
