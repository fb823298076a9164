"""Bytes that a folder's Triton kernels read and write, counted in the compiled kernels.

Counting takes Triton, and minutes: the counts are kept beside the kernels, each with a hash of the
counted text, which shows whether it is out of date.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

FILE = "moves.json"
SHARED = ("_functions.py", "_rules.py")  # also change the instructions
DIGITS = 12  # of a hash
AGAIN = "counted for other kernels: run make moves"


@dataclass(frozen=True)
class Moved:
    """A kernel for rows of so many ``entries``: bytes that it reads and writes for each of them,
    and the minimum; registers and spilled bytes for each thread; and the reason why it moves more.
    """

    kernel: str
    entries: int
    reads: float
    least_reads: float
    writes: float
    least_writes: float
    registers: int
    spilled: int
    why: str = ""


def hash_of(folder: Path, name: str) -> str:
    """The hash of a module's kernels in a folder, without the code around them."""
    text = (folder / f"{name}.py").read_text()
    kernels = re.findall(r"^@.*?(?=\n\n\n)", text, re.M | re.S)
    texts = [*kernels, *((folder / file).read_text() for file in SHARED)]
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:DIGITS]


def moves_in(folder: Path) -> dict[str, tuple[str, list[Moved]]]:
    """The counted hash and kernels of each module, by name."""
    file = folder / FILE
    found = json.loads(file.read_text()) if file.exists() else {}
    return {name: (digest, [Moved(*row) for row in rows]) for name, (digest, rows) in found.items()}


def put_moves(folder: Path, found: dict[str, tuple[str, list[Moved]]]) -> None:
    """Write a line for each kernel."""
    modules = []
    for name, (digest, kernels) in sorted(found.items()):
        rows = ",\n".join(f"    {json.dumps(astuple(kernel))}" for kernel in kernels)
        modules.append(f'  "{name}": ["{digest}", [\n{rows}\n  ]]')
    (folder / FILE).write_text("{\n" + ",\n".join(modules) + "\n}\n")


def is_outdated(folder: Path, name: str) -> bool:
    """True if a module's kernels have changed since they were counted."""
    found = moves_in(folder).get(name)
    return found is None or found[0] != hash_of(folder, name)


def rows_of(folder: Path, name: str) -> Iterator[str]:
    """The rows of a table for a module, if its kernels were counted."""
    _, kernels = moves_in(folder).get(name, ("", []))
    again = AGAIN if kernels and is_outdated(folder, name) else ""
    for row in kernels:
        reads, writes = f"{row.reads:.1f}", f"{row.writes:.1f}"
        moves = reads, f"{row.least_reads:g}", writes, f"{row.least_writes:g}"
        told = "; ".join(filter(None, (again, row.why)))
        numbers = str(row.entries), *moves, str(row.registers), str(row.spilled)
        yield " | ".join((name, row.kernel, *numbers, told))
