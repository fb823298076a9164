"""Folders that several programs write to: one at a time, and without what a killed one left.

Whoever writes to a folder holds its lock. Under the lock every temporary file there is of a process
that is no more, whatever its number: one that lives would hold the lock. The system itself unlocks
a folder where a process ends. On a file system without locks, or with only those of one machine,
the worst is that a run takes the temporary file of another for left behind after a day, or at once:
that one then says that it could not write, and every file is as it was.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from derive.language.errors import QuestionError

BETWEEN_TRIES = 0.02  # seconds; nobody notices them

try:
    import fcntl
except ImportError:  # not on Windows; there the age of a temporary file has to do
    fcntl = None

PREFIX, SUFFIX = ".gradform-", ".partial"
TEMPORARY = re.compile(rf"{re.escape(PREFIX)}[a-z0-9_]{{8}}{re.escape(SUFFIX)}")
LONGEST_WAIT = 10.0  # seconds for another run to finish writing
ABANDONED = 86400.0  # seconds; where there are no locks, nobody writes for so long


def temporary_in(folder: Path) -> tuple[int, str]:
    """A new file for the time of writing, open, and its name. For who is `alone_in` the folder."""
    return tempfile.mkstemp(SUFFIX, PREFIX, folder)


def made(folder: Path) -> Iterator[Path]:
    """Make a folder and those above it; yields the new ones, each when it is there."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        with suppress(FileExistsError):
            each.mkdir()
            yield each


def is_empty(folder: Path) -> bool:
    """Whether nothing is in a folder, or nothing but what a killed process left."""
    return all(TEMPORARY.fullmatch(name) for name in os.listdir(folder))


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Write while no other run does, in a folder that is rid of what was left behind.

    Raises `QuestionError` where another run does not finish, and OSError where there is no folder.
    """
    with ExitStack() as stack:
        locked = _locked(folder, stack)
        with suppress(OSError):  # a folder that may not be listed
            for name in os.listdir(folder):
                if TEMPORARY.fullmatch(name):
                    _remove_left(folder / name, 0 if locked else ABANDONED)
        yield


def _locked(folder: Path, stack: ExitStack) -> bool:
    """Lock a folder until ``stack`` is left; False where that cannot be done."""
    if fcntl is None:
        return False
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # one may be allowed to write to it all the same
        return False
    stack.callback(os.close, handle)
    until = time.monotonic() + LONGEST_WAIT
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > until:
                raise QuestionError(
                    f"another run is writing to {folder}", "wait for it, then run this one again"
                ) from None
            time.sleep(BETWEEN_TRIES)
        except OSError:
            return False


def _remove_left(file: Path, age: float) -> None:
    with suppress(OSError):
        found = file.lstat()
        ours = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
        if ours and not stat.S_ISDIR(found.st_mode) and time.time() - found.st_mtime >= age:
            file.unlink()
