r"""A document in GitHub-flavoured Markdown: formulas between dollars, for KaTeX or MathJax.

Every derivation is one block ``$$\begin{aligned} ... \end{aligned}$$``. Inside of a formula nothing
remains that Markdown or a page would read as its own: no dollar, bar or angle bracket.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sympy import Basic

from derive.language.formulas.latex import latex_formula
from derive.language.formulas.latex_lines import width
from derive.language.formulas.unicode import words_of
from derive.language.formulas.words import Words, parts_of
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
from derive.show.paper import bracketed, entries, left_side, right_lines, side

ONE_LINE = 10**6  # letters of room: a cell of a table is never broken

LINE, BESIDE = 70, 105  # letters of a formula, and of a formula with its remark
SPECIAL = {c: f"\\{c}" for c in "\\`*_{}[]#!~"} | {
    "<": "&lt;",
    ">": "&gt;",
    "&": "&amp;",
    "$": "&#36;",
    "|": "&#124;",
}
IN_FORMULA = {"<": r"\lt ", ">": r"\gt ", "|": r"\vert "}


def markdown(document: Document) -> str:
    """The whole document; it ends with a line break."""
    parts = [f"<!-- {MARK} -->", f"# {escaped(document.name)}"]
    parts += map(_sentence, document.summary)
    for section in document.sections:
        parts.append(f"## {escaped(section.title)}")
        for block in section.blocks:
            parts += _block(block)
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """Escape words, so that nothing in them is Markdown or HTML."""
    return _not_a_list(_inside_a_line(" ".join(text.split())))


def _inside_a_line(text: str) -> str:
    return "".join(SPECIAL.get(c, c if c.isprintable() else " ") for c in text)


def _not_a_list(line: str) -> str:
    """Escape the start of a line that would be read as a list, a heading or a rule."""
    return re.sub(r"^(\d+)?([-+.)=])", r"\1\\\2", line)


def in_formula(tex: str) -> str:
    return "".join(IN_FORMULA.get(c, c) for c in tex)


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Prose):
        yield _sentence(block.words)
    elif isinstance(block, Equations):
        shapes = any(line.shape for line in block.lines)
        yield _table(block.lines) if shapes else _aligned(block.lines)
    elif isinstance(block, Derivation):
        title = f"{_sentence(block.title)}:\n\n" if block.title else ""
        yield title + _aligned((block.start, *block.steps))
    elif isinstance(block, Matrix):
        yield from _matrix(block)
    elif isinstance(block, Code):
        yield _fence("\n".join(block.rows))
    elif isinstance(block, Foldable):
        yield f"<details><summary>{escaped(words_of(block.title))}</summary>"
        for inner in block.blocks:
            yield from _block(inner)
        yield "</details>"
    elif not isinstance(block, TensorGraph):  # a graph is for a page
        raise TypeError(f"nothing writes {type(block).__name__} in Markdown")


def _sentence(words: Words) -> str:
    """Words with their formulas between dollars."""
    return _not_a_list("".join(map(_part, parts_of(words))))


def _part(part: str | Basic) -> str:
    if not isinstance(part, str):
        return f"${in_formula(latex_formula(part))}$"
    return _inside_a_line(re.sub(r"\s+", " ", part))


def _table(lines: Iterable[Equation]) -> str:
    rows = ["| | shape | | |", "|---:|:---|:---|:---|"]
    for line in lines:
        formula = r" ".join(right_lines(line, ONE_LINE))
        left = in_formula(left_side(line))
        cells = [
            f"${left}$" if left else "",
            escaped(line.shape),
            f"${line.relation} {in_formula(formula)}$",
            _sentence(line.remark),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _aligned(lines: Iterable[Equation]) -> str:
    return _display((left_side(line), line) for line in lines)


def _display(lines: Iterable[tuple[str, Equation]]) -> str:
    body = " \\\\\n".join(in_formula(row) for left, line in lines for row in _rows(left, line))
    return f"$$\n\\begin{{aligned}}\n{body}\n\\end{{aligned}}\n$$"


def _rows(left: str, line: Equation) -> Iterator[str]:
    first, *others = right_lines(line, LINE)
    rows = [f"{left} &{line.relation} {first}", *(rf"&\qquad {{}}{text}" for text in others)]
    if line.remark:
        remark = rf"{{\small {side(line.remark)}}}"
        if width(rows[-1]) + width(remark) <= BESIDE:
            rows[-1] += f" && {remark}"
        else:
            rows.append(rf"&\qquad {remark}")
    yield from rows


def _matrix(matrix: Matrix) -> Iterator[str]:
    if matrix.remark:
        yield f"{_sentence(matrix.remark)}:"
    whole = bracketed(matrix)
    yield f"$$\n{in_formula(whole)}\n$$" if whole else _display(entries(matrix))


def _fence(text: str) -> str:
    """A fence longer than any run of backquotes inside of it."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 0)
    return f"{fence}text\n{text}\n{fence}"
