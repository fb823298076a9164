"""Is an expression with choices in it zero? Case by case.

A comparison, a sign or an absolute value asks for the sign of an expression. There are three cases:
positive, negative and zero. In each of them the choices that ask for it are made, those that the
case decides too (what is larger than a positive number is positive), and in the third the
expression is zero. When no choice is left, a test without choices decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from sympy import (
    Abs,
    Add,
    Dummy,
    Expr,
    Integer,
    Mul,
    Piecewise,
    S,
    exp,
    expand,
    factor_terms,
    log,
    sign,
)
from sympy import Sum as SymbolicSum
from sympy.core.relational import Relational

from derive.language.choices import replaced_finally
from derive.language.divisors import divisors_in
from derive.proof.zero.independent_parts import apart, independent, under_one_sum

MOST_CASES = 60  # of one expression, so that the test ends
CHOOSING = (Piecewise, Abs, sign, Relational)
HOLDS = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1), "==": (0,), "!=": (-1, 1)}
INFINITE = (S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity)
Signs = dict[Expr, tuple[int, ...]]  # those that an expression may have
OPEN = (1, -1, 0)


@dataclass(frozen=True)
class SignTest:
    """Tests of an expression without cases: False proves nothing."""

    is_zero: Callable[[Expr], bool]
    is_positive: Callable[[Expr], bool]


def vanishes_by_cases(e: Expr, test: SignTest) -> bool:
    """Whether ``e`` is zero in every case. True is a proof if that of ``test`` is one.

    Between two cases a denominator may be zero: nothing is said about that.
    """
    for group in under_one_sum(replaced_finally(e)):
        if any(total.has(*CHOOSING) for total in group.atoms(SymbolicSum)):
            return False  # a case for each of its terms
        for part in independent(group):
            smaller = apart(part)
            if len(smaller) > 1 and all(_vanishes(e, test) for e in smaller):
                continue
            if not _vanishes(part, test):
                return False
    return True


def _vanishes(e: Expr, test: SignTest) -> bool:
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
            if case.has(*CHOOSING) or not test.is_zero(case):
                return False
            continue
        asked = _factor_asked(asked, signs, test)
        sides = _possible(asked, signs, test)
        met: dict[Expr, list[int]] = {}
        for side in sides:
            met.setdefault(_chosen(case, asked, side), []).append(side)
        if len(sides) == 1 and case in met:
            return False
        for chosen, alike in met.items():
            if len(alike) > 1 and chosen != case:  # whatever the sign is
                open_cases.append((chosen, {**signs, asked: tuple(alike)}, between))
                continue
            for side in alike:
                edge = between or (len(sides) > 1 and side == 0)
                if edge and side == 0 and _divides_by(case, asked, test):
                    continue
                now = {**signs, asked: (side,)}
                at_edges = [(chosen, now)]
                if side == 0 and (continued := _continued(case, asked, met)) is not None:
                    at_edges = [(continued, now)]
                elif side == 0:
                    at_edges = _at_the_edges(chosen, now, asked, test)
                open_cases.extend((e, s, edge) for e, s in at_edges)
    return True


def _divides_by(e: Expr, zero: Expr, test: SignTest) -> bool:
    """Whether ``e`` divides by something that is 0 where ``zero`` is, whatever is chosen there: a
    factor of 0 would hide it from SymPy.
    """
    known: Signs = {zero: (0,)}
    always = _chosen(e, zero, 0, kinds=(Relational,)).replace(
        lambda node: isinstance(node, Piecewise), lambda node: Dummy(real=True)
    )
    return any(_implied(expand(d), known, test) == 0 for d in divisors_in(always))


def _first_asked(e: Expr) -> Expr | None:
    """The first expression without choices on whose sign ``e`` depends."""
    for node in sorted(e.atoms(Relational, Abs, sign), key=lambda n: (n.count_ops(), str(n))):
        if not any(arg.has(*CHOOSING) for arg in node.args):
            return _asked(node)
    return None


def _asked(node) -> Expr:
    e = expand(node.lhs - node.rhs if isinstance(node, Relational) else node.args[0])
    return e.primitive()[1]


def _factor_asked(asked: Expr, signs: Signs, test: SignTest) -> Expr:
    """The first factor of a product whose sign is open, which decides that of the product."""
    if not asked.is_Mul or _implied(asked, signs, test) is not None:
        return asked
    return next(f for f in asked.args if _implied(f, signs, test) is None)


def _possible(asked: Expr, signs: Signs, test: SignTest) -> tuple[int, ...]:
    """The signs that ``asked`` may have, where those of others are known."""
    implied = _implied(asked, signs, test)
    if implied is not None:
        return (implied,)
    for known, sides in signs.items():
        for turned in (1, -1) if len(sides) > 1 else ():
            if _is_nothing(expand(asked - turned * known), test):
                return tuple(turned * side for side in sides)
    return OPEN


def _implied(asked: Expr, signs: Signs, test: SignTest) -> int | None:
    """The sign of ``asked``, where those that are known decide it."""
    zeros = {k: S.Zero for k, sides in signs.items() if sides == (0,)}
    asked, signs = asked.xreplace(zeros), {k.xreplace(zeros): s for k, s in signs.items()}
    if _is_nothing(asked, test):
        return 0
    if asked.is_number:
        return None if asked.is_zero is None else int(sign(asked)) if asked.is_real else None
    for direction in (1, -1):
        towards = expand(direction * asked)
        if test.is_positive(towards):
            return direction
        for known, (side, *others) in signs.items():
            if others and sorted((side, *others)) not in ([-1, 0], [0, 1]):
                continue
            side, strict = side or sum(others), not others
            for above in (side * known,) if side else (known, -known):
                for times in _scales(towards, above):
                    more = expand(towards - times * above)  # above is positive, or zero
                    nothing = strict and _is_nothing(more, test)
                    if (nothing and side) or test.is_positive(more):
                        return direction
                    if nothing:
                        return 0
    if asked.is_Mul:
        sides = [_implied(factor, signs, test) for factor in asked.args]
        return None if None in sides else prod(sides)
    return None


def _scales(e: Expr, other: Expr) -> list[Expr]:
    """The positive numbers with which a term of ``other`` is one of ``e``, and 1."""
    theirs = other.as_coefficients_dict()
    ratios = (n / theirs[term] for term, n in e.as_coefficients_dict().items() if term in theirs)
    return list(dict.fromkeys([S.One, *(ratio for ratio in ratios if ratio.is_positive)]))


def _is_nothing(e: Expr, test: SignTest) -> bool:
    """Whether ``e`` is zero: two spellings of a logarithm ask for the same sign."""
    return e == 0 or (e.has(exp, log) and not e.has(*CHOOSING) and test.is_zero(e))


def _chosen(
    e: Expr, asked: Expr, side: int, bars: int | None = None, kinds=(Relational, Abs, sign)
) -> Expr:
    """``e`` where ``asked`` has the sign ``side``; no number where SymPy would compare infinity.

    ``bars`` is the sign with which absolute values of it are written: at 0 both say the same.
    ``kinds`` are the nodes that are chosen for.
    """
    bars = side if bars is None else bars
    made: dict = {}
    for node in e.atoms(*kinds):
        if any(arg.has(*CHOOSING) for arg in node.args):
            continue
        inside = _asked(node)
        turned = 1 if inside == asked else -1 if expand(inside + asked) == 0 else 0
        if turned and isinstance(node, Relational):
            made[node] = S.true if turned * side in HOLDS[node.rel_op] else S.false
        elif turned and isinstance(node, Abs):
            made[node] = turned * bars * node.args[0]
        elif turned:
            made[node] = Integer(turned * side)
    try:
        return e.xreplace(made)
    except TypeError:
        return S.NaN


def _continued(e: Expr, asked: Expr, met: dict[Expr, list[int]]) -> Expr | None:
    """``e`` where ``asked`` is 0 as it is written on one of the two sides, if that is how it is."""
    for side in (1, -1):
        continued = _chosen(e, asked, 0, bars=side)
        if side in met.get(continued, ()):
            return continued
    return None


def _at_the_edges(e: Expr, signs: Signs, asked: Expr, test: SignTest) -> list[tuple[Expr, Signs]]:
    """``e`` and the signs where ``asked`` is 0: where it is a product, once for each factor that
    may be 0, solved for something in it.
    """
    factors = Mul.make_args(_factored(asked))
    known = {k: sides for k, sides in signs.items() if k != asked}
    open_factors = [f for f in factors if not _implied(f, known, test)]
    return [_solved(e, signs, asked, factor, test) for factor in open_factors]


@lru_cache(maxsize=4096)
def _factored(e: Expr) -> Expr:
    """``e`` with common factors of its terms outside."""
    return factor_terms(e)


def _solved(e: Expr, signs: Signs, asked: Expr, zero: Expr, test: SignTest) -> tuple[Expr, Signs]:
    """``e`` and the signs, solved for something that ``zero`` is linear in."""
    others = {k: sides for k, sides in signs.items() if k != asked}
    for unknown in _unknowns(zero):
        place = Dummy(real=True)
        line = zero.xreplace({unknown: place})
        slope = line.diff(place)
        if line.has(unknown) or slope.has(place) or not _implied(slope, others, test):
            continue
        solved = {unknown: expand((place - line / slope).xreplace({place: S.Zero}))}
        signs = {expand(k.xreplace(solved)): s for k, s in others.items()}
        if not unknown.is_Symbol:  # it may be met in another spelling
            signs[zero] = (0,)
        return e.xreplace(solved), signs
    return e, {**others, asked: (0,), zero: (0,)}


def _unknowns(e: Expr) -> list[Expr]:
    """Terms for which ``e`` might be solved: its symbols, then other factors of its products."""
    symbols = sorted(e.free_symbols, key=lambda s: (bool(s.is_positive), str(s)))
    factors = [f for term in Add.make_args(e) for f in Mul.make_args(term)]
    return symbols + [f for f in factors if not (f.is_Symbol or f.is_number or f.is_Add)]
