"""A process that derives forwards once, as their files are at that moment.

A process of its own has imported nothing of the user's before, may take the gallery from another
folder, and can be ended at any time; it imports SymPy and torch while it waits.

In: on its standard input a line of JSON, the options of a command; where it is closed then, whoever
asked is gone, and so is this process. Out: on its standard output the `Outcome`; what is said to a
person goes to standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path

from codegen.commands.comparison import ForwardFacts, derivation_of
from derive.running.command import WRONG, guarded, say

MODULE = f"{__package__}.deriving"  # run as a program, it is called __main__
ROOT = Path(__file__).parents[MODULE.count(".")]  # of Python's path
NEEDED = (".facts", ".generating", "..targets.torch.check")


@dataclass(frozen=True)
class Outcome:
    """The exit status, the derivations, the files that were read, and those that were written."""

    status: int
    derivations: tuple[ForwardFacts, ...] = ()
    read: tuple[str, ...] = ()
    written: tuple[str, ...] = ()


class Deriver:
    """The process, seen from outside. ``folders`` are first on its path; in its messages the keys
    of ``shown`` are replaced.
    """

    def __init__(self, folders: Sequence[Path] = (), shown: Mapping[str, str] | None = None):
        paths = [*map(str, folders), str(ROOT), os.environ.get("PYTHONPATH", "")]
        path = os.pathsep.join(filter(None, paths))
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if shown else None,
            text=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C is for its parent to answer
        )
        self.answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.saying = threading.Thread(target=self._say, args=[shown or {}], daemon=True)
        self.saying.start()

    def ask(self, options: argparse.Namespace, writes: bool) -> None:
        """Request the derivations of ``options``, written to files if the caller ``writes``."""
        asked = {**vars(options), "out": str(options.out)}
        try:
            self.process.stdin.write(json.dumps({"options": asked, "writes": writes}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:  # it died: the answer says so
            pass
        threading.Thread(target=self._listen, daemon=True).start()

    def answer(self, seconds: float | None = None) -> Outcome | None:
        """The answer, or None if there is none after ``seconds``. A process that died has printed
        why, or was ended: status 1.
        """
        try:
            line = self.answers.get(timeout=seconds)
        except queue.Empty:
            return None
        if not line:
            return Outcome(WRONG)
        data = json.loads(line)
        found = tuple(derivation_of(each) for each in data["derivations"])
        return Outcome(data["status"], found, tuple(data["read"]), tuple(data["written"]))

    def end(self) -> None:
        """End it, whatever it is doing; files are written all or none."""
        self.process.kill()
        self.process.wait()
        self.saying.join()

    def _say(self, shown: Mapping[str, str]) -> None:
        for line in self.process.stderr or ():
            for text, instead in shown.items():
                line = line.replace(text, instead)
            say(line.rstrip("\n"))

    def _listen(self) -> None:
        self.answers.put(self.process.stdout.readline())


def answered(options: argparse.Namespace, writes: bool) -> Outcome:
    """The answer of a process; errors are printed on standard error."""
    found: list[ForwardFacts] = []
    written: list[Path] = []
    status = guarded(lambda: _derived(options, writes, found, written))
    read = {str(file) for file in _files_behind(options.names)}
    return Outcome(status, tuple(found), tuple(sorted(read)), tuple(map(str, written)))


def _derived(
    options: argparse.Namespace, writes: bool, found: list[ForwardFacts], written: list[Path]
) -> int:
    from codegen.commands.facts import derivation_facts
    from codegen.commands.generating import derive_modules, texts_of
    from codegen.driver.writing import write_modules
    from derive.language.notation.library import files_read

    forwards, results = derive_modules(options, writes)
    if writes:
        texts = texts_of(options, (forwards, results))
        write_modules(texts, files_read(), options.force)
        written += [options.out / result.file for result in results]
    found += [derivation_facts(f, each) for f, each in zip(forwards, results, strict=True)]
    return 0


def _files_behind(names: Sequence[str]) -> Iterable[Path]:
    """Files that the forwards called ``names`` are read from, even if unreadable."""
    from codegen.files.dependencies import files_behind
    from derive.language.notation.gallery import files_named

    for file in files_named(names):
        yield file
        with suppress(OSError):  # one that is not there, and may come
            yield from files_behind(file)


def main() -> None:
    """The process, from inside: all prints go to standard error."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for module in NEEDED:
        import_module(module, __package__)
    line = sys.stdin.readline()
    if line:
        threading.Thread(target=_end_with_input, daemon=True).start()
        asked = json.loads(line)
        options = argparse.Namespace(**asked["options"])
        options.out = Path(options.out)
        channel.write(json.dumps(asdict(answered(options, asked["writes"]))) + "\n")
        channel.close()


def _end_with_input() -> None:
    """End when the input closes: a process in its own session outlives its terminal."""
    sys.stdin.read()
    os._exit(WRONG)


if __name__ == "__main__":
    main()
