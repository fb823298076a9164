"""A document as a paper: a LaTeX file that needs amsmath and amssymb and compiles as it is."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator

from sympy import Add, Expr

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
from derive.presentation.latex import (
    formula_lines,
    latex_formula,
    latex_text,
    text_in_formula,
    width,
)

# Widths are counted in letters of a formula; a line of the page holds 98 of them.
LINE, REMARKS, LONG_LEFT = 98, 34, 24
COLUMNS = 8

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
\begin{document}
"""


def latex_document(document: Document) -> str:
    """A whole ``.tex`` file."""
    parts = [PREAMBLE, f"\\section*{{{latex_text(document.name)}}}\n"]
    if document.summary:
        parts.append(f"{latex_text(document.summary.split(chr(10) * 2)[0])}\n")
    for section in document.sections:
        parts.append(f"\\subsection*{{{latex_text(section.title)}}}\n%")
        parts += [f"{text}\n%" for block in section.blocks for text in _block(block)]
    return "\n".join([*parts, "\\end{document}\n"])


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Prose):
        words = re.split("`([^`]*)`", block.text)
        yield "".join(
            rf"\texttt{{{latex_text(part)}}}" if i % 2 else latex_text(part)
            for i, part in enumerate(words)
        )
    elif isinstance(block, Equations):
        yield aligned(block.lines)
    elif isinstance(block, Derivation):
        yield heading(block, latex_text, "%\n") + aligned((block.start, *block.steps))
    elif isinstance(block, Matrix):
        yield from _matrix(block)
    elif isinstance(block, Code):
        yield _verbatim(block.lines)
    elif not isinstance(block, Graph):  # a graph is for a page
        raise TypeError(f"nothing writes {type(block).__name__} in LaTeX")


def heading(derivation: Derivation, escape: Callable[[str], str], end: str) -> str:
    """What is derived, where the first line does not say it already."""
    named = derivation.title == str(derivation.start.left)
    return "" if named else f"{escape(derivation.title)}:\n{end}"


def aligned(lines: Iterable[Equation]) -> str:
    """One display: left sides, right sides, remarks in a column of their own."""
    return _display([(left_side(line), line) for line in lines])


def left_side(line: Equation) -> str:
    return "" if line.left == "+" else side(line.left)


def _display(lines: list[tuple[str, Equation]]) -> str:
    widest = max((w for left, _ in lines if (w := width(left)) <= LONG_LEFT), default=0)
    remarks = any(line.remark or line.shape for _, line in lines)
    room = LINE - widest - 3 - (REMARKS if remarks else 0)
    body = " \\\\\n".join(row for left, line in lines for row in _rows(left, line, room))
    return f"\\begin{{flalign*}}\n{body}\n\\end{{flalign*}}"


def _rows(left: str, line: Equation, room: int) -> Iterator[str]:
    if width(left) > LONG_LEFT:
        yield rf"\rlap{{$\displaystyle {left}$}} & &&"
        left = ""
    remark = ", ".join(filter(None, [line.shape, line.remark]))
    *before, last = right_lines(line, room - 3)
    start = f"{left} &{sign_of(line)} "
    for text in before:
        yield f"{start}{fitted(text, room)} &&"
        start = r"&\qquad {}"
    yield f"{start}{fitted(last, room)} &&" + (rf" \remark{{{latex_text(remark)}}}" * bool(remark))


def sign_of(line: Equation) -> str:
    """``=``, or the sign of a term that is added to the line above."""
    return ("-" if _subtracted(line) else "+") if line.left == "+" else "="


def _subtracted(line: Equation) -> bool:
    e = line.right
    return isinstance(e, Expr) and not isinstance(e, Add) and e.could_extract_minus_sign()


def right_lines(line: Equation, room: int) -> list[str]:
    """What stands behind the sign."""
    if isinstance(line.right, str):
        return [text_in_formula(line.right)]
    term = line.left == "+"
    return formula_lines(-line.right if term and _subtracted(line) else line.right, room)


def fitted(text: str, room: int) -> str:
    """A line that cannot be broken, in letters so small that it stays on the page."""
    share = room / max(width(text), 1)
    for size, least in (("", 1), ("footnotesize", 0.8), ("scriptsize", 0.7)):
        if share >= least:
            return rf"\mbox{{\{size}$\displaystyle {text}$}}" if size else text
    return rf"\mbox{{\tiny$\displaystyle {text}$}}"


def side(side: Side) -> str:
    return text_in_formula(side) if isinstance(side, str) else latex_formula(side)


def _matrix(matrix: Matrix) -> Iterator[str]:
    if matrix.remark:
        yield latex_text(f"{matrix.remark[0].upper()}{matrix.remark[1:]}:")
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
    """The entries one below the other, each under its row and column."""
    name = side(matrix.name)
    for r, row in enumerate(matrix.rows, 1):
        for c, e in enumerate(row, 1):
            place = f"{r},{c}" if len(matrix.rows) > 1 else f"{c}"
            yield f"{name}_{{{place}}}", Equation("", e)


def _verbatim(lines: Iterable[tuple[str, str]]) -> str:
    shown = []
    for name, line in lines:
        text = f"{name}: {line}".encode("ascii", "backslashreplace").decode()
        text = "".join(c if c.isprintable() else " " for c in text)
        shown += textwrap.wrap(text, 90, subsequent_indent="    ")
    body = "\n".join(shown).replace(r"\end{verbatim}", r"\end {verbatim}")
    return f"\\begin{{verbatim}}\n{body}\n\\end{{verbatim}}"
