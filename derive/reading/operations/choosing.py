"""Torch's choices between entries: the larger, the smaller, and by a condition."""

from __future__ import annotations

from collections.abc import Callable

from sympy import And, Basic, Expr, Ge, Gt, Integer, Le, Not, Or, Piecewise, true
from sympy.core.relational import Relational
from sympy.logic.boolalg import Boolean

from derive.reading.broadcasting import pointwise
from derive.reading.operations.entries import Operation, entry, tensor
from derive.reading.refusals import Refusal
from derive.reading.values import MASK, Space, Value, promoted, sum_of

choosing: dict[str, Operation] = {}

MOST_CHOICES, MOST_COMPARISONS = 24, 24  # in one choice: SymPy goes through their branches


def related(relation: Callable, a: Expr, b: Expr) -> Boolean:
    """``relation(a, b)``, case by case where a side is a choice.

    SymPy would do it by solving for a symbol, which is not the same symbol inside of a `Sum`.
    """
    if isinstance(a, Piecewise):
        return _by_cases(a, lambda part: related(relation, part, b))
    if isinstance(b, Piecewise):
        return _by_cases(b, lambda part: related(relation, a, part))
    if a.has(Piecewise) or b.has(Piecewise):
        raise Refusal("a comparison of what a choice is inside of", "check it in parts")
    if a.is_Add and b.is_Add:  # SymPy may go round in circles in bringing these to one form
        a, b = a - b, Integer(0)
    return relation(a, b)


def _by_cases(choice: Piecewise, condition: Callable[[Expr], Boolean]) -> Boolean:
    cases, before = [], true
    for part, holds in choice.args:
        cases.append(And(before, holds, condition(part)))
        before = And(before, Not(holds))
    return Or(*cases)


def chosen(*choices) -> Expr:
    """A `Piecewise` of (value, condition), of a bounded number of choices in all."""
    count = sum(value.count(Piecewise) for value, _ in choices if isinstance(value, Expr))
    if count > MOST_CHOICES or sum(map(_comparisons, choices)) > MOST_COMPARISONS:
        raise Refusal("too many choices inside of choices", "check it in parts")
    try:
        return Piecewise(*choices)
    except RecursionError:
        raise Refusal("SymPy cannot hold this choice", "compare with a name, or with 0") from None


def _comparisons(choice) -> int:
    condition = choice[1]  # or True
    return len(condition.atoms(Relational)) if isinstance(condition, Basic) else 0


def _choice(space: Space, relation: Callable, a: Value, b: Value) -> Value:
    """``a`` where ``relation(a, b)`` holds, else ``b``."""
    extent = (a.extent + b.extent) + (a.extent + b.extent)
    return pointwise(
        space, lambda x, y: chosen((x, related(relation, x, y)), (y, True)), [a, b], extent
    )


@entry(choosing, "maximum")
def maximum(space: Space, input: Value, other: Value):
    return _choice(space, Ge, input, other)


@entry(choosing, "minimum")
def minimum(space: Space, input: Value, other: Value):
    return _choice(space, Le, input, other)


@entry(choosing, "clamp", "clip")
def _clamp(space: Space, input: Value, min: Value | None = None, max: Value | None = None):
    x = tensor(input)
    if min is None or max is None:
        result = x if min is None else maximum(space, x, min)
        return result if max is None else minimum(space, result, max)

    def build(e, low, high):
        return chosen(
            (high, related(Gt, low, high)),
            (low, related(Le, e, low)),
            (high, related(Ge, e, high)),
            (e, True),
        )

    extent = sum_of([x.extent, min.extent, max.extent] * 3)
    return pointwise(space, build, [x, min, max], extent)


@entry(choosing, "clamp_min")
def _clamp_min(space: Space, input: Value, min: Value):
    return maximum(space, input, min)


@entry(choosing, "where", forms="torch")
def where(space: Space, condition: Value, input: Value, other: Value):
    if condition.kind != MASK:
        raise Refusal("where chooses by a comparison", "write torch.where(x > 0, a, b)")

    def build(mask, a, b):
        if isinstance(mask, Piecewise) and [pair.expr for pair in mask.args] == [1, 0]:
            return chosen((a, mask.args[0].cond), (b, True))
        return mask * a + (1 - mask) * b

    return pointwise(space, build, [condition, input, other], dtype=promoted([input, other]))
