"""Expressions at numbers: their values, and numbers at which they have one.

Values are computed from the inside out, as torch does: an expression with a part that is not a real
number has no value, unless a choice skips that part. A comparison with such a part is neither true
nor false. Both cases return None; nothing is raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement
from random import Random

from sympy import (
    ITE,
    And,
    Basic,
    Expr,
    Integer,
    N,
    Not,
    Or,
    Piecewise,
    Pow,
    Rational,
    S,
    Symbol,
    log,
)
from sympy.core.logic import fuzzy_and, fuzzy_not, fuzzy_or
from sympy.core.relational import Ge, Gt
from sympy.logic.boolalg import Boolean

from derive.language.choices import Branches, Compared
from derive.language.symbols import Axis, is_number_or_size

# What is drawn: numbers at which conditions change, and others near them; where an expression has
# no value at those, positive ones, and then those between 0 and 1.
DRAWN = (0, 1, -1, 2, -2, Rational(1, 2), Rational(-3, 2), 3, Rational(1, 5), Rational(-1, 5))
POSITIVE = tuple(Rational(n, 2) for n in range(1, 9))
SHARES = tuple(Rational(n, 8) for n in range(1, 8))
RANGES = (DRAWN, POSITIVE, SHARES)
SIZES = 6  # the largest size that is drawn, doubled after so many are refused
DOUBLED = 12  # times at most
MOST_ADDED = 16  # to sizes that do not do
TRIED = 20  # sizes up to each largest one, and numbers of each range
LOGIC = {And: fuzzy_and, Or: fuzzy_or}


def value_at(e: Basic, numbers: Mapping[Expr, Basic | None]) -> Basic | None:
    """The real number or truth value of ``e`` where its symbols are ``numbers``; None where it has
    none.
    """
    if e in numbers:
        return numbers[e]
    if e in (S.true, S.false):
        return e
    if isinstance(e, (Branches, Compared)):
        return value_at(e.choice, numbers)
    if isinstance(e, (Piecewise, ITE)):
        pairs = [e.args[1::-1], (e.args[2], S.true)] if isinstance(e, ITE) else e.args
        return _chosen(pairs, numbers)
    if type(e) in LOGIC or isinstance(e, Not):
        parts = [_truth(value_at(arg, numbers)) for arg in e.args]
        return _of_truth(fuzzy_not(*parts) if isinstance(e, Not) else LOGIC[type(e)](parts))
    parts = [value_at(arg, numbers) for arg in e.args]
    if any(part is None for part in parts):
        return None
    try:
        value = e.func(*parts) if parts else e
    except (ArithmeticError, TypeError, ValueError):  # SymPy compares no complex numbers, nor NaN
        return None
    if isinstance(e, Boolean):
        return _of_truth(_truth(value))
    return value if _is_real(value) else None


def _is_real(value: Expr) -> bool:
    known = fuzzy_and([value.is_number, value.is_extended_real, value.is_finite])
    if known is not None:
        return known
    digits = N(value)
    return bool(digits.is_Float and digits.is_finite)


def truth_at(condition: Basic, numbers: Mapping[Expr, Basic | None]) -> bool | None:
    """The truth of ``condition`` there; None where it compares something not a real number."""
    return _truth(value_at(condition, numbers))


def _chosen(pairs: Iterable[tuple], numbers: Mapping[Expr, Basic | None]) -> Basic | None:
    for value, condition in pairs:
        holds = truth_at(condition, numbers)
        if holds is None:
            return None
        if holds:
            return value_at(value, numbers)
    return None


def _truth(value: Basic | None) -> bool | None:
    return bool(value) if value in (S.true, S.false) else None


def _of_truth(holds: bool | None) -> Basic | None:
    return None if holds is None else S.true if holds else S.false


def needs_of_sizes(e: Basic) -> list[Basic]:
    """Conditions on sizes for ``e`` to have a value: divisors and arguments of logarithms are
    positive, those of roots not negative. Only subexpressions in sizes alone are considered.
    """
    needs = [
        (Gt if p.exp.could_extract_minus_sign() else Ge)(p.base, 0)
        for p in e.atoms(Pow)
        if _of_sizes(p.base) and (p.exp.could_extract_minus_sign() or not p.exp.is_integer)
    ]
    needs += [Gt(f.args[0], 0) for f in e.atoms(log) if _of_sizes(f.args[0])]
    return sorted({*needs} - {S.true}, key=lambda need: need.sort_key())


def _of_sizes(e: Expr) -> bool:
    return is_number_or_size(e) and bool(e.atoms(Axis))


def sizes_allow(needs: Iterable[Basic], sizes: Mapping[Axis, int]) -> bool:
    """Whether all conditions on sizes hold for ``sizes``."""
    numbers = {axis: Integer(n) for axis, n in sizes.items()}
    return all(truth_at(need, numbers) for need in needs)


def larger_sizes(sizes: Mapping[Axis, int], axes: Sequence[Axis]) -> Iterator[dict[Axis, int]]:
    """The sizes, and then larger ones along ``axes``, the nearest first."""
    for total in range(MOST_ADDED + 1):
        for more in combinations_with_replacement(axes, total):
            yield {**sizes} | {axis: sizes[axis] + more.count(axis) for axis in axes}


def sizes_for(
    needs: Iterable[Basic], axes: Iterable[Axis], random: Random
) -> dict[Axis, Integer] | None:
    """Small sizes that satisfy all ``needs``; None where none were found."""
    needs, axes = list(needs), list(axes)
    for doubled in range(DOUBLED):
        for _ in range(TRIED):
            sizes = {a: Integer(random.randint(1, SIZES * 2**doubled)) for a in axes}
            sizes |= {a: Integer(a.length) for a in axes if a.length is not None}
            if sizes_allow(needs, sizes):
                return sizes
    return None


def points_for(
    parts: Iterable[Expr], symbols: Iterable[Symbol], count: int, random: Random
) -> Iterator[dict[Expr, Expr]]:
    """Numbers for ``symbols`` at which all ``parts`` have a value: ``count`` of them, none where
    hardly any do.
    """
    parts, symbols = list(parts), list(symbols)
    axes = [s for s in symbols if isinstance(s, Axis)]
    needs = [need for part in parts for need in needs_of_sizes(part)]
    for _ in range(count):
        found = next(_points(parts, symbols, axes, needs, random), None)
        if found is None:
            return
        yield found


def _points(parts, symbols, axes, needs, random: Random) -> Iterator[dict[Expr, Expr]]:
    for numbers in (n for n in RANGES for _ in range(TRIED)):
        sizes = sizes_for(needs, axes, random)
        if sizes is None:
            return
        point = {s: _drawn(s, random, numbers) for s in symbols} | sizes
        if all(value_at(part, point) is not None for part in parts):
            yield point


def _drawn(symbol: Symbol, random: Random, numbers: tuple) -> Expr:
    number = S(
        random.choice([n for n in numbers if not symbol.is_integer or S(n).is_integer] or [1])
    )
    if not (symbol.is_positive or symbol.is_nonnegative):
        return number
    return abs(number) if number != 0 or not symbol.is_positive else S.One
