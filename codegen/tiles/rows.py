"""Lines of the rows that a kernel owns: they move into it, and what they read or make need not be
stored if nothing else reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from codegen.program.arrays import Arrange, Contract, Expand, Reduce
from codegen.program.parts import values_in
from codegen.program.shards import Unshifted, WholeSize
from codegen.program.steps import Assign
from codegen.program.values import Constant, Load, Number, SizeOf, Value
from codegen.sharding.values import POINTWISE
from codegen.tiles.records import Piece, Stored, TileKernel, TileSum, WholeLine
from derive.language.notation.layout import Layout

LEAVES = (Load, Number, Constant, SizeOf, WholeSize)
IN_ROWS = (*POINTWISE, *LEAVES, Arrange, Expand, Unshifted)


def within_rows(
    pieces: Sequence[Piece], layouts: Mapping[str, Layout], kept: set[str]
) -> tuple[Piece, ...]:
    """The pieces with such lines in their kernels, and without what nothing reads: others, or the
    caller, for whom values are ``kept``.
    """
    found = [*pieces]
    at = 0
    while at < len(found):
        if isinstance(found[at], TileKernel):
            at = _moved(found, at, {*layouts})
        at += 1
    for at, piece in enumerate(found):
        if isinstance(piece, TileKernel):
            others = [other for other in found if other is not piece]
            read = kept.union(*map(reads_of, others))
            stored = [s for s in piece.stored if s.name in read]
            made = [s.name for s in (*piece.before, *piece.after)]
            stored += [Stored(n, layouts[n], (), n) for n in made if n in read]
            found[at] = replace(piece, stored=tuple(stored))
    return tuple(found)


def _moved(found: list[Piece], at: int, names: set[str]) -> int:
    """Moves lines into the kernel at a place; the place that it has then."""
    kernel: TileKernel = found[at]
    sums = {each.name for each in kernel.stored if not each.more}
    later = {name for piece in found[at + 1 :] for name in made_by(piece)}
    ready = names - later
    after: list[WholeLine] = []
    for piece in found[at + 1 :]:
        if not isinstance(piece, WholeLine) or not _is_row(kernel, piece):
            continue
        names = reads_of(piece)
        if names & sums and names <= ready | sums and not _is_late(found[at + 1 :], names, piece):
            after.append(piece)
            sums.add(piece.step.name)
    for piece in after:
        found.remove(piece)
    read = reads_of(kernel) | {n for piece in after for n in reads_of(piece)}
    before: list[WholeLine] = []
    for piece in reversed(found[:at]):
        others = [p for p in found[:at] if p is not piece and p not in before]
        makes = made_by(piece)
        is_own = isinstance(piece, WholeLine) and makes & read and _is_row(kernel, piece, True)
        if is_own and not any(reads_of(p) & makes for p in others):
            before.insert(0, piece)
            read |= reads_of(piece)
    for piece in before:
        found.remove(piece)
    at -= len(before)
    found[at] = replace(
        kernel,
        before=tuple(piece.step for piece in before),
        after=tuple(piece.step for piece in after),
    )
    return at


def _is_late(pieces: Iterable[Piece], names: set[str], line: WholeLine) -> bool:
    """True if a piece between makes one of these names, a second value of it."""
    for piece in pieces:
        if piece is line:
            return False
        if isinstance(piece, TileKernel) and made_by(piece) & names:
            return True
    return False


def _is_row(kernel: TileKernel, piece: WholeLine, is_vector: bool = False) -> bool:
    """True if each entry of a line is made of those of its row, with one axis of their own."""
    step = piece.step
    if not isinstance(step, Assign):
        return False
    value = step.value
    while isinstance(value, Arrange):
        value = value.operand
    inner = value.operand if isinstance(value, Reduce) and value.kind == "sum" else value
    axes = of_rows(inner, kernel)
    own = of_rows(value, kernel)
    if kernel.own not in own or len(axes) > 2 or (is_vector and len(own) > 1):
        return False
    if isinstance(value, Reduce) and len(axes) != len(own) + 1:
        return False
    every = (inner, *values_in(inner))
    if any({*of_rows(v, kernel)} & {*kernel.long} for v in every):
        return False
    alike = all({*of_rows(v, kernel)} <= {*axes} for v in every)
    return alike and all(isinstance(v, IN_ROWS) and not isinstance(v, Contract) for v in every)


def of_rows(value: Value, kernel: TileKernel) -> list[str]:
    """The axes of a value apart from those of the grid."""
    names = [d.axis.name for d in value.dims if not d.one]
    return [name for name in names if name not in kernel.grid]


def reads_of(piece: Piece) -> set[str]:
    steps = (
        [piece.step] if isinstance(piece, WholeLine) else [*piece.before, *piece.body, *piece.after]
    )
    found: set[str] = set()
    for step in steps:
        value = step.value if isinstance(step, TileSum) else step
        found |= {v.name for v in (value, *values_in(value)) if isinstance(v, Load)}
    return found


def made_by(piece: Piece) -> set[str]:
    if isinstance(piece, WholeLine):
        return {piece.step.name}
    return {each.name for each in (*piece.stored, *piece.written)}
