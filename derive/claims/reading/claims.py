"""Claims: the gradients that a text's names hold at the end."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sympy import Expr

from derive.claims.reading.layout import laid_out
from derive.claims.reading.lines import TextLine
from derive.claims.reading.memory import Cell
from derive.claims.reading.program import TextProgram
from derive.claims.reading.refusals import Misaligned, Mismatch
from derive.language.formulas.text import formula as words_of
from derive.language.symbols import Tensor


@dataclass(frozen=True)
class Claim:
    """The text's claim that the gradient of ``of`` is ``actual``; line ``line`` (``source``)
    completes it.

    Both expressions are along the axes of ``of``. ``actual`` is in values of the forward, the
    upstream gradient, and gradients that the text does not assign. In ``given``, every other
    gradient that the text assigned and read in its final state stays a symbol, as if those lines
    were right. Both are None if the shapes do not fit (``misaligned``). ``note``: the shape matches
    only up to broadcasting. ``lines``: those that named the values used in ``given``.
    """

    of: Tensor
    line: int
    source: str
    actual: Expr | None
    given: Expr | None
    misaligned: Misaligned | None = None
    note: str = ""
    written: Expr | None = None
    lines: tuple[TextLine, ...] = ()


def claim_of(name: str, first: TextProgram, second: TextProgram) -> Claim:
    """The claim of the cell called ``name``, from both runs."""
    of = first.names.adjoints[name]
    cell = first.cells[name]
    node = max(cell.node, first.bound[name], key=lambda node: node.lineno)
    claim = Claim(of, node.lineno, first.source.line_of(node), None, None)
    try:
        actual, note = _laid(first, cell, of)
    except Mismatch as error:
        return _misaligned_claim(claim, error, first, second, name)
    try:
        given, _ = _laid(second, second.cells[name], of)
    except Mismatch:  # the true gradients do not fit its shapes: judge it on its own
        given = actual
    lines = tuple(line for _, line in second.written if line.number <= node.lineno)
    return replace(claim, actual=actual, given=given, note=note, lines=lines)


def _misaligned_claim(
    claim: Claim, error: Mismatch, first: TextProgram, second: TextProgram, name: str
) -> Claim:
    """A claim whose shapes do not fit; if only the gradients it reads do not, judge it as if those
    were right.
    """
    cell, again = first.cells[name], second.cells[name]
    try:
        given, note = _laid(second, again, claim.of)
        return replace(claim, actual=given, given=given, note=note)
    except Mismatch:
        place = error.node or cell.node.value or cell.node
        spot = first.source.spot_of(place)
        misaligned = cell.broken or Misaligned(error.problem, error.remedy, spot)
        return replace(claim, misaligned=misaligned)


def as_written(claim: Claim, program: TextProgram) -> Claim:
    """Attach the unevaluated formula to a claim."""
    cell = program.cells.get(f"d{claim.of.name}")
    if claim.actual is None or cell is None:
        return claim
    try:
        return replace(claim, written=_laid(program, cell, claim.of)[0])
    except Mismatch:
        return claim


def _laid(program: TextProgram, cell: Cell, of: Tensor) -> tuple[Expr, str]:
    if cell.broken is not None:
        raise Mismatch(cell.broken.problem, cell.broken.remedy)
    names = program.names
    scale = names.scales.get(f"d{of.name}", 1)
    e, note = laid_out(program.space, cell.value, of, names.dims(of), bool(names.turned))
    return e / scale, note or f"taken as {words_of(scale)} times the gradient" * (scale != 1)


def with_name(claim: Claim, by_name: TextProgram) -> Claim:
    """Attach the reading by axis name to a misaligned claim, if one exists."""
    cell = by_name.cells.get(f"d{claim.of.name}")
    if claim.misaligned is None or cell is None or not by_name.space.by_name:
        return claim
    try:
        expression, _ = _laid(by_name, cell, claim.of)
    except Mismatch:
        return claim
    return replace(claim, misaligned=replace(claim.misaligned, by_name=expression))
