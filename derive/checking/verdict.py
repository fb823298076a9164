"""What `check` answers, in words and for programs."""

from __future__ import annotations

from derive.checking.answers import Answers
from derive.checking.as_data import json_of
from derive.checking.report import text_of


class Verdict(Answers):
    """Every gradient that a text claims is right, wrong or undecided, and why."""

    def __str__(self) -> str:
        return text_of(self)

    def as_json(self) -> dict:
        """The same for programs: plain numbers, strings, lists and dicts."""
        return json_of(self)
