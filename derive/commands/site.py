"""A page for every forward, and an index that leads to them.

In: forwards and a folder. Out: files, all of them or none: every page is made before the first is
written, and a file is replaced in one move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from derive.derivation import derive
from derive.language.errors import QuestionError
from derive.notation.forward import Forward
from derive.notation.library import files_read
from derive.presentation.document import Document
from derive.presentation.html import Around, index, page
from derive.presentation.sections import document_of
from derive.running.writing import refuse, write_all

INDEX = "index.html"
REMEDY = "choose another folder with --output"
ABOUT = "The closed form of every gradient, how it comes about, and what was proved of it."

Forwards = Iterable[type[Forward]]


def write_site(
    folder: Path,
    forwards: Forwards,
    progress: Callable[[Forwards], Forwards] = iter,
    force: bool = False,
    playground: str = "",
) -> list[Path]:
    """Derive every forward and write its page; returns the files, the index first.

    ``progress`` is handed the forwards and gives them back one by one, as a progress bar does.
    ``playground`` is the address that every page leads to, if there is one.
    Raises `UnprovedError` where a forward is not proved and `QuestionError` where two would have
    the same page, the folder cannot be written or, without ``force``, something in it is not
    gradform's; nothing is written then.
    """
    chosen: dict[str, type[Forward]] = {}
    for forward in forwards:
        file = f"{forward.definition.snake}.html"
        if file in chosen or file == INDEX:
            raise QuestionError(
                f"two pages would be called {file}", f"rename {forward.__name__}, or leave it out"
            )
        chosen[file] = forward
    refuse([folder / file for file in (INDEX, *chosen)], REMEDY, files_read(), force)
    derived = progress(list(chosen.values()))
    documents = {f"{f.definition.snake}.html": document_of(derive(f)) for f in derived}
    pages = pages_of(documents, "Gradients", ABOUT, playground)
    texts = {folder / file: text for file, text in pages.items()}
    write_all(texts, REMEDY, files_read(), force)
    return list(texts)


def pages_of(
    documents: Mapping[str, Document], title: str, about: str, playground: str = ""
) -> dict[str, str]:
    """The text of every page by the name of its file, the index first."""
    around = Around(INDEX, title, playground)
    pages = {file: page(document, around) for file, document in documents.items()}
    return {INDEX: index(documents, title, about, Around(playground=playground))} | pages
