"""Write a page for every forward, the documentation, and an index.

In: forwards and a folder. Out: files, all of them or none: every page is made before the first is
written, and each file is replaced in one move.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from derive.derivation import derive
from derive.language.errors import CERTIFICATES, MATH, QuestionError
from derive.language.notation.forward import Forward
from derive.language.notation.library import files_read
from derive.proof.proving.certified import LIBRARY
from derive.running.writing import refuse, write_all
from derive.show.document import Document
from derive.show.handbook import handbook
from derive.show.html import PageLinks, page
from derive.show.index import index
from derive.show.sections import document_of

INDEX, DOCS = "index.html", "docs"
REMEDY = "choose another folder with --output"
TITLE = "Gradients"
ABOUT = "The closed form of every gradient, how it comes about, and what was proved of it."
OWN = "Your own"  # category of forwards outside derive/math

Forwards = Iterable[type[Forward]]


@dataclass(frozen=True)
class SiteLinks:
    """Other targets of a site's links: the addresses of a playground and of lessons, relative to
    its index, and the folder of the documentation, which becomes part of the site.
    """

    playground: str = ""
    lessons: str = ""
    docs: Path | None = None

    def links(self, up: str = "") -> tuple[tuple[str, str], ...]:
        """Existing links, each with its words; ``up`` leads to the index of the site."""
        docs = f"{DOCS}/{INDEX}" if self.docs else ""
        found = [
            (self.lessons, "Lessons"),
            (docs, "Documentation"),
            (self.playground, "Playground"),
        ]
        return tuple((f"{up}{address}", words) for address, words in found if address)


def write_site(
    folder: Path,
    forwards: Forwards,
    progress: Callable[[Forwards], Forwards] = iter,
    force: bool = False,
    beside: SiteLinks = SiteLinks(),
) -> list[Path]:
    """Derive every forward and write its page; returns the files, the index first.

    ``progress`` is handed the forwards and gives them back one by one, as a progress bar does.
    Raises `UnprovedError` where a forward is not proved and `QuestionError` where two would have
    the same page, the folder cannot be written or, without ``force``, something in it is not
    gradform's; nothing is written then.
    """
    chosen: dict[str, type[Forward]] = {}
    for forward in forwards:
        file = f"{forward.definition.snake}.html"
        if file in chosen or file == INDEX:
            raise QuestionError(
                f"two pages would have the name {file}",
                f"rename {forward.__name__}, or leave it out",
            )
        chosen[file] = forward
    prose = (
        {} if beside.docs is None else handbook(beside.docs, _around(beside.links("../"), "../"))
    )
    prose = {f"{DOCS}/{file}": text for file, text in prose.items()}
    refuse([folder / file for file in (INDEX, *chosen, *prose)], REMEDY, files_read(), force)
    derived = progress(list(chosen.values()))
    documents = {f.definition.snake: document_of(derive(f)) for f in derived}
    groups: dict[str, dict[str, Document]] = {kind: {} for kind in (*_kinds().values(), OWN)}
    for file, forward in chosen.items():
        groups[_kind(forward)][file] = documents[forward.definition.snake]
    pages = pages_of(groups, TITLE, ABOUT, beside.links(), beside.playground)
    texts = {folder / file: text for file, text in (pages | prose | _proofs(documents)).items()}
    write_all(texts, REMEDY, files_read(), force)
    return list(texts)


def pages_of(
    groups: Mapping[str, Mapping[str, Document]],
    title: str,
    about: str,
    links: tuple[tuple[str, str], ...] = (),
    playground: str = "",
) -> dict[str, str]:
    """The text of every page by the name of its file, the index first; ``groups`` has the documents
    of a kind, and those that are empty are left out. Pages ask the playground at this address.
    """
    around = ((INDEX, title), *links)
    groups = {kind: documents for kind, documents in groups.items() if documents}
    together = {f: document for documents in groups.values() for f, document in documents.items()}
    pages = {
        file: page(document, PageLinks((*around, *_links_of(document)), playground))
        for file, document in together.items()
    }
    return {INDEX: index(groups, title, about, PageLinks(links))} | pages


def _links_of(document: Document) -> tuple[tuple[str, str], ...]:
    return ((document.certificate, "Certificate"),) if document.certificate else ()


def _proofs(documents: Mapping[str, Document]) -> dict[str, str]:
    """The certificates of the pages, and the library that Coq reads with them."""
    files = {d.certificate for d in documents.values() if d.certificate}
    files |= {str(Path(file).with_name(LIBRARY)) for file in files}
    return {file: (CERTIFICATES.parent / file).read_text("utf-8") for file in sorted(files)}


def _around(links: tuple[tuple[str, str], ...], up: str) -> PageLinks:
    return PageLinks(((f"{up}{INDEX}", TITLE), *links))


def _kinds() -> dict[str, str]:
    """The category of every file in ``derive/math``."""
    kinds = tomllib.loads((MATH / "kinds.toml").read_text("utf-8"))
    return {file: kind for kind, files in kinds.items() for file in files}


def _kind(forward: type[Forward]) -> str:
    file = Path(forward.definition.place.file)
    return _kinds()[file.stem] if file.parent == MATH else OWN
