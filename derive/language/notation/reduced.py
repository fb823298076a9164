"""Losses that are reduced as the caller says: every entry, their sum, their mean.

    losses = error**2
    loss = Reduced(losses, mean=N)

``mean=N`` is a sum that is divided by N. The first of the words is what is computed where none is
passed; "none" and "sum" are there without being named. The mathematics is that of the first word,
and ``reduced`` gives that of another one.
"""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from dataclasses import replace

from sympy import Expr, sympify

from derive.language.errors import NotationError, QuestionError
from derive.language.nodes import Sum
from derive.language.notation.definition import NONE, REDUCTION, SUM, Definition
from derive.language.symbols import Tensor, axes_of

WRITTEN = "loss = Reduced(losses, mean=N)"


class Reduced:
    """``loss = Reduced(losses, mean=N)``: the output is reduced by the argument ``reduction``.

    ``losses`` is a statement; "none" returns it, "sum" its sum, and any other word the sum divided
    by its value: a size, a number, or an expression without the axes of the losses, such as
    ``mean=Sum(counted, N)``. The first word is the default, or "sum" if there is none.
    """

    def __init__(self, losses: Expr, **divisors: Expr | float):
        if not isinstance(losses, Tensor) or losses.role != "statement":
            raise NotationError(
                f"Reduced({losses}): that is not a statement",
                f"give the entries a line and a name of their own: losses = ...; {WRITTEN}",
            )
        if not losses.axes:
            raise NotationError(f"Reduced({losses}): {losses} has no axes", "state it as it is")
        self.losses = losses
        self.divisors = {w: _divisor(losses, w, value) for w, value in divisors.items()}

    def _operator(self, *_):
        raise NotationError(
            "Reduced(...) stands inside an expression",
            f"it is the last line of a class body, and the output: {WRITTEN}",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _operator
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __neg__ = _operator

    def expressions(self) -> dict[str, Expr]:
        """The expression of each reduction word, the default first."""
        total = Sum(self.losses, *self.losses.axes)
        means = {word: total / divisor for word, divisor in self.divisors.items()}
        return {**means, SUM: total, NONE: self.losses}


def _divisor(losses: Tensor, word: str, value) -> Expr:
    """The checked divisor of the sum under ``word``. Raises `NotationError`."""
    if word in (NONE, SUM) or keyword.iskeyword(word):
        raise NotationError(
            f"Reduced(..., {word}=...): {word} is taken",
            "'none' and 'sum' are there without being named: name what else the sum is divided by",
        )
    if isinstance(value, bool) or not isinstance(value, (Expr, int, float)):
        raise NotationError(
            f"Reduced(..., {word}={value!r}): that is not a number",
            f"write what the sum is divided by: {WRITTEN}",
        )
    divisor = sympify(value, strict=True)
    if divisor.is_zero:
        raise NotationError(f"Reduced(..., {word}=0) divides by 0", f"write {WRITTEN}")
    if left := axes_of(divisor):
        along = ", ".join(sorted(axis.name for axis in left))
        raise NotationError(
            f"Reduced(..., {word}={divisor}): that has the axis {along}, and one number is needed",
            f"sum it up: {word}=Sum({divisor}, {along})",
        )
    return divisor


def words_of(definition: Definition) -> tuple[str, ...]:
    """The reduction words, the entries first; none where the output is one thing alone."""
    words = [word for word, _ in definition.reductions]
    return tuple(sorted(words, key=[NONE, SUM, *words].index))


def one_of(words: Sequence[str]) -> str:
    """``"none", "sum" or "mean"``."""
    *others, last = (f'"{word}"' for word in words)
    return f"{', '.join(others)} or {last}" if others else last


def reduced(definition: Definition, word: str | None) -> Definition:
    """The mathematics where ``word`` is passed as the reduction; as it is, for None.

    Raises `QuestionError` where there is no such word.
    """
    if word is None or (word == definition.reduction and word):
        return definition
    last = dict(definition.reductions).get(word)
    if last is None:
        words = words_of(definition)
        raise QuestionError(
            f"{definition.name} has no reduction {word!r}",
            f"{REDUCTION} is one of {one_of(words)}" if words else f"leave {REDUCTION} out",
        )
    statements, kept = (*definition.statements[:-1], last), None
    if word == NONE:  # the entries are the output, so both are at hand
        kept = frozenset({*(t.name for t in definition.inputs), last.expression.name})
    return replace(definition, statements=statements, reduction=word, kept=kept)


def as_block(definition: Definition, word: str | None) -> Definition:
    """The same for a call: the entries are the statement that is reduced, under its own name, and
    what that does not need is left out.
    """
    chosen = reduced(definition, word)
    if chosen.reduction != NONE:
        return chosen
    needed = chosen.needed_for(chosen.statements[-1].expression.name)
    statements = tuple(s for s in chosen.statements if s.name in needed)
    return replace(chosen, statements=statements, reductions=(), reduction="")
