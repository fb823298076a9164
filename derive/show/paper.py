"""A document as a paper: a LaTeX file that needs amsmath and amssymb and compiles as it is."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from sympy import Expr

from derive.language.formulas.latex import latex_formula
from derive.language.formulas.latex_lines import formula_lines, width
from derive.language.formulas.latex_names import latex_text, text_in_formula, with_index
from derive.language.formulas.unicode import words_of as plain_words
from derive.language.formulas.words import Side, Words, parts_of
from derive.running.writing import MARK
from derive.show.document import (
    Block,
    Code,
    Derivation,
    Document,
    Equation,
    Equations,
    Foldable,
    Matrix,
    Prose,
    TensorGraph,
)

# Widths are counted in letters of a formula; a line of the page holds 98 of them.
LINE, REMARKS, LONG_LEFT = 98, 35, 24  # letters: of a line, a remark and a long left side
COLUMNS = 8  # of a matrix that fits the page
VERBATIM = 90  # characters of the typewriter on a line
# LaTeX's sizes of letters, each with its share of the usual one.
SIZES = (("", 1), ("footnotesize", 0.8), ("scriptsize", 0.7))

PREAMBLE = r"""\documentclass[10pt,a4paper]{article}
\usepackage{amsmath,amssymb}
\setlength{\oddsidemargin}{-5mm}
\setlength{\textwidth}{170mm}
\setlength{\topmargin}{-15mm}
\setlength{\textheight}{250mm}
\setlength{\parindent}{0pt}
\setlength{\parskip}{4pt}
\setlength{\jot}{5pt}
\setcounter{MaxMatrixCols}{32}
\allowdisplaybreaks
\providecommand{\remark}[1]{\parbox[t]{50mm}{\raggedright\footnotesize #1}}
\providecommand{\shortremark}[1]{\mbox{\footnotesize #1}}
\begin{document}
"""


def latex_document(document: Document) -> str:
    """A whole ``.tex`` file."""
    parts = [f"% {MARK}", PREAMBLE, f"\\section*{{{latex_text(document.name)}}}\n"]
    parts += [f"{words_of(paragraph)}\n" for paragraph in document.summary]
    for section in document.sections:
        parts.append(f"\\subsection*{{{latex_text(section.title)}}}\n%")
        parts += [f"{text}\n%" for block in section.blocks for text in _block(block)]
    return "\n".join([*parts, "\\end{document}\n"])


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Prose):
        yield words_of(block.words)
    elif isinstance(block, Equations):
        yield aligned(block.lines)
    elif isinstance(block, Derivation):
        title = f"{words_of(block.title)}:%\n" if block.title else ""
        yield title + aligned((block.start, *block.steps))
    elif isinstance(block, Matrix):
        yield from _matrix(block)
    elif isinstance(block, Code):
        yield _verbatim(block.rows)
    elif isinstance(block, Foldable):  # paper has room for all of it
        yield rf"\paragraph{{{words_of(block.title)}}}"
        for inner in block.blocks:
            yield from _block(inner)
    elif not isinstance(block, TensorGraph):  # a graph is for a page
        raise TypeError(f"nothing writes {type(block).__name__} in LaTeX")


def words_of(words: Words) -> str:
    """A sentence with its formulas."""
    return "".join(
        latex_text(part) if isinstance(part, str) else f"${latex_formula(part)}$"
        for part in parts_of(words)
    )


def aligned(lines: Iterable[Equation]) -> str:
    """One display: left sides, right sides, remarks in a column of their own."""
    return _display([(left_side(line), line) for line in lines])


def left_side(line: Equation) -> str:
    return "" if line.is_term else side(line.left)


def _display(lines: list[tuple[str, Equation]]) -> str:
    widest = max((w for left, _ in lines if (w := width(left)) <= LONG_LEFT), default=0)
    remarks = max(len(f"{line.shape} {plain_words(line.remark)}") for _, line in lines)
    room = LINE - widest - 3 - (min(remarks + 2, REMARKS) if remarks > 1 else 0)
    command = "shortremark" if remarks + 2 < REMARKS else "remark"
    rows = (row for left, line in lines for row in _rows(left, line, room, command))
    body = " \\\\\n".join(rows)
    return f"\\begin{{flalign*}}\n{body}\n\\end{{flalign*}}"


def _rows(left: str, line: Equation, room: int, command: str) -> Iterator[str]:
    if width(left) > LONG_LEFT:
        yield rf"\rlap{{$\displaystyle {left}$}} & &&"
        left = ""
    remark = ", ".join(filter(None, [latex_text(line.shape), words_of(line.remark)]))
    *before, last = right_lines(line, room - 3)
    start = f"{left} &{line.relation} "
    for text in before:
        yield f"{start}{fitted(text, room)} &&"
        start = r"&\qquad {}"
    yield f"{start}{fitted(last, room)} &&" + (rf" \{command}{{{remark}}}" * bool(remark))


def right_lines(line: Equation, room: int) -> list[str]:
    """The lines of the right side, behind the sign."""
    shown = line.shown
    return formula_lines(shown, room) if isinstance(shown, Expr) else [side(shown)]


def fitted(text: str, room: int) -> str:
    """A line that cannot be broken, in letters so small that it stays on the page."""
    share = room / max(width(text), 1)
    for size, least in SIZES:
        if share >= least:
            return rf"\mbox{{\{size}$\displaystyle {text}$}}" if size else text
    return rf"\mbox{{\tiny$\displaystyle {text}$}}"


def side(side: Side) -> str:
    """One side of an equation: a formula, or words within one."""
    return "".join(
        text_in_formula(part) if isinstance(part, str) else latex_formula(part)
        for part in parts_of(side)
    )


def _matrix(matrix: Matrix) -> Iterator[str]:
    if matrix.remark:
        yield f"{words_of(matrix.remark)}:"
    whole = bracketed(matrix)
    yield f"\\[\n{whole}\n\\]" if whole else _display(list(entries(matrix)))


def bracketed(matrix: Matrix) -> str | None:
    """The matrix as one, if it fits on a line."""
    rows = [[latex_formula(e) for e in row] for row in matrix.rows]
    columns = max(map(len, rows), default=0)
    widths = [max(width(row[k]) for row in rows if k < len(row)) for k in range(columns)]
    if not rows or columns > COLUMNS or sum(widths) + 2 * columns > LINE - LONG_LEFT:
        return None
    body = " \\\\\n".join(" & ".join(row) for row in rows)
    return f"{side(matrix.name)} = \\begin{{bmatrix}}\n{body}\n\\end{{bmatrix}}"


def entries(matrix: Matrix) -> Iterator[tuple[str, Equation]]:
    """The entries below each other, each under its indices."""
    name = side(matrix.name)
    for place, e in matrix.placed:
        yield with_index(name, ",".join(map(str, place))) if place else name, Equation("", e)


def _verbatim(rows: Iterable[str]) -> str:
    shown = []
    for row in rows:
        text = row.encode("ascii", "backslashreplace").decode()
        text = "".join(c if c.isprintable() else " " for c in text)
        column = len(text) - len(text.lstrip()) + 4
        shown += textwrap.wrap(
            text,
            VERBATIM,
            subsequent_indent=" " * min(column, VERBATIM // 2),
            break_on_hyphens=False,
        )
    body = "\n".join(shown).replace(r"\end{verbatim}", r"\end {verbatim}")
    return f"\\begin{{verbatim}}\n{body}\n\\end{{verbatim}}"
