"""Writing generated modules: all of them or none, into a folder that is a package."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from derive import writing

MARKER = '"""Generated modules. Not edited by hand."""\n'


def write_modules(texts: Mapping[Path, str]) -> None:
    """Replace every file by its new text; a folder that is made for them can be imported from.

    Raises `QuestionError` where the folder cannot be written.
    """
    new = {path.parent for path in texts if not path.parent.exists()}
    markers = {folder / "__init__.py": MARKER for folder in sorted(new)}
    writing.write_all(dict(texts) | markers, "choose another folder with --out")
