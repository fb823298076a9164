"""``gradform watch``: derive again whenever a file is saved, and print what changed."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from codegen.commands.comparison import ForwardFacts, by_name, described
from codegen.commands.deriving import Deriver, Outcome
from codegen.commands.generate import add_generating
from derive.language.notation.gallery import files_named, path_in
from derive.running.command import DONE, guarded, say
from derive.running.limits import seconds_of
from derive.running.parser import Parser

POLL = 0.2  # seconds between two looks at the files; an editor is done saving after one
EXAMPLES = """\
  gradform watch my_norm.py
  gradform watch my_norm.py my_loss.py --out my_project/gradients
"""
STATUS = "0 stopped with Ctrl-C; 2 the command was not understood"

State = dict[str, tuple[int, ...]]


def watch_parser(program: str) -> Parser:
    """The parser of ``watch``."""
    parser = Parser(program, watch_command.__doc__, EXAMPLES, STATUS)
    add_generating(parser)
    return parser


def watch_command(arguments: Sequence[str], program: str) -> int:
    """Derive and write again whenever a file is saved, and print what changed in the mathematics.

    An error in a file is printed, and watching goes on; Ctrl-C ends it.
    """
    options = watch_parser(program).parse_args(arguments)
    return guarded(lambda: _watch(options))


def _watch(options: argparse.Namespace) -> int:
    seconds_of(options.limit)
    watching = Watching(options)
    try:
        watching.start()
        while True:
            time.sleep(POLL)
            watching.look()
    except KeyboardInterrupt as stop:
        if getattr(stop, "words", "interrupted") != "interrupted":
            raise
        say("stopped watching")
        return DONE
    finally:
        watching.end()


class Watching:
    """Watches the files: keeps the last good derivations, and the process for the next."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.known: Sequence[ForwardFacts] = ()
        self.files: set[str] = set()
        self.state: State = {}
        self.next, self.busy = Deriver(), None

    def start(self) -> None:
        found = files_named(self.options.names)
        self.files = {str(file) for file in found}
        say(f"watching {', '.join(self.options.names) or 'the gallery'}; Ctrl-C ends")
        self._derive()

    def look(self) -> None:
        """Derive again where a file has changed, once it is no longer being written to."""
        now = _state(self.files)
        if now == self.state:
            return
        while True:
            time.sleep(POLL)
            before, now = now, _state(self.files)
            if now == before:
                break
        self._derive()

    def end(self) -> None:
        for deriver in filter(None, (self.next, self.busy)):
            deriver.end()

    def _derive(self) -> None:
        """Derive and report; stop if a file is saved again before that."""
        self.state = _state(self.files)
        self.busy, self.next = self.next, None
        self.busy.ask(self.options, writes=True)
        answer = None
        while answer is None and self.state == _state(self.files):
            answer = self.busy.answer(POLL)
        self.busy.end()
        self.busy, self.next = None, Deriver()
        if answer is not None:
            self._tell(answer)

    def _tell(self, answer: Outcome) -> None:
        self._watch_files(answer)
        if answer.status:
            say("waiting for the next save; Ctrl-C ends")
            return
        lines = []
        for name, before, after in by_name(self.known, answer.derivations):
            lines += described(name, before, after) if before else [f"{name}: derived and proved"]
        self.known = answer.derivations
        lines += [f"written to {', '.join(answer.written)}"]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()

    def _watch_files(self, answer: Outcome) -> None:
        """Watch all files that were read; after an error also the folders of named files: a module
        that was missing may appear.
        """
        before = self.state
        self.files |= {*answer.read}
        if answer.status:
            named = [path for name in self.options.names if (path := path_in(name)) is not None]
            self.files |= {str(f) for path in named for f in path.parent.resolve().glob("*.py")}
        self.state = _state(self.files) | before


def _state(files: Iterable[str]) -> State:
    """Modification time and size of every file; empty for a missing file."""
    found: dict[str, tuple[int, ...]] = {}
    for file in files:
        try:
            stat = Path(file).stat()
        except OSError:
            continue
        found[file] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    return found
