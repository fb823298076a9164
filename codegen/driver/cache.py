"""Cache of derivations whose result would be the same again.

An entry is found by the hash of everything that its result depends on (``dependencies.py``), so
there is nothing to invalidate: any change asks for another entry. The cache is a convenience: if it
cannot be read or written, gradform works without it, and an entry that is damaged or does not fit
its forward is derived again.

Entries are trusted, so a cache is as trustworthy as whoever can write to it: the digest in an entry
guards against damage only. A folder of another user, or one that others may write to, is not used.
The path of the output is no part of the hash.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from codegen.files.dependencies import fingerprint, last_change, machinery_hash
from codegen.files.digest import digest
from codegen.files.quality import Emitted, as_data, from_data, kernels_from
from derive.language.errors import QuestionError
from derive.running.writing import put

if TYPE_CHECKING:
    from derive.language.notation.forward import Forward

TORCH = "torch"
FOLDER = ".gradform_cache"
VARIABLE = "GRADFORM_CACHE"
MOST = 1000  # entries that are kept: the ones that were asked for last
LARGEST = 2**22  # bytes of an entry
OWNER_ALONE = 0o700  # may access the folder: entries are trusted
UNREADABLE = (OSError, ValueError, RecursionError)  # errors from an invalid entry
READING = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
STARTED = time.time()


class Cache:
    """A folder with one file for each result, and one for its kernels of each target beside torch;
    with ``folder`` None nothing is kept.
    """

    def __init__(self, folder: Path | None, target: str = TORCH):
        self.folder, self.target = folder, target
        self.distrusted = _distrusted(folder) if folder is not None else ""
        self.fingerprints: dict[Path, str] = {}

    def get(self, forward: type[Forward]) -> Emitted | None:
        """The stored result of the forward, marked as unchanged, with its kernels for the target;
        None if nothing was derived.
        """
        from codegen.driver.gate import (
            file_of,  # all targets, for which a function that is kept waits
        )

        if self.folder is None or _distrusted(self.folder):
            return None
        try:
            found = from_data(_data(self._entry(forward)), file_of(forward))
        except UNREADABLE:
            return None
        if not _fits(found, forward):
            return None
        try:
            if self.target == TORCH:
                return found
            return replace(found, kernels=kernels_from(_data(self._entry(forward, found))))
        except UNREADABLE:
            return found

    def put(self, forward: type[Forward], emitted: Emitted) -> None:
        """Store a result, unless a file that it depends on was edited since the process began, as
        it may have been derived from the old text, or a time limit cut it short, as it depends on
        the machine's speed.
        """
        if self.folder is None or emitted.cut_short:
            return
        try:
            if last_change(_file(forward)) >= STARTED:
                return
            data = {self._entry(forward): as_data(emitted)}
            if emitted.kernels is not None and not emitted.slow:
                data[self._entry(forward, emitted)] = list(emitted.kernels)
        except (OSError, ValueError, QuestionError):
            return
        self.keep(data)

    def keep(self, data: Mapping[Path, object]) -> None:
        """Store data, which JSON can hold, in the entries of the folder."""
        if self.folder is None or _distrusted(self.folder):
            return
        try:
            self._prepare()
            for entry, text in zip(data, map(json.dumps, data.values()), strict=True):
                put(entry, f"{digest(text)}\n{text}")
            self._forget_the_oldest()
        except (OSError, ValueError, QuestionError):
            return

    @cached_property
    def machinery(self) -> str:
        return machinery_hash()

    def _entry(self, forward: type[Forward], of: Emitted | None = None) -> Path:
        """The file of a forward's result; or of the kernels ``of`` it."""
        file = _file(forward)
        if file not in self.fingerprints:
            self.fingerprints[file] = fingerprint(file, self.machinery)
        asked = forward.__name__
        asked += f" {self.target} {digest(of.text)}" if of is not None else ""
        name = digest(f"{self.fingerprints[file]} {asked}")
        return self.folder / f"{name}.json"

    def _prepare(self) -> None:
        if not self.folder.is_dir():
            self.folder.mkdir(OWNER_ALONE, parents=True)
        if not (self.folder / ".gitignore").exists():
            put(self.folder / ".gitignore", "# made by gradform\n*\n")

    def _forget_the_oldest(self) -> None:
        entries = list(self.folder.glob("*.json"))
        if len(entries) > MOST:
            entries.sort(key=lambda entry: entry.stat().st_mtime)
            for entry in entries[:-MOST]:
                entry.unlink(missing_ok=True)


def recalled(name: str, folder: Path | None = None) -> object | None:
    """The data stored under a name, the hash of all that it depends on; None if there is none."""
    folder = folder or cache_folder()
    if folder is None or _distrusted(folder):
        return None
    try:
        return _data(folder / f"{name}.json")
    except UNREADABLE:
        return None


def keep(name: str, data: object, folder: Path | None = None) -> None:
    """Store ``data``, which JSON can hold, under a name."""
    folder = folder or cache_folder()
    if folder is not None:
        Cache(folder).keep({folder / f"{name}.json": data})


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    """The cache folder: the variable GRADFORM_CACHE, by default one in the current folder; None if
    the variable is empty.
    """
    named = environment.get(VARIABLE, FOLDER)
    return Path(named) if named else None


def _file(forward: type[Forward]) -> Path:
    return Path(forward.definition.place.file)


def _distrusted(folder: Path) -> str:
    """The reason why a folder must not be used, in a line; empty if it may be."""
    try:
        found = folder.stat()
    except (OSError, ValueError):
        return ""
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        return f"the cache {folder} is not used: it belongs to another user"
    if hasattr(os, "geteuid") and found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"the cache {folder} is not used: other users can write to it; remove it"
    return ""


def _data(entry: Path) -> object:
    """The data of an entry. Raises one of `UNREADABLE`."""
    own, _, text = _content(entry).decode().partition("\n")
    if own != digest(text):
        raise ValueError("damaged")
    with suppress(OSError):  # a folder that may only be read
        os.utime(entry)
    return json.loads(text)


def _content(entry: Path) -> bytes:
    """The bytes of an entry: an ordinary file of our own, no larger than a result may be.

    Raises OSError or ValueError for anything else; a pipe is not waited for.
    """
    handle = os.open(entry, READING)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
            raise ValueError("not a cache entry")
        if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
            raise ValueError("an entry of another user")
        return file.read(LARGEST)


def _fits(found: Emitted, forward: type[Forward]) -> bool:
    """True if a result belongs to the forward as it is now: its name, its source, gradform's
    version, and that it passed.
    """
    from codegen.driver.gate import TOLERANCE
    from codegen.files.header import header
    from derive.language.notation.library import source_hash

    definition = forward.definition
    lines = header(Path(definition.place.file).name, source_hash(forward))
    return (
        found.quality.name == definition.snake
        and found.text.startswith("".join(f"# {line}\n" for line in lines))
        and 0 <= found.quality.difference <= TOLERANCE
    )
