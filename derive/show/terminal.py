"""A document in the terminal: in the width it has, in colour where it has colours, plain when
piped.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from derive.language.formulas.unicode import unicode_formula, words_of
from derive.show.document import (
    Block,
    Code,
    Derivation,
    Document,
    Equation,
    Equations,
    Matrix,
    Prose,
    TensorGraph,
)
from derive.show.document import Foldable as Folded

FOLDED = "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}"
OPENS = (
    f"{FOLDED} an overview: --of INPUT shows the steps to one gradient, --format html all of them"
)
SHORTEST_REMARK = 28  # columns; narrower, and it stands on a line of its own
HEADING, REMARK, SHAPE, NAME = "bold", "dim", "cyan", "bold"


def rendered(document: Document) -> Group:
    """The whole document for a rich console."""
    parts: list[RenderableType] = [Text(document.name, style=f"{HEADING} underline")]
    parts += [Text(words_of(paragraph)) for paragraph in document.summary]
    for section in document.sections:
        parts += [Text(), Text(section.title, style=HEADING)]
        for i, block in enumerate(section.blocks):
            if (
                i
                and not document.overview
                and {Derivation} & {type(block), type(section.blocks[i - 1])}
            ):
                parts.append(Text())
            shown = _claim(block) if document.overview else _block(block)
            parts += [Padding(part, (0, 0, 0, 2)) for part in shown]
    if document.overview:
        parts += [Text(), Text(OPENS, style=REMARK)]
    return Group(*parts)


def _claim(block: Block) -> Iterator[RenderableType]:
    """A line for what a page opens on a click."""
    if isinstance(block, Derivation):
        reached = f"{words_of(block.start.left)} = {words_of(block.reached)}"
        claim = words_of(block.title) or reached
        yield Text.assemble(f"{FOLDED} {claim}  ", (f"({block.count})", REMARK))
    elif isinstance(block, Folded):
        yield Text(f"{FOLDED} {words_of(block.title)}", style=REMARK)
    else:
        yield from _block(block)


def _block(block: Block) -> Iterator[RenderableType]:
    if isinstance(block, Prose):
        yield Text(words_of(block.words))
    elif isinstance(block, Equations):
        yield _Aligned(block.lines)
    elif isinstance(block, Derivation):
        if block.title:
            yield Text(words_of(block.title), style=NAME)
        yield _Aligned((block.start, *block.steps))
    elif isinstance(block, Matrix):
        yield from _matrix(block)
    elif isinstance(block, Code):
        yield _two_columns(block.lines)
    elif isinstance(block, Folded):
        yield Text(words_of(block.title), style=NAME)
        for inner in block.blocks:
            yield from _block(inner)
    elif not isinstance(block, TensorGraph):  # a graph is for a page
        raise TypeError(f"nothing renders {type(block).__name__} in a terminal")


class _Aligned:
    """name  shape  = formula   remark

    Where a formula and its remark do not fit beside each other, the remark stands below.
    """

    def __init__(self, lines: tuple[Equation, ...]):
        self.lines = lines
        self.shapes = any(line.shape for line in lines)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        beside = self._width() + SHORTEST_REMARK <= options.max_width
        table = Table.grid(padding=(0, 1))
        for style in (NAME, SHAPE, "") if self.shapes else (NAME, ""):
            table.add_column(no_wrap=True, style=style)
        table.add_column(overflow="fold", no_wrap=beside and self._width() > 0)
        if beside:
            table.add_column(style=REMARK)
        for line in self.lines:
            remark = Text(words_of(line.remark), style=REMARK)
            below = [remark] if remark and not beside else []
            formula = Group(Text(words_of(line.shown)), *(Padding(r, (0, 0, 0, 2)) for r in below))
            table.add_row(*self._start(line), formula, *([remark] if beside else []))
        yield table

    def _start(self, line: Equation) -> list[Text]:
        name = "" if line.is_term else words_of(line.left)
        relation = line.relation.replace("-", "\N{MINUS SIGN}")
        return [Text(name), *([Text(line.shape)] if self.shapes else []), Text(relation)]

    def _width(self) -> int:
        """The width of a row without its remark; 0 if no line has a remark."""
        if not any(line.remark for line in self.lines):
            return 0
        rows = [[*self._start(line), Text(words_of(line.shown))] for line in self.lines]
        return sum(max(cell.cell_len for cell in column) + 1 for column in zip(*rows, strict=True))


def _matrix(matrix: Matrix) -> Iterator[RenderableType]:
    yield Text(f"{words_of(matrix.name)}  {words_of(matrix.remark)}".rstrip(), style=NAME)
    table = Table.grid(padding=(0, 2))
    for _ in range(max(map(len, matrix.rows), default=0)):
        table.add_column(overflow="fold")
    for row in matrix.rows:
        table.add_row(*(Text(unicode_formula(e)) for e in row))
    yield Padding(table, (0, 0, 0, 2))


def _two_columns(lines: tuple[tuple[str, str], ...]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style=NAME)
    table.add_column(overflow="fold")
    for name, line in lines:
        table.add_row(Text(name), Text(line))
    return table
