"""Breaks one rule after the other and says which test notices: ``make mutants``.

    python tests/mutants/driver.py [--slow] [WORD ...]

tries those whose names hold one of the words. With ``--slow`` what the watchers of its room do not
notice is tried with the slower tests too.

Every mutant is tried in a process of its own, a copy of one that has imported everything. What
survives is printed last, and the exit status is 1.
"""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ALL = "not browser and not engine"  # more than the sample that the suite takes
OPTIONS = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", ALL)
UNCHANGED = "(what it gave was never another thing)"
LONGEST = 180  # seconds that the tests of one file may take: what hangs is noticed too


class FirstFailure:
    """A plugin of pytest that keeps the name of the first test that fails."""

    def __init__(self):
        self.name = ""

    def pytest_runtest_logreport(self, report):
        if report.failed and not self.name:
            self.name = report.nodeid

    def pytest_collectreport(self, report):
        if report.failed and not self.name:
            self.name = report.nodeid


def noticed_by(mutant, watchers: Sequence[str]) -> str:
    """The test that fails with the mutant, or '' where none of the ``watchers`` does."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        with os.fdopen(writer, "w") as answer:
            json.dump(_tried(mutant, watchers), answer)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else f"a file of tests that does not end within {LONGEST} s"


def _tried(mutant, watchers: Sequence[str]) -> str:
    import signal

    from mutants import breaking

    first = FirstFailure()
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(out):
        mutant.apply()
        for watcher in watchers:  # one after the other: what is not run is not collected
            signal.alarm(LONGEST)
            status = pytest.main([*OPTIONS, "-x", str(TESTS / watcher)], plugins=[first])
            if status != pytest.ExitCode.OK:
                break
    if first.name or status in (pytest.ExitCode.OK, pytest.ExitCode.INTERNAL_ERROR):
        exchanged = getattr(mutant.apply, "func", None) is breaking.exchange
        if not first.name and exchanged and not breaking.changed:
            return UNCHANGED
        return first.name  # an error of pytest itself notices nothing
    return f"pytest says {out.getvalue()[-300:]}"


def _imported(watchers: set[str]) -> None:
    """Import the tests once, before there are copies of this process."""
    files = sorted({str(TESTS / watcher.split("::")[0]) for watcher in watchers})
    with redirect_stdout(io.StringIO()):
        pytest.main([*OPTIONS, "--collect-only", *files])


def main(words: Sequence[str]) -> int:
    """Try all mutants whose names hold one of ``words``, all where there are none."""
    from mutants.registry import SLOW, mutants

    slow = "--slow" in words
    words, survivors = [word for word in words if word != "--slow"], []
    chosen = [m for m in mutants() if not words or any(word in m.name for word in words)]
    _imported({watcher for mutant in chosen for watcher in mutant.watchers})
    for mutant in chosen:
        start = time.monotonic()
        test = noticed_by(mutant, mutant.watchers)
        if slow and test in ("", UNCHANGED):
            test = noticed_by(mutant, SLOW) or test
        survivors += [] if test else [mutant.name]
        print(f"{time.monotonic() - start:5.1f} s  {mutant.name:70} {test or 'NOBODY'}", flush=True)
    print(f"{len(survivors)} not noticed", *survivors, sep="\n    ")
    return bool(survivors)


if __name__ == "__main__":
    sys.path[:0] = [str(TESTS), str(TESTS.parent)]
    os.chdir(TESTS.parent)
    sys.exit(main(sys.argv[1:]))
