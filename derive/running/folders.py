"""Folders shared by several processes: one writer at a time, and cleanup after killed ones.

A process that writes to a folder holds its lock. Under the lock, every temporary file belongs to a
dead process: a living one would hold the lock. The system releases the locks of a process that
ends. On a file system without locks, or with locks on one machine only, a run may at worst delete
another run's temporary file, after a day or at once: that run then reports that it could not write,
and every file is unchanged.
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

BETWEEN_TRIES = 0.02  # seconds, too short to notice

try:
    import fcntl
except ImportError:  # not on Windows; there the age of temporary files decides
    fcntl = None

PREFIX, SUFFIX = ".gradform-", ".partial"
TEMPORARY = re.compile(rf"{re.escape(PREFIX)}[a-z0-9_]{{8}}{re.escape(SUFFIX)}")
LONGEST_WAIT = 10.0  # seconds for another run to finish writing
ABANDONED = 86400.0  # seconds; without locks, older temporary files are abandoned


def temporary_in(folder: Path) -> tuple[int, str]:
    """Create and open a temporary file, inside `alone_in`; returns it and its name."""
    return tempfile.mkstemp(SUFFIX, PREFIX, folder)


def made(folder: Path) -> Iterator[Path]:
    """Create a folder and its parents; yields each new one as it is created."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        with suppress(FileExistsError):
            each.mkdir()
            yield each


def is_empty(folder: Path) -> bool:
    """Whether a folder is empty, apart from leftovers of a killed process."""
    return all(TEMPORARY.fullmatch(name) for name in os.listdir(folder))


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold a folder's lock, after removing leftovers.

    Raises `QuestionError` if another run does not finish, and OSError if the folder does not exist.
    """
    with ExitStack() as stack:
        locked = _locked(folder, stack)
        with suppress(OSError):  # an unreadable folder
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
    except PermissionError:  # it may be writable all the same
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
