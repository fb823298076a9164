"""What is written into a part of a tensor: ``x[index] = value``, ``x[index] += value``."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from derive.reading.broadcasting import added, negated
from derive.reading.expressions import Expressions
from derive.reading.indexing import advanced, items_of
from derive.reading.operations.choosing import where
from derive.reading.operations.functions import subtracted
from derive.reading.operations.picking import picked, written
from derive.reading.operations.shaping import expanded
from derive.reading.values import MASK, Value


@dataclass(frozen=True)
class Write:
    """How it is written: with an operator, what is there and what comes are ``combined``."""

    operate: Callable | None = None
    combined: Callable[[Value], Value] | None = None


def stored(
    expressions: Expressions, index: ast.AST, x: Value, value: Callable[[], Value], write: Write
) -> Value:
    """``x`` after ``value`` was written into the part of it that ``index`` names."""
    space, combined = expressions.space, write.combined
    items = items_of(expressions, index)
    if all(item == ":" or item is Ellipsis for item in items):
        if combined is not None:
            return combined(x)
        return expanded(space, value(), x.dims, "what is written")
    if len(items) == 1 and isinstance(items[0], Value) and items[0].kind == MASK:
        new = combined(x) if combined else value()
        return where(space, items[0], new, x)
    place = advanced(items, x)
    if write.operate is None:
        return written(space, x, place, value(), False)
    if write.operate is added:
        return written(space, x, place, value(), True)
    if write.operate is subtracted:
        return written(space, x, place, negated(space, value()), True)
    return written(space, x, place, combined(picked(space, x, place)), False)
