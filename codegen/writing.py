"""Writing generated modules: all of them or none, into a folder that is a package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from derive.language.errors import QuestionError
from derive.running import writing
from derive.running.folders import is_empty

MARKER = '"""Generated modules. Not edited by hand."""\n'
REMEDY = "choose another folder with --out"


def write_modules(
    texts: Mapping[Path, str], inputs: Iterable[Path] = (), force: bool = False
) -> None:
    """Replace every file by its new text; from a folder that held nothing, modules can be imported.

    Raises `QuestionError` where the folder cannot be written, and what
    `derive.running.writing.refuse` raises.
    """
    folders = sorted({path.parent for path in texts})
    try:
        new = [folder for folder in folders if not folder.exists() or is_empty(folder)]
    except OSError as error:
        problem = f"{error.filename} cannot be written: {error.strerror}"
        raise QuestionError(problem, REMEDY) from None
    markers = {folder / "__init__.py": MARKER for folder in new}
    writing.write_all(markers | dict(texts), REMEDY, inputs, force)
