"""The record of an error in gradform itself: one file with all that a bug report needs."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from derive.version import VERSION

PACKAGES = ("sympy", "torch")
OWN = ("GRADFORM_", "PYTHONHASHSEED")  # prefixes of environment variables to include
LONGEST_SOURCE = 200_000  # bytes of a user's file
HASH = 8  # hex digits: the same error replaces its file


def kept(error: BaseException, command: Sequence[str]) -> Path | None:
    """Write the report of ``error`` to the working directory or the temporary folder, and return
    its path; None if neither is writable.
    """
    text = told(error, command)
    number = hashlib.sha256("".join(traceback.format_exception(error)).encode()).hexdigest()[:HASH]
    for folder in (Path.cwd, tempfile.gettempdir):
        with suppress(OSError):
            return _written(Path(folder()) / f"gradform-error-{number}.txt", text)
    return None


def told(error: BaseException, command: Sequence[str]) -> str:
    """The text of a report: versions, the command, the files that it names, the traceback."""
    environment = [f"{n}={v}" for n, v in sorted(os.environ.items()) if n.startswith(OWN)]
    parts = [
        ("gradform error report", "\n".join(_versions())),
        ("command", shlex.join(command)),
        ("environment", "\n".join(environment)),
        *_sources(command),
        ("traceback", "".join(traceback.format_exception(error))),
    ]
    return "\n".join(f"== {title}\n{text.rstrip()}\n" for title, text in parts if text)


def _versions() -> Iterator[str]:
    yield f"gradform {VERSION}"
    for package in PACKAGES:
        try:
            yield f"{package} {version(package)}"
        except PackageNotFoundError:
            yield f"{package} is not installed"
    yield f"Python {sys.version}"
    yield platform.platform()


def _sources(command: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The Python files that a command names, each with its text."""
    for name in dict.fromkeys(command[1:]):
        before, dot, _ = name.partition(".py")
        with suppress(OSError, ValueError):
            if dot:
                content = Path(f"{before}{dot}").read_bytes()[:LONGEST_SOURCE]
                yield f"{before}{dot}", content.decode(errors="replace")


def _written(path: Path, text: str) -> Path:
    """Write a text to ``path`` completely or not at all. Raises OSError."""
    handle, temporary = tempfile.mkstemp(prefix=".gradform-error-", dir=path.parent)
    try:
        with open(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.remove(temporary)
        raise
    return path
