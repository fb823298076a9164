"""A choice by the range of one value, read off its form.

In: a `Piecewise`. Out: a `Choice`, its pieces in order of that value, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import permutations

from sympy import Abs, Add, Dummy, Expr, Ne, Or, Piecewise, Pow, S, expand, sign
from sympy.core.relational import Relational

from derive.language.symbols import Tensor, tensors_in

LARGEST = 60  # operations of a difference that is looked into
BELOW, ABOVE = ("<", "<="), (">", ">=")


@dataclass(frozen=True)
class Choice:
    """A choice by the range of ``u``: ``pieces`` from the lowest on, between ``bounds``, each a
    number or made of scalars; ``whole`` is the original.
    """

    u: Expr
    bounds: tuple[Expr, ...]
    pieces: tuple[Expr, ...]
    whole: Piecewise

    def inside(self, i: int) -> Callable[[Expr], Expr] | None:
        """Piece ``i`` as a function of ``u``, if it depends on that and scalars alone."""
        place = Dummy("u", real=True)
        e = self.pieces[i].xreplace({self.u: place, -self.u: -place})
        if any(t.axes or t.role != "scalar" for t in tensors_in(e)):
            return None
        return lambda value: e.xreplace({place: value})


def choice_of_one(e: Piecewise, magnitudes: Mapping[str, Expr]) -> Choice | None:
    """The choice by the range of one value, if it is one."""
    tests = [t for _, c in e.args[:-1] for t in _tests(c)]
    if not tests or not all(isinstance(t, Relational) and deciding(t) for t in tests):
        return None
    sides = [_side(t) for t in tests]
    if None in sides or len({u for u, _, _ in sides}) != 1:
        return None
    u = sides[0][0]
    if isinstance(u, Abs) or (isinstance(u, Tensor) and u.name in magnitudes):
        return _choice_by_magnitude(e, u, sides, magnitudes)
    bounds = _ordered({b for _, _, b in sides})
    if bounds is None:
        return None
    found = []
    for i in range(len(bounds) + 1):
        value = next(v for v, c in e.args if c == True or _holds(c, bounds, i))  # noqa: E712
        found.append(value)
    return Choice(u, bounds, tuple(found), e)


def _choice_by_magnitude(e, u, sides, magnitudes) -> Choice | None:
    if len(e.args) != 2 or len(sides) != 1:
        return None
    _, op, b = sides[0]
    inside = u.args[0] if isinstance(u, Abs) else magnitudes[u.name]
    (first, _), (last, _) = e.args
    outer, middle = (first, last) if op in ABOVE else (last, first)
    met = [s.args[0] for s in outer.atoms(sign)]
    if -inside in met or (not met and not _speaks_of(middle, inside)):
        inside = -inside
    place = Dummy("u", real=True)
    ends = []
    for side in (-1, 1):
        at = outer.xreplace({u: side * place}).xreplace(
            {sign(inside): S(side), sign(-inside): -S(side)}
        )
        ends.append(at.xreplace({place: inside}))
    return Choice(inside, (-b, b), (ends[0], middle, ends[1]), e)


def _speaks_of(e: Expr, inside: Expr) -> bool:
    return e == inside or any(_speaks_of(arg, inside) for arg in e.args)


def _tests(condition):
    return condition.args if isinstance(condition, Or) else (condition,)


def _side(test: Relational) -> tuple[Expr, str, Expr] | None:
    """The varying side, the relation and the bound, which is a number or made of scalars."""
    left, op, right = test.lhs, test.rel_op, test.rhs
    if op not in (*BELOW, *ABOVE):
        return None
    if is_scalar(left):
        left, op, right = right, {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[op], left
    if not is_scalar(right) or is_scalar(left):
        return None
    if left.could_extract_minus_sign() and not isinstance(left, Add):
        left, op, right = -left, {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[op], -right
    return left, op, right


def _ordered(bounds: set[Expr]) -> tuple[Expr, ...] | None:
    """One or two bounds in ascending order, if that is known."""
    if len(bounds) == 1:
        return tuple(bounds)
    pairs = permutations(bounds) if len(bounds) == 2 else ()
    return next(((a, b) for a, b in pairs if (b - a).is_nonnegative), None)


def _holds(condition, bounds: tuple[Expr, ...], i: int) -> bool:
    """True if the condition holds in piece ``i``, where the bounds are those of the condition."""
    results = []
    for test in _tests(condition):
        _, op, b = _side(test)
        below = i <= bounds.index(b)
        results.append(below == (op in BELOW))
    return any(results)


def lowest_at_edge(choice: Choice) -> bool:
    """True if the lower piece is chosen at the one bound."""
    (test,) = _tests(choice.whole.args[0][1])
    _, op, _ = _side(test)
    first_is_lower = op in BELOW
    return (op == "<=") if first_is_lower else (op == ">")


def deciding(test: Relational) -> bool:
    """True if entries decide, and not numbers, labels or positions."""
    tensors = [t for t in tensors_in(test) if t.role != "scalar"]
    roles = {t.role for t in tensors}
    return bool(tensors) and not roles & {"label", "kept"} and not isinstance(test, Ne)


def is_scalar(e: Expr) -> bool:
    """True if it is a number, or made of scalar arguments alone."""
    return all(isinstance(s, Tensor) and s.role == "scalar" for s in e.free_symbols) and not e.has(
        Piecewise
    )


def divided(e: Expr) -> bool:
    return any(p.exp.is_negative and not p.base.is_number for p in e.atoms(Pow))


def equal(a: Expr, b: Expr) -> bool:
    return a == b or (max(a.count_ops(), b.count_ops()) <= LARGEST and expand(a - b) == 0)
