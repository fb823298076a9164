"""A document as a page: one file that needs no network.

Formulas are MathML, the graph is inline SVG, a derivation opens where it is clicked. Words reach
the page through the templates alone, which escape them; the MathML is escaped by its printer.
The page's script only hides what is there already, and asks for it.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shlex import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from derive.language.formulas.latex_names import told_apart
from derive.language.formulas.mathml import equation, inline, mathml, matrix
from derive.language.formulas.words import Side, Words, parts_of
from derive.language.symbols import Tensor
from derive.running.writing import MARK
from derive.show.document import (
    Block,
    Checkable,
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
from derive.show.graph import drawing
from derive.show.numbers import numbers_of

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


# As they stand in a stylesheet; the playground has a stylesheet of its own, and none of the files.
TEMPLATES.globals["fonts"] = {
    file.stem: b64encode(file.read_bytes()).decode()
    for file in (Path(__file__).parent / "fonts").glob("*.woff2")
}

# Control characters, and halves of characters, which UTF-8 does not know.
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Sentence(list[str | Markup]):
    """A sentence for a template: text, which it escapes, and formulas."""

    @property
    def formulas(self) -> bool:
        """Whether it has formulas: these do not wrap, so a long one is scrolled."""
        return any(isinstance(part, Markup) for part in self)


@dataclass(frozen=True)
class AlignedLine:
    """A line of aligned equations; formulas are MathML, the rest are words."""

    left: Markup
    relation: str
    right: Markup
    shape: str
    remark: Sentence
    of: str


@dataclass(frozen=True)
class PageLinks:
    """Links from a page to the rest of the site: addresses, each with the text of its link.

    ``playground`` is the address at which a page asks for a verdict on its reader's own lines.
    """

    links: tuple[tuple[str, str], ...] = ()
    playground: str = ""


@told_apart()
def page(document: Document, around: PageLinks = PageLinks()) -> str:
    """The document as one HTML file."""
    asked = document.checkable
    judge = _address(around.playground, asked) if around.playground and asked else ""
    known = {"asked": quote(asked.asked), "of": " ".join(asked.tensors)} if asked else {"asked": ""}
    teach = _filled("teach", judge=judge, **known)
    body = _article(document, contents=True, teach=teach)
    return file_of("page", title=document.name, body=body, around=around, **script("teach"))


def script(name: str) -> dict[str, str]:
    """A script for a page, and its hash for the page's policy."""
    text = TEMPLATES.get_template(f"{name}.js.jinja").render()
    return {"script": Markup(text), "hash": b64encode(sha256(text.encode()).digest()).decode()}


def _address(playground: str, asked: Checkable) -> str:
    """The address of the playground with the forward filled in, which it reads as
    ``playground/link.js`` writes it.
    """
    state = {"v": 1, "tab": "check", "text": asked.text, "name": asked.name}
    packed = zlib.compressobj(zlib.Z_BEST_COMPRESSION, wbits=-zlib.MAX_WBITS)
    letters = packed.compress(json.dumps(state).encode()) + packed.flush()
    return f"{playground}#{urlsafe_b64encode(letters).decode().rstrip('=')}"


def fragment(document: Document) -> str:
    """The document as a part of another page, with styles that reach no further and take
    the colour of the text around it.
    """
    return file_of("fragment", body=_article(document))


def parts(document: Document) -> tuple[tuple[str, str], ...]:
    """The title of every section and what stands below it, for a page that arranges them itself;
    ``style`` are the rules that it needs.
    """
    return tuple((s.title, _printable("\n".join(map(_block, s.blocks)))) for s in document.sections)


def style() -> str:
    """The stylesheet of all pages."""
    return TEMPLATES.get_template("style.css.jinja").render()


def _article(document: Document, contents: bool = False, teach: str = "") -> Markup:
    keys = keys_of(s.title for s in document.sections)
    blocks = ([_block(b) for b in s.blocks] for s in document.sections)
    sections = [(s.title, k, b) for s, k, b in zip(document.sections, keys, blocks, strict=True)]
    kinds = ["lede", *["source"] * len(document.summary)]
    summary = list(zip(kinds, map(sentence, document.summary), strict=False))
    listed = [(title, key) for title, key, _ in sections] if contents else []
    named = {"name": document.name, "summary": summary, "contents": listed, "teach": teach}
    return _filled("document", sections=sections, **named)


def keys_of(titles: Iterable[str]) -> list[str]:
    """Anchors of titles, as on GitHub: each unique."""
    found: list[str] = []
    for title in titles:
        key = re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") or "section"
        taken = sum(
            k == key or re.fullmatch(rf"{re.escape(key)}-\d+", k) is not None for k in found
        )
        found.append(f"{key}-{taken}" if taken else key)
    return found


def file_of(template: str, **values) -> str:
    """A template filled, as the text of a file."""
    return _printable(TEMPLATES.get_template(f"{template}.html.jinja").render(mark=MARK, **values))


def _printable(text: str) -> str:
    return UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _filled(template: str, **values) -> Markup:
    return Markup(TEMPLATES.get_template(f"{template}.html.jinja").render(**values))


def _block(block: Block) -> Markup:
    if isinstance(block, Prose):
        return _filled("prose", words=sentence(block.words))
    if isinstance(block, Equations):
        return _filled("equations", lines=list(map(_line, block.lines)), steps=block.steps)
    if isinstance(block, Derivation):
        return _derivation(block)
    if isinstance(block, Matrix):
        formula = Markup(matrix(block.name, block.rows))
        return _filled("matrix", formula=formula, remark=sentence(block.remark))
    if isinstance(block, Code):
        return _filled("code", lines=block.lines)
    if isinstance(block, Foldable):
        blocks = list(map(_block, block.blocks))
        return _filled("group", title=sentence(block.title), blocks=blocks)
    if isinstance(block, TensorGraph):
        return _graph(block)
    raise TypeError(f"nothing renders {type(block).__name__} on a page")


def _graph(graph: TensorGraph) -> Markup:
    known, batch = numbers_of(graph.numbered) if graph.numbered else ({}, "")
    numbers = [
        [Markup(matrix(m.name, m.rows)) for m in known[node.name]] for node in graph.nodes if known
    ]
    return _filled("graph", drawing=drawing(graph), numbers=numbers, batch=sentence(batch))


def _line(line: Equation) -> AlignedLine:
    left = Markup("") if line.is_term or not line.left else _formula(line.left)
    relation = line.relation.replace("-", "\N{MINUS SIGN}")
    name = line.left.name if isinstance(line.left, Tensor) else ""
    of = name[1:] if name and line.left.role == "adjoint" else ""
    remark = sentence(line.remark)
    return AlignedLine(left, relation, _formula(line.shown), line.shape, remark, of)


def _derivation(derivation: Derivation) -> Markup:
    title, claim = (
        sentence(derivation.title),
        Markup(equation(derivation.start.left, derivation.reached)),
    )
    said = title.formulas  # a title with a formula is the claim
    return _filled(
        "derivation",
        claim=title if said else [claim],
        title=[] if said else title,
        count=derivation.count,
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


def sentence(words: Words) -> Sentence:
    return Sentence(p if isinstance(p, str) else Markup(inline(p)) for p in parts_of(words))
