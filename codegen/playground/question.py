"""Questions of the page: records, read from JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields

from derive.gradient.orders import FIRST, SECOND

LONGEST = 64 * 1024  # characters of a text; people write shorter ones


@dataclass(frozen=True)
class Question:
    """``ask`` is "derive" or "check". ``text`` holds forwards; ``name`` is the requested one (the
    last one without it); ``backward`` is the text to check, ``of`` the input it is about, and
    ``let`` has pairs YOURS=OURS between commas. ``limit`` is in seconds.
    """

    ask: str
    text: str
    name: str = ""
    backward: str = ""
    of: str = ""
    let: str = ""
    order: int = FIRST
    limit: float = 60.0

    def __post_init__(self):
        for field in fields(self):
            given = getattr(self, field.name)
            kind = {"str": str, "int": int, "float": (int, float)}[field.type]
            if not isinstance(given, kind) or isinstance(given, bool):
                raise ValueError(f"{field.name} is a {type(given).__name__}")
        if self.ask not in ("derive", "check") or self.order not in (FIRST, SECOND):
            raise ValueError("no such question")
        if max(len(self.text), len(self.backward), len(self.let)) > LONGEST:
            raise ValueError(f"a text is longer than {LONGEST} characters")


def question_from(text: str) -> Question:
    """Parse a question. Raises ValueError if ``text`` is none."""
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("no question")
    try:
        return Question(**data)
    except TypeError as error:
        raise ValueError(str(error)) from None
