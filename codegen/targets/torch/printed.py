"""What the template of a module prints: records of which every field is text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Core:
    """A function as its lines alone: its ``def``, what stands in it, what it returns."""

    signature: str
    lines: tuple[str, ...]
    returned: str


@dataclass(frozen=True)
class PrintedFunction:
    """A function as the template prints it: every field is text, and ``core`` are the lines that
    it calls, without any check, where it is not these itself.
    """

    summary: str
    signature: str
    shapes: str
    lines: tuple[str, ...]
    result_class: str
    results: tuple[tuple[str, str, str], ...]
    returned: str
    core: tuple[Core, ...] = ()

    @property
    def classes(self) -> tuple[str, ...]:
        """The class of what it returns, if that is one of its own."""
        return (self.result_class,) if self.result_class else ()
