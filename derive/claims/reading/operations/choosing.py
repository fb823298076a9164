"""Torch's entrywise choices: maximum, minimum, where."""

from __future__ import annotations

from collections.abc import Callable

from sympy import And, Basic, Expr, Ge, Integer, Le, Not, Or, Piecewise, true
from sympy.core.relational import Relational
from sympy.logic.boolalg import Boolean

from derive.claims.reading.broadcasting import pointwise
from derive.claims.reading.refusals import Refusal
from derive.claims.reading.values import MASK, Space, TextValue, promoted
from derive.language.choices import Compared
from derive.language.nodes import ArrayNode, OneHot

ZERO, ONE = Integer(0), Integer(1)
MOST_CHOICES, MOST_COMPARISONS = 24, 24  # in one choice: SymPy visits all branches


def related(relation: Callable, a: Expr, b: Expr) -> Boolean:
    """``relation(a, b)``, case by case if a side contains a choice.

    SymPy would solve for a symbol, which is a different one inside a `Sum`. Choices inside array
    nodes stay there.
    """
    choice = _first_choice(a) or _first_choice(b)
    if choice is None:
        a, b = (Compared(side) if side.has(Piecewise) else side for side in (a, b))
        if a.is_Add and b.is_Add:  # SymPy may loop forever when it normalizes these
            a, b = a - b, Integer(0)
        if any(side.is_extended_real is False for side in (a, b)):
            raise Refusal(
                "a number that is not real is compared", "check the domain of the function"
            )
        return relation(a, b)
    cases, before = [], true
    for part, holds in choice.args:
        sides = (_with_part(side, choice, part) for side in (a, b))
        cases.append(And(before, holds, related(relation, *sides)))
        before = And(before, Not(holds))
        if _comparisons(Or(*cases)) > MOST_COMPARISONS:
            raise Refusal("choices are nested too deeply", "check it in smaller parts")
    return Or(*cases)


def _first_choice(e: Expr) -> Piecewise | None:
    """A choice in ``e`` outside its array nodes."""
    if isinstance(e, (Piecewise, ArrayNode)):
        return e if isinstance(e, Piecewise) else None
    inside = (_first_choice(arg) for arg in e.args if arg.has(Piecewise))
    return next((choice for choice in inside if choice is not None), None)


def _with_part(e: Expr, choice: Piecewise, part: Expr) -> Expr:
    """``e`` with ``part`` instead of ``choice`` outside its array nodes, where the same symbols may
    be bound.
    """
    if e == choice:
        return part
    if isinstance(e, ArrayNode) or not e.has(Piecewise):
        return e
    return e.func(*(_with_part(arg, choice, part) for arg in e.args))


def chosen(*choices) -> Expr:
    """A `Piecewise` of (value, condition) pairs, limited in size."""
    count = sum(value.count(Piecewise) for value, _ in choices if isinstance(value, Expr))
    if count > MOST_CHOICES or sum(_comparisons(c) for _, c in choices) > MOST_COMPARISONS:
        raise Refusal("choices are nested too deeply", "check it in smaller parts")
    try:
        return _of_indicators(Piecewise(*choices))
    except RecursionError:
        raise Refusal("SymPy cannot hold this choice", "compare with a name, or with 0") from None


def _of_indicators(e: Expr) -> Expr:
    """Piecewise((a, h > 0), (b, True)) = h*a + (1 - h)*b for a one-hot h, which is 0 or 1."""
    if not isinstance(e, Piecewise):
        return e
    for relation in sorted(set().union(*(c.atoms(Relational) for _, c in e.args)), key=str):
        hots = [side for side in relation.args if isinstance(side, OneHot)]
        if len(hots) == 1 and sum(side.is_number for side in relation.args) == 1:
            (hot,) = hots
            hit, missed = (e.xreplace({relation: relation.xreplace({hot: n})}) for n in (ONE, ZERO))
            return hot * _of_indicators(hit) + (1 - hot) * _of_indicators(missed)
    return e


def _comparisons(condition: Boolean | bool) -> int:
    return len(condition.atoms(Relational)) if isinstance(condition, Basic) else 0


def _choice(space: Space, relation: Callable, a: TextValue, b: TextValue) -> TextValue:
    """``a`` where ``relation(a, b)`` holds, else ``b``."""
    extent = (a.extent + b.extent) + (a.extent + b.extent)
    return pointwise(
        space, lambda x, y: chosen((x, related(relation, x, y)), (y, True)), [a, b], extent
    )


def maximum(space: Space, input: TextValue, other: TextValue):
    return _choice(space, Ge, input, other)


def minimum(space: Space, input: TextValue, other: TextValue):
    return _choice(space, Le, input, other)


def where(space: Space, condition: TextValue, input: TextValue, other: TextValue):
    if condition.kind != MASK:
        raise Refusal(
            "the condition of torch.where must be a comparison", "write torch.where(x > 0, a, b)"
        )

    def build(mask, a, b):
        if isinstance(mask, Piecewise) and [pair.expr for pair in mask.args] == [1, 0]:
            return chosen((a, mask.args[0].cond), (b, True))
        return mask * a + (1 - mask) * b

    return pointwise(space, build, [condition, input, other], dtype=promoted([input, other]))
