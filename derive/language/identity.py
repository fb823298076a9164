"""An entry of a table of identities: mathematics beside the code that uses it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Identity:
    """``statement`` is the identity as mathematics, left to right, ``holds`` its condition. What
    ``rewrite`` receives and returns is the contract of its table. Where the use of it is a step of
    a record, that has its ``name``, and says ``why`` in words.
    """

    statement: str
    holds: str
    rewrite: Callable
    name: str = ""
    why: str = ""
