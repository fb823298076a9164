"""Is an expression with choices in it zero? Case by case.

A comparison, a sign or an absolute value asks for the sign of an expression. There are three cases:
positive, negative and zero. In each of them the choices that ask for it are made, those that the
case decides too (what is larger than a positive number is positive), and in the third the
expression is zero. When no choice is left, a test without choices decides.
"""

from __future__ import annotations

from collections.abc import Callable

from sympy import Abs, Expr, Integer, Piecewise, S, expand, sign
from sympy import Sum as SymbolicSum
from sympy.core.relational import Relational

MOST_CASES = 60
CHOOSING = (Piecewise, Abs, sign, Relational)
HOLDS = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1), "==": (0,), "!=": (-1, 1)}
INFINITE = (S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity)
Signs = dict[Expr, int]


def vanishes_by_cases(
    e: Expr, is_zero: Callable[[Expr], bool], is_positive: Callable[[Expr], bool]
) -> bool:
    """Whether ``e`` is zero in every case. True is a proof if that of ``is_zero`` is one.

    Between two cases a denominator may be zero: nothing is said about that.
    """
    if any(total.has(*CHOOSING) for total in e.atoms(SymbolicSum)):
        return False  # a case for each of its terms
    left = MOST_CASES
    open_cases: list[tuple[Expr, Signs, bool]] = [(e, {}, False)]
    while open_cases:
        left -= 1
        if left < 0:
            return False
        case, signs, between = open_cases.pop()
        asked = None if case.has(*INFINITE) else _first_asked(case)
        if asked is None:
            if between and case.has(*INFINITE):
                continue
            if case.has(*CHOOSING) or not is_zero(case):
                return False
            continue
        known = _implied(asked, signs, is_positive)
        for side in (1, -1, 0) if known is None else (known,):
            edge = between or (known is None and side == 0)
            try:
                chosen, more = _chosen(case, {**signs, asked: side}, asked)
            except TypeError:  # SymPy compares no infinity
                chosen, more = S.NaN, {}
            if chosen == case:
                return False
            open_cases.append((chosen, more, edge))
    return True


def _first_asked(e: Expr) -> Expr | None:
    """An expression without choices whose sign is asked for."""
    for node in sorted(e.atoms(Relational, Abs, sign), key=lambda n: (n.count_ops(), str(n))):
        if not any(arg.has(*CHOOSING) for arg in node.args):
            return _asked(node)
    return None


def _asked(node) -> Expr:
    e = expand(node.lhs - node.rhs if isinstance(node, Relational) else node.args[0])
    return e.primitive()[1]


def _implied(asked: Expr, signs: Signs, is_positive) -> int | None:
    """The sign of ``asked``, where those that are known decide it."""
    if asked.is_number:
        return None if asked.is_zero is None else int(sign(asked)) if asked.is_real else None
    for direction in (1, -1):
        towards = expand(direction * asked)
        if is_positive(towards):
            return direction
        for known, side in signs.items():
            for above in (side * known,) if side else (known, -known):
                more = expand(towards - above)  # above is positive, or zero
                if (more == 0 and side) or is_positive(more):
                    return direction
                if more == 0:
                    return 0
    return None


def _chosen(e: Expr, signs: Signs, asked: Expr) -> tuple[Expr, Signs]:
    """``e`` and the signs where ``asked`` has its sign; where that is 0, it is solved for one of
    its symbols.
    """
    made: dict = {}
    side = signs[asked]
    for node in e.atoms(Relational, Abs, sign):
        if any(arg.has(*CHOOSING) for arg in node.args):
            continue
        inside = _asked(node)
        turned = 1 if inside == asked else -1 if expand(inside + asked) == 0 else 0
        if turned and isinstance(node, Relational):
            made[node] = S.true if turned * side in HOLDS[node.rel_op] else S.false
        elif turned:
            made[node] = Integer(turned * side) * (node.args[0] if isinstance(node, Abs) else 1)
    e = e.xreplace(made)
    if side == 0:
        for s in sorted(asked.free_symbols, key=lambda s: (bool(s.is_positive), str(s))):
            slope = asked.diff(s)
            if slope.is_number and slope != 0:
                solved = {s: expand(s - asked / slope)}
                rest = {k: sign for k, sign in signs.items() if k != asked}
                signs = {expand(k.xreplace(solved)): sign for k, sign in rest.items()}
                return e.xreplace(solved), signs
    return e, signs
