"""The forwards that come with gradform, as texts to begin from."""

from __future__ import annotations

from pathlib import Path

from codegen.files.for_users import text_for_users
from derive.language.notation.library import list_forwards


def gallery() -> list[dict[str, str]]:
    """Name, description and file text of every forward."""
    return [
        {
            "name": forward.__name__,
            "called": forward.definition.snake,
            "about": " ".join(forward.definition.doc.split("\n\n")[0].split()),
            "text": text_for_users(Path(forward.definition.place.file)),
        }
        for forward in list_forwards()
    ]
