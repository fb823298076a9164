"""The table of quality, as a page: ``generated/REPORT.md``.

Counts and proofs are the same everywhere, and the page is checked for them byte for byte.
Measurements (errors, seconds) differ from machine to machine: one on the page stays as long as the
text of the measured module is the same, which its hash says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from codegen.files.digest import digest
from codegen.files.quality import Emitted, Moves, Quality
from codegen.report.moves import rows_of

FILE = "REPORT.md"
TEMPLATES = Path(__file__).parent / "templates"
DIGITS = 12  # of the hash of a module


@dataclass(frozen=True)
class Measured:
    """A row of the table of measurements: every field is text."""

    name: str
    module: str
    double: str
    single: str
    autograd: str
    seconds: str


def report(results: Sequence[Emitted], before: str | None, folder: Path = Path()) -> str:
    """The page for ``results``; ``before`` is the existing one, or None. Bytes moved by kernels
    were counted in a ``folder``, or nowhere.
    """
    moved = [row for result in results for row in rows_of(folder, Path(result.file).stem)]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    known = measured_in(before or "")
    return environment.get_template("report.md.jinja").render(
        counted=[_counted(result.quality) for result in results],
        measured=[_measured(result, known) for result in results],
        forms=[result.quality for result in results],
        split=[row for result in results for row in _split(result)],
        moved=[moved] if moved else [],
    )


def measured_in(page: str) -> dict[tuple[str, str], Measured]:
    """The rows of measurements in a page, by name and module."""
    cell = r" ([^|\n]*) \|"
    rows = re.findall(rf"^\|{cell} `([0-9a-f]{{{DIGITS}}})` \|{cell * 4}$", page, re.M)
    found = [Measured(*row) for row in rows]
    return {(row.name, row.module): row for row in found}


def _measured(result: Emitted, known: Mapping[tuple[str, str], Measured]) -> Measured:
    quality = result.quality
    module = digest(result.text)[:DIGITS]
    now = Measured(
        quality.name,
        module,
        f"{quality.difference:.1e}",
        f"{quality.rounding.ours:.1e}",
        f"{quality.rounding.autograd:.1e}",
        f"{quality.seconds:.2f}",
    )
    before = known.get((quality.name, module))
    return before if before is not None and _is_measured(before) else now


def _is_measured(row: Measured) -> bool:
    """True if every measured value of a row is a number."""
    try:
        return all(float(n) >= 0 for n in (row.double, row.single, row.autograd, row.seconds))
    except ValueError:
        return False


def _counted(quality: Quality) -> dict[str, str]:
    """The cells of a row in the table of counts."""
    return {
        "name": quality.name,
        "full": quality.full,
        "saved": ", ".join(quality.saved),
        "reductions": ", ".join(quality.reductions),
        "forward_kernel": _moves(quality.forward.kernel),
        "forward_loops": _loops(quality.forward.loops),
        "forward_lines": _moves(quality.forward.lines),
        "backward_kernel": _moves(quality.backward.kernel),
        "backward_loops": _loops(quality.backward.loops),
        "backward_lines": _moves(quality.backward.lines),
        "larger": ", ".join(dict.fromkeys((*quality.forward.larger, *quality.backward.larger))),
    }


def _split(result: Emitted) -> Iterator[dict[str, str]]:
    """The rows of the axes that can be split over ranks."""
    for told in result.quality.split:
        yield {
            "name": result.quality.name,
            "axis": told.axis,
            "forward": told.refused or _told(told.forward),
            "backward": "" if told.refused else _told(told.backward),
        }


def _told(collectives: Sequence[str]) -> str:
    return f"{len(collectives)}: {'; '.join(collectives)}" if collectives else "0"


def _loops(loops: Sequence[Moves]) -> str:
    return _moves(loops[0]) if loops else "none"


def _moves(moves: Moves) -> str:
    return f"{moves.reads} + {moves.writes}"
