"""Dependencies of the result for one forward: the files of mathematics behind it, and gradform.

The imports of a file are read, not run. A file counts with every module that it imports, and those
that they import; gradform's own files count all together; installed packages count by their
version. Files read at run time, other than by ``import``, are not seen.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import platform
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from codegen.files.digest import digest
from derive.language.distributions import NONE, distribution_of, installed_into
from derive.language.errors import CERTIFICATES, FACE, MATH, NOTATION, OURS

MACHINERY = (OURS, Path(__file__).parents[1])
# The names of the notation: in a checkout both.
NAMED = (NOTATION.split("."), ["gradform", "derive"])
STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib")).resolve()
MADE_BY = ("sympy", "torch", "numpy", "jinja2")


def files_behind(file: Path) -> tuple[Path, ...]:
    """``file`` and all files of mathematics that it imports, directly or not."""
    importlib.invalidate_caches()
    first, found, pending = file, set(), [file]
    while pending:
        file = pending.pop()
        if file not in found:
            found.add(file)
            pending += [f for f in _imported(file) if _is_mathematics(f, first)]
    return tuple(sorted(found))


def fingerprint(file: Path, machinery: str) -> str:
    """SHA-256 of everything that the forwards in ``file`` depend on.

    ``machinery`` is what `machinery_hash` returns: it is the same for all of them.
    """
    files = files_behind(file)
    packages = {p for f in files for i in _imported(f) if (p := _package(i, file))}
    parts = [machinery]
    parts += sorted(packages)
    parts += [f"{f.name} {_hash(f)}" for f in files]
    return digest(*parts)


def machinery_hash() -> str:
    """SHA-256 of gradform itself, and of the packages it runs on."""
    parts = [f"python {platform.python_version()}"]
    parts += [f"{name} {_version(name) or _own_version(name)}" for name in MADE_BY]
    parts += [f"{f.name} {_hash(f)}" for f in machinery_files()]
    return digest(*parts)


def last_change(file: Path) -> float:
    """Time of the last change to the files behind ``file`` or to gradform's own."""
    return max(f.stat().st_mtime for f in (*files_behind(file), *machinery_files()))


def machinery_files() -> tuple[Path, ...]:
    """Gradform's own sources and templates, and what Coq accepted, without the mathematics."""
    found = [f for folder in MACHINERY for kind in ("*.py", "*.jinja") for f in folder.rglob(kind)]
    found += (f for kind in ("*.v", "*.txt") for f in CERTIFICATES.glob(kind))
    return tuple(sorted(f for f in found if not f.is_relative_to(MATH)))


def _is_mathematics(file: Path, first: Path) -> bool:
    """True if a file is ours, or the author of ``first`` may edit it: not of gradform, Python or a
    package.
    """
    if file.is_relative_to(MATH):
        return True
    others = any(map(file.is_relative_to, (FACE, *MACHINERY))) or _is_pythons(file)
    return not others and not _package(file, first)


def _is_pythons(file: Path) -> bool:
    """True if a file is of the standard library, in whose folder packages may be installed."""
    return file.is_relative_to(STANDARD_LIBRARY) and installed_into(file) is None


def _package(file: Path, first: Path) -> str:
    """The installed package of a file, with its version, or ''; never gradform itself, nor the
    package of ``first``.
    """
    if any(map(file.is_relative_to, (MATH, FACE, *MACHINERY))):
        return NONE
    package = distribution_of(file)
    return package if package != distribution_of(first) else NONE


@cache
def _version(package: str) -> str:
    """The installed version; '' for a package that is imported from a folder."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _own_version(package: str) -> str:
    """The version in the package itself, which has to be imported for it."""
    return str(getattr(importlib.import_module(package), "__version__", "unknown"))


def _hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _imported(file: Path) -> Iterator[Path]:
    """Files that the imports of ``file`` run, including packages on the way."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _located(alias.name.split("."), [str(file.parent), *sys.path])
        elif isinstance(node, ast.ImportFrom):
            base = [str(file.parent), *sys.path]
            if node.level:
                base = [str(file.parents[node.level - 1])]
            module = node.module.split(".") if node.module else []
            for alias in node.names:  # a name may be that of a module
                yield from _located([*module, alias.name], base)


def _located(parts: list[str], base: list[str]) -> Iterator[Path]:
    search, name = base, ""
    for own in NAMED:
        if parts[: len(own)] == own:
            search, parts, name = [str(OURS)], parts[len(own) :], f"{NOTATION}."
    for part in parts:
        spec = PathFinder.find_spec(f"{name}{part}", search)
        if spec is None:
            return
        if spec.origin is not None and spec.origin.endswith(".py"):
            yield Path(spec.origin).resolve()
        if spec.submodule_search_locations is None:
            return
        search, name = list(spec.submodule_search_locations), f"{name}{part}."
