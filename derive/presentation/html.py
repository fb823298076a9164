"""A document as a page: one file that needs no network and no script.

Formulas are MathML, the graph is inline SVG, a derivation opens where it is clicked. Words reach
the page through the templates alone, which escape them; the MathML is escaped by its printer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

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
from derive.presentation.graph import drawing
from derive.presentation.mathml import equation, mathml, matrix

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


# Control characters, and halves of characters, which UTF-8 does not know.
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class Line:
    """A line of aligned equations; formulas are MathML, the rest is text."""

    left: Markup
    relation: str
    right: Markup
    shape: str
    remark: str


@dataclass(frozen=True)
class Words:
    """A part of a paragraph: plain, or a name from the forward."""

    text: str
    is_name: bool


@dataclass(frozen=True)
class Entry:
    """A forward in the index: its page, its name, what it is."""

    page: str
    name: str
    about: str


def page(document: Document, home: str = "") -> str:
    """The document as one HTML file; ``home`` is the address of the index, if there is one."""
    return _file("page", title=document.name, body=part(document), home=home)


def index(documents: Mapping[str, Document]) -> str:
    """A page that leads to the others: ``documents`` by the name of their file."""
    entries = [
        Entry(file, document.name, (_paragraphs(document.summary) or [""])[0])
        for file, document in documents.items()
    ]
    return _file("index", title="Gradients", entries=entries)


def part(document: Document) -> Markup:
    """The document without a page around it."""
    sections = [(s.title, [_block(b) for b in s.blocks]) for s in document.sections]
    return _filled(
        "document", name=document.name, summary=_paragraphs(document.summary), sections=sections
    )


def _file(template: str, **values) -> str:
    text = TEMPLATES.get_template(f"{template}.html.jinja").render(**values)
    return UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _filled(template: str, **values) -> Markup:
    return Markup(TEMPLATES.get_template(f"{template}.html.jinja").render(**values))


def _block(block: Block) -> Markup:
    if isinstance(block, Prose):
        return _filled("prose", words=list(_words(block.text)))
    if isinstance(block, Equations):
        return _filled("equations", lines=list(map(_line, block.lines)))
    if isinstance(block, Derivation):
        return _derivation(block)
    if isinstance(block, Matrix):
        formula = Markup(matrix(block.name, block.rows))
        return _filled("matrix", formula=formula, remark=block.remark)
    if isinstance(block, Code):
        return _filled("code", lines=block.lines)
    if isinstance(block, Graph):
        return _filled("graph", drawing=drawing(block))
    raise TypeError(f"nothing renders {type(block).__name__} on a page")


def _line(line: Equation) -> Line:
    continued = line.left == "+"
    left = Markup("") if continued or not line.left else _formula(line.left)
    relation = "+" if continued else "="
    return Line(left, relation, _formula(line.right), line.shape, line.remark)


def _derivation(derivation: Derivation) -> Markup:
    steps = derivation.steps
    reached = steps[-1].right if steps else derivation.start.right
    return _filled(
        "derivation",
        claim=Markup(equation(derivation.start.left, reached)),
        title="" if derivation.title == str(derivation.start.left) else derivation.title,
        count=len(steps) + bool(derivation.start.remark),
        lines=list(map(_line, _chain(derivation))),
    )


def _chain(derivation: Derivation) -> Iterator[Equation]:
    """The lines of a derivation; one that begins with itself says so once."""
    start, steps = derivation.start, derivation.steps
    if steps and start.left == start.right:
        yield Equation(start.left, steps[0].right, steps[0].remark, start.shape)
        yield from steps[1:]
    else:
        yield from (start, *steps)


def _formula(side: Side) -> Markup:
    return Markup(mathml(side))


def _words(text: str) -> Iterator[Words]:
    for i, words in enumerate(text.split("`")):
        if words:
            yield Words(words, is_name=i % 2 == 1)


def _paragraphs(text: str) -> list[str]:
    return [" ".join(p.split()) for p in text.split("\n\n") if p.strip()]
