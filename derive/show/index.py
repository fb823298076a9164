"""The page that leads to the others: by kind, each with its formula, and a search that needs no
network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from derive.language.formulas.mathml import equation
from derive.show.document import Document
from derive.show.html import PageLinks, Sentence, file_of, keys_of, script, sentence


@dataclass(frozen=True)
class IndexPage:
    """A page in the index: its file, its name, what it is, and its formula, if it has one."""

    page: str
    name: str
    about: Sentence
    formula: Markup | None


def index(
    groups: Mapping[str, Mapping[str, Document]], title: str, about: str, around: PageLinks
) -> str:
    """``groups`` has the documents of a kind, each by the name of its file."""
    entries = [[_entry(*item) for item in own.items()] for own in groups.values()]
    values = {
        "groups": list(zip(groups, keys_of(groups), entries, strict=True)),
        **script("search"),
    }
    return file_of("index", title=title, about=about, around=around, **values)


def _entry(file: str, document: Document) -> IndexPage:
    about = sentence(document.summary[0] if document.summary else "")
    line = document.headline
    formula = Markup(equation(line.left, line.right)) if line is not None else None
    return IndexPage(file, document.name, about, formula)
