"""Writing files so that nothing is ever half written: all of them, or none."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from derive.errors import QuestionError


def write_all(texts: Mapping[Path, str], remedy: str) -> None:
    """Replace every file by its new text. Whatever happens before the first replacement leaves all
    as they were.

    A file whose text is the same already is not touched. Raises `QuestionError` with ``remedy``
    where the folder cannot be written.
    """
    changed = {path: text for path, text in texts.items() if current(path) != text}
    ready: list[tuple[Path, Path]] = []
    try:
        for path, text in changed.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            ready.append((_temporary(path, text), path))
        for temporary, path in ready:
            os.replace(temporary, path)
    except OSError as error:
        raise QuestionError(
            f"{path} cannot be written: {error.strerror}",
            remedy,
        ) from None
    finally:
        for temporary, _ in ready:
            temporary.unlink(missing_ok=True)


def current(path: Path) -> str | None:
    """The text of a file, or None where there is no such text file."""
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, UnicodeDecodeError):
        return None


def _temporary(path: Path, text: str) -> Path:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(name, 0o666 & ~_umask())
    return Path(name)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
