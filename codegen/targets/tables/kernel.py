"""A kernel as it is called, in any language, and the files beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import jinja2

TEMPLATES = Path(__file__).parent / "templates"
# Files that all kernels share, by the file names beside them; a language has ``_running.py`` too.
RUNTIME = {"__init__.py": "choosing.py", "_serving.py": "serving.py", "_losses.py": "losses.py"}


@dataclass(frozen=True)
class Computed:
    """A number that Python computes, as ``text``, from the names that it ``takes``."""

    name: str
    text: str
    takes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A kernel as it is called: with the arrays ``reads`` and ``writes``, the ``sizes`` of axes,
    the numbers ``scalars`` and others ``computed`` of these. ``flags`` are those for results that
    it can leave out. Sums that are ``left`` stay in parts; ``shapes`` are the sizes of its results.
    Results in ``exact`` have the dtype of the computation.
    """

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    sizes: tuple[str, ...]
    scalars: tuple[str, ...]
    computed: tuple[Computed, ...] = ()
    flags: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    shapes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def shared(folder: Path, files: Mapping[str, str]) -> dict[str, str]:
    """The texts of the files beside kernels: those of all languages, and ``files`` of one
    ``folder`` by their names.
    """
    found = {name: (TEMPLATES / file).read_text() for name, file in RUNTIME.items()}
    return found | {name: (folder / file).read_text() for name, file in files.items()}


def environment(folder: Path) -> jinja2.Environment:
    """The Jinja environment of a language's templates."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
