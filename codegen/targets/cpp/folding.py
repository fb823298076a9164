"""Breaks C++ lines at the width of a page."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

WIDTH = 100  # columns
HELD = "\N{NO-BREAK SPACE}"  # between words of one line
PLACE = r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]"  # that of an entry, which may be that of a label
BEGUN = " " * 4  # before a function's arguments
INSIDE = 8  # columns by which a line that goes on is indented


def folded(text: str) -> list[str]:
    """The lines of a text; a long one ends after a comma, or before a binary operator."""
    return [line for whole in text.split("\n") for line in _folded(whole)]


def _folded(line: str) -> list[str]:
    if len(line) <= WIDTH:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    held = re.sub(PLACE, lambda found: found[0].replace(" ", HELD), line.lstrip())
    held = re.sub(r"(?<!,) (?![-+*/?:] )", HELD, held)
    found = textwrap.wrap(
        held,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + " " * INSIDE,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [part.replace(HELD, " ") for part in found]


def called(head: str, given: Iterable[str], tail: str) -> str:
    """``head(given)tail`` on one line, or with the arguments on lines of their own."""
    inside = ", ".join(given)
    line = f"{head}({inside}){tail}"
    if len(line) <= WIDTH:
        return line
    held = re.sub("(?<!,) ", HELD, inside)
    lines = textwrap.wrap(held, WIDTH, initial_indent=BEGUN, subsequent_indent=BEGUN)
    return "\n".join([f"{head}(", *(part.replace(HELD, " ") for part in lines), f"){tail}"])
