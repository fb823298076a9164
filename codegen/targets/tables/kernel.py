"""What a table knows of a kernel, in whatever language that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import jinja2

TEMPLATES = Path(__file__).parent / "templates"
# What all kernels share, by the names of the files beside them; a language has ``_running.py`` too.
RUNTIME = {"__init__.py": "choosing.py", "_serving.py": "serving.py"}


@dataclass(frozen=True)
class Computed:
    """A number that Python computes, as ``text``, of what it ``takes``."""

    name: str
    text: str
    takes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A kernel as it is called: with the arrays ``reads`` and ``writes``, the ``sizes`` of axes
    and the numbers ``scalars``, and with others that are ``computed`` of these; ``flags`` are what it has
    for results that it can leave out; ``repeated`` and ``filled`` are
    arrays that may be one number everywhere (see `Asked`).
    """

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    sizes: tuple[str, ...]
    scalars: tuple[str, ...]
    computed: tuple[Computed, ...] = ()
    flags: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    filled: tuple[str, ...] = ()

    def does_the_same_as(self, other: Self) -> bool:
        """Whether it is the same but for its name."""
        return replace(self, name="") == replace(other, name="")


def shared(folder: Path, files: Mapping[str, str]) -> dict[str, str]:
    """The texts of the files that stand beside kernels: those of all, and ``files`` of one
    ``folder`` by their names.
    """
    found = {name: (TEMPLATES / file).read_text() for name, file in RUNTIME.items()}
    return found | {name: (folder / file).read_text() for name, file in files.items()}


def environment(folder: Path) -> jinja2.Environment:
    """The templates of a language, and that of a table."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader([folder, TEMPLATES]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
