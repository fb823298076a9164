"""An entry of a table of identities: mathematics beside the code that uses it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class IdentityRule:
    """``statement`` is the identity as mathematics, left to right, ``holds`` its condition. The
    contract of its table says what ``rewrite`` receives and returns. Where its use is a step of
    a record, that step has its ``name``, and ``why`` explains it in words.
    """

    statement: str
    holds: str
    rewrite: Callable
    name: str = ""
    why: str = ""
