"""Axis lengths given as expressions of other sizes: ``2*E``, ``G*P``, ``E//2``.

Such an axis is named by its expression in one spelling: ``E*2`` is ``2*E``. A quotient is exact:
``E//2`` implies that E is even.
"""

from __future__ import annotations

import ast
import itertools
import keyword
import operator
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from sympy import Expr, Integer, Symbol, expand

from derive.language.errors import QuestionError

EXAMPLE = '--axes "x: N 2*E, w: E G*P, y: N E+1, z: N E//2"'
SIGNS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
SIGNS |= {ast.Div: operator.truediv, ast.FloorDiv: operator.truediv, ast.Pow: operator.pow}
NAME = re.compile(r"[^\W\d]\w*")
SOME = (1, 60, 10**6)  # a length that is positive for any sizes is so for a combination of these
MOST_POWER = 3  # of a size, as in E**2
FURTHEST = 64  # largest increase of a size to make a length whole


def axis_said(word: str, tensor: str) -> str:
    """Parse the name of an axis: an identifier, an integer, or an expression.

    Raises `QuestionError` for anything that is not a length.
    """
    plain = word if word.isidentifier() or word.isdecimal() else _plain(word, tensor)
    if plain == "0" or plain.startswith("_"):
        raise QuestionError(
            f"--axes: {word!r} of {tensor} is neither a name nor a size", f"write {EXAMPLE}"
        )
    return plain


def _plain(word: str, tensor: str) -> str:
    try:
        length = expand(_read(ast.parse(word, mode="eval").body))
    except (SyntaxError, ValueError):
        raise QuestionError(
            f"--axes: {word!r} of {tensor} is neither a name nor a size",
            "an expression has names of axes and whole numbers, + - * // and brackets, and no "
            f"spaces: {EXAMPLE}",
        ) from None
    names = sorted(length.free_symbols, key=str)
    several = itertools.product(SOME, repeat=len(names))
    lengths = [length.subs(dict(zip(names, sizes, strict=True))) for sizes in several]
    if not names and not length.is_Integer:
        raise QuestionError(f"--axes: {word} of {tensor} is not an integer", f"write {EXAMPLE}")
    if max(lengths) < 1:
        raise QuestionError(
            f"--axes: {word} of {tensor} is never above 0", "a size is a positive number"
        )
    return str(length).replace(" ", "")


def _read(e: ast.expr) -> Expr:
    """Raises `ValueError` for anything but integers, names and arithmetic."""
    if isinstance(e, ast.Constant) and type(e.value) is int:
        return Integer(e.value)
    if isinstance(e, ast.Name) and not e.id.startswith("_") and not keyword.iskeyword(e.id):
        return Symbol(e.id)
    if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
        return -_read(e.operand)
    if isinstance(e, ast.BinOp) and type(e.op) in SIGNS:
        left, right = _read(e.left), _read(e.right)
        of_power = not isinstance(e.op, ast.Pow) or (right.is_Integer and 0 < right <= MOST_POWER)
        if of_power and not (right == 0 and SIGNS[type(e.op)] is operator.truediv):
            return SIGNS[type(e.op)](left, right)
    raise ValueError(ast.dump(e))


@lru_cache(maxsize=4096)
def length_of(axis: str) -> Expr:
    """The length of an axis over other names, or its own symbol."""
    return expand(_read(ast.parse(axis, mode="eval").body))


def is_made(axis: str) -> bool:
    """Whether an axis is given by an expression."""
    return not (axis.isidentifier() or axis.isdigit())


def names_in(axis: str) -> list[str]:
    """The size names in an axis's length: its own for a plain name, none for a number."""
    return NAME.findall(axis)


def size_at(axis: str, sizes: Mapping[str, int]) -> int:
    """The length of an axis at these sizes. Raises `ValueError` if it is not a positive integer."""
    if not is_made(axis):
        return int(axis) if axis.isdigit() else sizes[axis]
    length = _at(axis, sizes)
    if not _is_size(length):
        raise ValueError(f"the size {axis} is {length} here")
    return int(length)


def _at(axis: str, sizes: Mapping[str, int]) -> Expr:
    return length_of(axis).subs({Symbol(name): sizes[name] for name in names_in(axis)})


def _is_size(length: Expr, least: int = 1) -> bool:
    return bool(length.is_Integer) and length >= least


def unfit(axes: Iterable[str], sizes: Mapping[str, int]) -> str:
    """The message for the first axis without a valid length at these sizes, or ''."""
    for axis in filter(is_made, axes):
        length = _at(axis, sizes)
        if not _is_size(length):
            at = ", ".join(f"{name} = {sizes[name]}" for name in dict.fromkeys(names_in(axis)))
            return f"{axis} is {length} at {at}"
    return ""


def fitted(
    axes: Sequence[str], sizes: Mapping[str, int], held: Collection[str] = (), apart: bool = False
) -> dict[str, int]:
    """``sizes``, increased where not ``held`` until all axes have a valid length; with ``apart``,
    all lengths also differ.
    """
    found, made = dict(sizes), [axis for axis in axes if is_made(axis)]

    def fit(own: Mapping[str, int], seen: Sequence[str]) -> bool:
        lengths = [_at(axis, own) for axis in seen]
        if not all(_is_size(length, 2 if apart else 1) for length in lengths):
            return False
        return not apart or len({*lengths, *own.values()}) == len({*own.values()}) + len(seen)

    for i, axis in enumerate(made):
        free = [name for name in dict.fromkeys(names_in(axis)) if name not in held]
        larger = ({n: found[n] + more} for more in range(1, FURTHEST) for n in free)
        tried = ({**found, **change} for change in itertools.chain([{}], larger))
        found = next((own for own in tried if fit(own, made[: i + 1])), found)
    return found
