"""The result of `check`, as text and as data."""

from __future__ import annotations

import html
from typing import Self

from derive.claims.checking.answers import Answers
from derive.claims.checking.as_data import json_of
from derive.claims.checking.report import brief_of, text_of
from derive.running.limits import Stage, limited

MOST_SECONDS = 10.0  # for explanations shown at a prompt


class Shown:
    """A verdict at a prompt or in a notebook: a few lines; ``str`` gives the full text."""

    brief: str
    unexplained: Self
    outcome: str

    def __repr__(self) -> str:
        found = ""
        with limited(MOST_SECONDS), Stage():
            found = self.brief
        return found or self.unexplained.brief

    def _repr_html_(self) -> str:
        first, _, rest = html.escape(repr(self)).partition("\n")
        whole = html.escape(str(self))
        return (
            f"<pre><b>{first}</b>\n{rest}</pre>"
            f"<details><summary>the whole verdict</summary><pre>{whole}</pre></details>"
        )


class Verdict(Shown, Answers):
    """For every gradient that a text claims: right, wrong or undecided, and why."""

    @property
    def brief(self) -> str:
        return brief_of(self)

    def __str__(self) -> str:
        return text_of(self)

    def as_json(self) -> dict:
        """The verdict as plain numbers, strings, lists and dicts."""
        return json_of(self)
