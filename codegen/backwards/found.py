"""Findings from running a Function, in words."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A finding of a call: ``wrong`` or for information only, with the user's line."""

    words: str
    wrong: bool = True
    file: str = ""
    line: int = 0
    remedy: str = ""
    because: tuple[str, ...] = ()

    @property
    def is_write(self) -> bool:
        return bool(self.because)

    def __str__(self) -> str:
        lines = [f"{self.words}, line {self.line}" if self.line else self.words]
        source = linecache.getline(self.file, self.line).strip() if self.line else ""
        own = (source, *self.because, self.remedy)
        return "\n    ".join([*lines, *(words for words in own if words)])


def broken_by(found: Sequence[Finding], only_writes: bool = False) -> str:
    """All errors; empty if there are none."""
    wrong = [one for one in found if one.wrong and (one.is_write or not only_writes)]
    return "\n".join(map(str, wrong))
