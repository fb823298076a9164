"""The formats of a document, next to the terminal's own: each a function from it to text."""

from __future__ import annotations

from collections.abc import Callable

from derive.language.formulas.latex_names import told_apart
from derive.show.document import Document
from derive.show.markdown import markdown
from derive.show.paper import latex_document


def _page(document: Document) -> str:
    from derive.show.html import page  # with Jinja, which no other format needs

    return page(document)


FORMATS: dict[str, Callable[[Document], str]] = {
    "markdown": told_apart()(markdown),
    "latex": told_apart()(latex_document),
    "html": _page,
}
