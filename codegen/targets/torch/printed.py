"""What the templates of modules print: records of which every field is text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Core:
    """A function as its lines alone: its ``def`` with what stands above it, what stands in it, what
    it returns.
    """

    signature: str
    lines: tuple[str, ...]
    returned: str


@dataclass(frozen=True)
class AskingFunction:
    """A function that looks at its arguments in its own ``lines``, and the lines that it calls."""

    summary: str
    signature: str
    shapes: str
    lines: tuple[str, ...]
    result_class: str
    results: tuple[tuple[str, str, str], ...]
    returned: str
    core: tuple[Core, ...] = ()
