"""What was derived before, and would come out the same again.

An entry is found by the hash of everything that its result depends on (``dependencies.py``), so
there is nothing to invalidate: a change of anything asks for another entry. The cache is a
convenience: one that cannot be read or written is as if there were none, and a damaged entry is
derived anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from codegen.dependencies import fingerprint, last_change, machinery_hash
from codegen.quality import Emitted, as_data, from_data
from derive.forward import Forward

FOLDER = ".gradform_cache"
VARIABLE = "GRADFORM_CACHE"
MOST = 1000  # entries that are kept: the ones that were asked for last
STARTED = time.time()


class Cache:
    """A folder with one file for each result; ``folder`` None keeps nothing."""

    def __init__(self, folder: Path | None):
        self.folder = folder
        self.fingerprints: dict[Path, str] = {}

    def get(self, forward: type[Forward]) -> Emitted | None:
        """What was derived for the forward, marked as unchanged; None where nothing was."""
        if self.folder is None:
            return None
        entry = self._entry(forward)
        try:
            digest, _, text = entry.read_text(encoding="utf-8").partition("\n")
            if digest != _digest(text):
                return None
            os.utime(entry)
            return replace(from_data(json.loads(text)), unchanged=True)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def put(self, forward: type[Forward], emitted: Emitted) -> None:
        """Keep a result, unless a file that it depends on was edited since the process began: it
        may have been derived from the text before.
        """
        if self.folder is None or last_change(_file(forward)) >= STARTED:
            return
        text = json.dumps(as_data(emitted))
        try:
            self._prepare()
            _replace(self._entry(forward), f"{_digest(text)}\n{text}")
            self._forget_the_oldest()
        except OSError:
            return

    @cached_property
    def machinery(self) -> str:
        return machinery_hash()

    def _entry(self, forward: type[Forward]) -> Path:
        """The place of a forward's result."""
        file = _file(forward)
        if file not in self.fingerprints:
            self.fingerprints[file] = fingerprint(file, self.machinery)
        name = hashlib.sha256(f"{self.fingerprints[file]} {forward.__name__}".encode())
        return self.folder / f"{name.hexdigest()}.json"

    def _prepare(self) -> None:
        if not self.folder.is_dir():
            self.folder.mkdir(parents=True)
            (self.folder / ".gitignore").write_text("# made by gradform\n*\n", encoding="utf-8")

    def _forget_the_oldest(self) -> None:
        entries = list(self.folder.glob("*.json"))
        if len(entries) > MOST:
            entries.sort(key=lambda entry: entry.stat().st_mtime)
            for entry in entries[:-MOST]:
                entry.unlink(missing_ok=True)


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Where results are kept: beside what is worked on, in the current folder, or where the
    variable GRADFORM_CACHE says; nowhere where it is empty.
    """
    named = environment.get(VARIABLE, FOLDER)
    return Path(named) if named else None


def _file(forward: type[Forward]) -> Path:
    return Path(forward.definition.place.file)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _replace(entry: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(prefix=".", dir=entry.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, entry)
    finally:
        Path(name).unlink(missing_ok=True)
