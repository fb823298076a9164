"""A kernel as it is called, in whatever language it is, and what stands beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import jinja2

TEMPLATES = Path(__file__).parent / "templates"
# What all kernels share, by the names of the files beside them; a language has ``_running.py`` too.
RUNTIME = {"__init__.py": "choosing.py", "_serving.py": "serving.py", "_losses.py": "losses.py"}


@dataclass(frozen=True)
class Computed:
    """A number that Python computes, as ``text``, of what it ``takes``."""

    name: str
    text: str
    takes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A kernel as it is called: with the arrays ``reads`` and ``writes``, the ``sizes`` of axes,
    the numbers ``scalars`` and others ``computed`` of these. ``flags`` are what it has for results
    that it can leave out. Sums that are ``left`` stay in parts; ``shapes`` are the sizes of what it
    writes. What is ``exact`` of that is in the dtype of the computation.
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
    """The texts of the files that stand beside kernels: those of all, and ``files`` of one
    ``folder`` by their names.
    """
    found = {name: (TEMPLATES / file).read_text() for name, file in RUNTIME.items()}
    return found | {name: (folder / file).read_text() for name, file in files.items()}


def environment(folder: Path) -> jinja2.Environment:
    """The templates of a language."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
