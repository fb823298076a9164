"""Names: the valid ones in code, and those still free."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable
from itertools import chain, count

from derive.language.errors import NotationError

RESERVED = frozenset(
    {
        "torch",
        "math",
        "functools",
        "abs",
        "Tensor",
        "NamedTuple",
        "self",
        "ctx",
        "None",
        "True",
        "False",
    }
)


def checked_name(name: object, what: str) -> str:
    """``name`` if it is valid in code unchanged, else a `NotationError`; nothing else may reach a
    template.
    """
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise NotationError(
            f"{name!r} cannot be the name of {what}",
            "a name is a Python identifier: letters, digits and _, not a keyword",
        )
    if name in RESERVED or name.startswith("_"):
        raise NotationError(
            f"{name!r} cannot be the name of {what}",
            "names that begin with _ and "
            + ", ".join(sorted(RESERVED - {"None", "True", "False"}))
            + " are taken by the generated code",
        )
    return name


def unused(name: str, is_taken: Callable[[str], bool]) -> str:
    """``name``, or the first of ``name_2``, ``name_3``, ... that is free."""
    numbered = (f"{name}_{number}" for number in count(2))
    return next(free for free in chain([name], numbered) if not is_taken(free))


def first_unused(names: Iterable[str], is_taken: Callable[[str], bool]) -> str:
    """The first of ``names`` that is free; with a number, where none of them is."""
    names = [*names]
    free = (name for name in names if not is_taken(name))
    return next(free, None) or unused(names[-1], is_taken)


def snake_case(name: str) -> str:
    """``BatchNorm`` is ``batch_norm``, ``SoftmaxNLL`` is ``softmax_nll``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
