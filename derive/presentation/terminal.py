"""A document in the terminal: in the width it has, in colour where it has colours, plain when
piped.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from derive.presentation.document import (
    Block,
    Code,
    Derivation,
    Document,
    Equation,
    Equations,
    Graph,
    Matrix,
    Prose,
    Side,
)
from derive.presentation.unicode import unicode_formula

HEADING, REMARK, SHAPE, NAME = "bold", "dim", "cyan", "bold"


def rendered(document: Document) -> Group:
    """The whole document for a rich console."""
    parts: list[RenderableType] = [Text(document.name, style=f"{HEADING} underline")]
    if document.summary:
        parts.append(Text(document.summary.split("\n\n")[0].replace("\n", " ")))
    for section in document.sections:
        parts += [Text(), Text(section.title, style=HEADING)]
        for block in section.blocks:
            parts += [Padding(part, (0, 0, 0, 2)) for part in _block(block)]
    return Group(*parts)


def _block(block: Block) -> Iterator[RenderableType]:
    if isinstance(block, Prose):
        yield Text(block.text)
    elif isinstance(block, Equations):
        yield _aligned(block.lines)
    elif isinstance(block, Derivation):
        if block.title != str(block.start.left):
            yield Text(block.title, style=NAME)
        yield _aligned((block.start, *block.steps))
        yield Text()
    elif isinstance(block, Matrix):
        yield from _matrix(block)
    elif isinstance(block, Code):
        yield _two_columns(block.lines)
    elif not isinstance(block, Graph):  # a graph is for a page
        raise TypeError(f"nothing renders {type(block).__name__} in a terminal")


def _aligned(lines: tuple[Equation, ...]) -> Table:
    """name  shape  = formula   remark"""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    shapes = any(line.shape for line in lines)
    if shapes:
        table.add_column(no_wrap=True, style=SHAPE)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", ratio=3)
    table.add_column(style=REMARK, ratio=2)
    for line in lines:
        plus = line.left == "+"
        left = Text("" if plus else _side(line.left), style=NAME)
        cells = [left, *([Text(line.shape)] if shapes else []), Text("+" if plus else "=")]
        table.add_row(*cells, Text(_side(line.right)), Text(line.remark))
    return table


def _matrix(matrix: Matrix) -> Iterator[RenderableType]:
    yield Text(f"{_side(matrix.name)}  {matrix.remark}".rstrip(), style=NAME)
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


def _side(side: Side) -> str:
    return side if isinstance(side, str) else unicode_formula(side)
