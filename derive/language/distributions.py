"""The installed distribution that a file belongs to: libraries are judged unlike a user's own
files.

A folder that pip installs into, wherever it is and whatever it is called, holds the records of the
distributions in it. A file in it that no record names is a user's own; so is one of an editable
install, whose record names no file of it.
"""

from __future__ import annotations

import site
from functools import lru_cache
from importlib.metadata import Distribution, distributions
from pathlib import Path

RECORDS = "*.dist-info"
# Those of this Python may hold records of an older kind alone.
FOLDERS = (*site.getsitepackages(), site.getusersitepackages())  # None in a browser
SITES = {Path(folder) for folder in FOLDERS if folder}
NONE = ""  # the distribution of what is not installed


def distribution_of(file: str | Path) -> str:
    """Name and version of the distribution that installed a file; `NONE` where none did."""
    place = installed_into(file)
    return _named_by(place, Path(file).relative_to(place).as_posix()) if place else NONE


def installed_into(file: str | Path) -> Path | None:
    """The folder around a file that pip, or its predecessors, installs into."""
    return next(filter(_has_records, Path(file).parents), None)


@lru_cache(maxsize=4096)
def _has_records(folder: Path) -> bool:
    return folder in SITES or any(folder.glob(RECORDS))


@lru_cache(maxsize=4096)
def _named_by(folder: Path, file: str) -> str:
    """The distribution of a file in ``folder``: the one that recorded it, else the one that
    provides its top-level module: a record may lack its files, as Debian's do.
    """
    top = file.split("/")[0].removesuffix(".py")
    records = _records(folder)
    found = [each for each, files, _ in records if f"\n{file}," in files]
    found += [each for each, _, tops in records if top in tops]
    return f"{found[0].name} {found[0].version}" if found else NONE


@lru_cache(maxsize=64)
def _records(folder: Path) -> list[tuple[Distribution, str, frozenset[str]]]:
    """The distributions in a folder, each with its recorded files and its importable names."""
    found = []
    for each in distributions(path=[str(folder)]):
        files = "\n" + (each.read_text("RECORD") or "")
        tops = {line.split("/")[0].removesuffix(".py") for line in files.split("\n") if "/" in line}
        tops |= {*(each.read_text("top_level.txt") or "").split()}
        if files == "\n":
            tops.add((each.name or "").lower().replace("-", "_"))
        found.append((each, files, frozenset(tops)))
    return found
