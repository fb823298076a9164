"""Lengths of dimensions created by a text: slices and concatenations.

Lengths are expressed in the free sizes, so that ``n // 2``, ``n - n // 2`` and an axis ``D =
Axis("D", E / 2)`` are equal for even E.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from math import lcm

from sympy import Add, Dummy, Expr, Integer, Mul, Symbol, floor, fraction, together

from derive.language.notation.definition import Definition
from derive.language.symbols import Axis


@lru_cache(maxsize=8192)
def in_sizes(definition: Definition, e: Expr) -> Expr:
    """``e`` in the free sizes; floor is dropped around expressions known to be integers."""
    e = _open(definition, e)
    if not e.has(floor):
        return e
    numbers, back = _whole_numbers(definition)
    return e.xreplace(numbers).expand().xreplace(back).expand()


def _open(definition: Definition, e: Expr) -> Expr:
    known: dict[Expr, Expr] = {axis: Integer(n) for axis, n in definition.fixed.items()}
    known |= dict(definition.twins) | definition.derived
    known |= {flat: Mul(*parts) for flat, parts in definition.flattened}
    before = None
    while before != e:
        before, e = e, e.xreplace(known)
    return e.expand()


@lru_cache(maxsize=256)
def _whole_numbers(definition: Definition) -> tuple[Mapping[Expr, Expr], Mapping[Expr, Expr]]:
    """Sizes of which a fraction is the length of an axis, as multiples of that length: E as 2*d
    where E/2 is one; and each d in the sizes.
    """
    numbers: dict[Expr, Expr] = {}
    back: dict[Expr, Expr] = {}
    lengths = [_open(definition, axis) for axis in definition.derived]
    for length in sorted(lengths, key=_finest, reverse=True):
        sizes = [a for a in length.free_symbols if length.coeff(a).is_Rational]
        parts = [a for a in sizes if length.coeff(a).q > 1 and a not in numbers]
        if parts and not length.has(floor):
            number, (of, *_) = Dummy(positive=True, integer=True), parts
            rest = length - of * length.coeff(of)
            numbers[of] = ((number - rest) / length.coeff(of)).expand()
            back[number] = length
    return numbers, back


def multiples_for(length: Expr) -> dict[Axis, int] | None:
    """The divisors that sizes must have for a length such as ``D/2`` to be an integer."""
    rest, of = length.as_independent(Axis, as_Add=True)
    number, axis = of.as_coeff_Mul()
    fits = isinstance(axis, Axis) and number.is_Rational and number.q > 1 and rest.is_Integer
    return {axis: int(number.q)} if fits else None


def multiples_without(apart: Expr) -> dict[Axis, int] | None:
    """The divisors that sizes must have for a difference of rounded lengths to vanish, such as ``D
    - floor(D/2)`` less ``floor(D/2)``.
    """
    parts = [t for node in apart.atoms(floor) for t in Add.make_args(node.args[0].expand())]
    found: dict[Axis, int] = {}
    for number, axis in (term.as_coeff_Mul() for term in parts):
        if isinstance(axis, Axis) and number.is_Rational and number.q > 1:
            found[axis] = lcm(found.get(axis, 1), int(number.q))
    whole = {axis: of * Dummy(integer=True) for axis, of in found.items()}
    return found if found and apart.xreplace(whole).expand() == 0 else None


def _finest(length: Expr) -> int:
    """The largest divisor of a size in it."""
    numbers = (n for n in length.as_coefficients_dict().values() if n.is_Rational)
    return max((int(n.q) for n in numbers), default=1)


@lru_cache(maxsize=8192)
def is_at_least(definition: Definition, e: Expr, least: int) -> bool:
    """Whether a length is at least ``least`` for all sizes of 1 or more; False if undecided."""
    e = in_sizes(definition, e) - least
    more = (e + 1 - in_sizes(definition, axis) for axis in definition.derived)
    return any(_never_negative(definition, term) for term in (e, *more))


def _never_negative(definition: Definition, e: Expr) -> bool:
    numbers, _ = _whole_numbers(definition)
    for node in e.atoms(floor):  # floor(p/q) is at most p/q, and at least (p - q + 1)/q
        below = fraction(together(node.args[0]))[1]
        less = 1 - 1 / below if below.is_Integer else 1
        e = e.xreplace({node: node.args[0] - (less if e.coeff(node).is_positive else 0)})
    e = e.xreplace(numbers).expand()
    above = {s: Dummy(nonnegative=True, integer=True) + 1 for s in e.free_symbols}
    return e.xreplace(above).expand().is_nonnegative is True


@lru_cache(maxsize=256)
def sizes_of(definition: Definition) -> Mapping[Axis, Axis]:
    """For every axis the symbol of its size; axes of one length share the first one's."""
    first: dict[Expr, Axis] = {}
    twins = dict(definition.twins)
    for axis in definition.axes:
        if axis not in twins:
            first.setdefault(in_sizes(definition, axis), axis)
    return {axis: first[in_sizes(definition, axis)] for axis in definition.axes}


def with_axis(definition: Definition, length: Expr, named: str = "") -> tuple[Definition, Axis]:
    """The definition with a new axis of this length, and the axis."""
    known = {axis.name for axis in definition.axes} | set(definition.position)
    base = named or name_of(length)
    name, k = base, 2
    while name in known:
        name, k = f"{base}_{k}", k + 1
    axis = Axis(name, int(length) if length.is_Integer else length)
    places = [definition.axes.index(a) for a in length.free_symbols if a in definition.axes]
    place = max(places, default=len(definition.axes) - 1) + 1
    axes = (*definition.axes[:place], axis, *definition.axes[place:])
    return replace(definition, axes=axes), axis


def shown(axis: Axis) -> str:
    """The size of a dimension as shown in a shape; for an axis created by a text, its length."""
    made = axis.formula is not None and axis.name.startswith(name_of(axis.formula))
    return str(axis.formula) if made else axis.name


def name_of(length: Expr) -> str:
    """A name for a length: ``T_minus_1``; for a complicated one, a name made of its symbols."""
    if length.is_Integer:
        return f"of_{length}"
    rest, number = length.as_independent(Symbol, as_Add=True)[::-1]
    if isinstance(rest, Axis) and number.is_Integer:
        return f"{rest}_{'minus' if number < 0 else 'plus'}_{abs(number)}"
    return "_".join(sorted(map(str, length.free_symbols))) + "_part"
