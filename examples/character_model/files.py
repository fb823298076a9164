"""Files of a run, written atomically; files of other programs are never replaced."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from character_model.mistakes import Mistake
from derive.language.errors import QuestionError
from derive.running.writing import refuse, write_all

REMEDY = "choose another folder with --out"


def write(path: Path, content: bytes) -> None:
    """Replace a file that this program wrote, or make it. Raises Mistake."""
    try:
        write_all({path: content}, REMEDY, force=None)
    except QuestionError as error:
        raise Mistake(f"{error.problem}; {error.remedy}") from None


def keep_what_is_others(paths: Iterable[Path]) -> None:
    """Raises Mistake if `write` would, before the work is done."""
    try:
        refuse(paths, REMEDY, force=None)
    except QuestionError as error:
        raise Mistake(f"{error.problem}; {error.remedy}") from None
