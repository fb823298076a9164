"""Between which numbers a value lies, as far as its definition tells: interval arithmetic (Moore
1966) over the named values of a forward.

``1 + exp(-x)`` is at least 1, so that it may be divided by; ``tanh(x)/t`` with ``t`` above 1 is
never large, so that its exponential needs no shift. Nothing is assumed of how values hang together:
``x - x`` lies anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from math import inf, log

from sympy import Add, Expr, Mul, Piecewise, Pow, S, exp

from derive.language.detached import Detach
from derive.language.functions import KNOWN
from derive.language.nodes import ArrayNode, Max, OneHot, Sum
from derive.language.segments import own_segment_of, picked_of
from derive.language.symbols import MINUS_INFINITY, Tensor, axes_of

HELD = 1e300  # larger numbers are taken for anything
MODERATE = 40.0  # exp(2*40) fits into float32


@dataclass(frozen=True)
class Bounds:
    """All numbers from ``low`` to ``high``, either of which may be infinite."""

    low: float = -inf
    high: float = inf

    def __add__(self, other: Bounds) -> Bounds:
        return Bounds(self.low + other.low, self.high + other.high)

    def __mul__(self, other: Bounds) -> Bounds:
        ends = [_product(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        return Bounds(min(ends), max(ends))

    def union(self, other: Bounds) -> Bounds:
        return Bounds(min(self.low, other.low), max(self.high, other.high))

    def intersection(self, other: Bounds) -> Bounds:
        return Bounds(max(self.low, other.low), min(self.high, other.high))

    def through(self, growing: Callable[[float], float]) -> Bounds:
        return Bounds(growing(self.low), growing(self.high))

    def power(self, exponent: Expr) -> Bounds:
        """Bounds of the powers to a number; anywhere where these are of no use."""
        if exponent.is_Integer and exponent.is_even and exponent.is_positive:
            ends = abs(self.low), abs(self.high)
            least = 0.0 if self.low <= 0 <= self.high else min(ends)
            return Bounds(least, max(ends)).through(lambda x: _power(x, int(exponent)))
        if exponent.is_Integer and exponent.is_positive:
            return self.through(lambda x: _power(x, int(exponent)))
        if exponent.is_Integer and self.is_away_from_zero:
            inverse = Bounds(1 / self.high, 1 / self.low)
            return inverse if exponent == -1 else inverse.power(-exponent)
        if exponent.is_number and self.low >= 0:
            ends = [_power(x, float(exponent)) for x in (self.low, self.high)]
            return Bounds(min(ends), max(ends))
        return NONNEGATIVE if self.low >= 0 or exponent.is_even else ANYWHERE

    @property
    def is_away_from_zero(self) -> bool:
        """Whether they may be divided by: none of them is 0, or becomes it for being small."""
        return self.low > 0 or self.high < 0

    @property
    def is_finite(self) -> bool:
        """Whether neither end is infinite."""
        return -inf < self.low and self.high < inf

    @property
    def is_moderate(self) -> bool:
        """Whether exponentials of them, and products of two such, neither overflow nor vanish."""
        return self.low >= -MODERATE and self.high <= MODERATE


ANYWHERE, NONNEGATIVE = Bounds(), Bounds(0.0)
UNIT = Bounds(0.0, 1.0)


@dataclass(frozen=True)
class Ranges:
    """Between which numbers the values of a forward lie, of which ``definition_of`` has the
    definitions; ``known`` has what was found, by name: along other axes it is the same.
    """

    definition_of: Callable[[Tensor], Expr | None]
    known: dict[str, Bounds] = field(default_factory=dict)

    def of(self, tensor: Tensor) -> Bounds:
        if tensor.name not in self.known:
            definition = self.definition_of(tensor)
            if definition is None:  # an input, or not defined yet
                return _signed(tensor)
            self.known[tensor.name] = _signed(tensor).intersection(bounds(definition, self))
        return self.known[tensor.name]


def bounds(e: Expr, ranges: Ranges) -> Bounds:
    """Bounds of ``e``, treating terms and factors as independent."""
    if e.is_number:
        held = e.is_real and abs(e) < HELD
        return Bounds(float(e), float(e)) if held else ANYWHERE
    if isinstance(e, Tensor):
        return ranges.of(e)
    if isinstance(e, ArrayNode) and e.image is not None:
        return Bounds(*map(float, e.image))
    found = _signed(e)
    if isinstance(e, Piecewise):
        cases = [bounds(value, ranges) for value, _ in e.args]
        first, *others = cases
        for other in others:
            first = first.union(other)
        return found.intersection(first)
    if isinstance(e, Detach):
        return bounds(e.args[0], ranges)
    if isinstance(e, ArrayNode) and e.chooses_from:
        return reduce(Bounds.union, (bounds(chosen, ranges) for chosen in e.chooses_from))
    if isinstance(e, Sum):
        return found.intersection(_of_sum(e, ranges))
    if isinstance(e, Pow) and e.exp.is_number:
        return found.intersection(bounds(e.base, ranges).power(e.exp))
    if isinstance(e, Mul) and _is_share(e, ranges):
        return UNIT
    if e.is_Add and (most := _largest_below_exponential(e)) is not None:
        found = found.intersection(Bounds(high=most))
    if e.is_Add or isinstance(e, Mul):
        first, *others = (bounds(arg, ranges) for arg in e.args)
        for other in others:
            first = first + other if e.is_Add else first * other
        return found.intersection(first)
    row = KNOWN.get(type(e).__name__)
    if row is None:
        return found
    within = [bounds(arg, ranges) for arg in e.args] if callable(row.image) else []
    return found.intersection(Bounds(*row.image_of(*((u.low, u.high) for u in within))))


def _largest_below_exponential(e: Add) -> float | None:
    """The largest that ``a*u - b*exp(u)`` can be, if ``e`` is that: where its derivative is 0."""
    for term in e.args if len(e.args) == 2 else ():
        factor, function = term.as_coeff_Mul()
        rest, other = (e - term).as_coeff_Mul()
        if isinstance(function, exp) and factor.is_negative:
            slope, argument = function.exp.as_coeff_Mul()
            if other == argument and (rest / slope).is_positive:
                a, b = float(rest / slope), -float(factor)
                return a * (log(a / b) - 1)
    return None


def _of_sum(e: Sum, ranges: Ranges) -> Bounds:
    if _has_a_one(e, ranges):
        return Bounds(1.0)
    picked = picked_of(e)
    return _summed(bounds(e.operand, ranges)) if picked is None else bounds(picked[1], ranges)


def _has_a_one(total: Sum, ranges: Ranges) -> bool:
    """Whether ``total`` is of exponentials of entries minus the largest of them, in all or in their
    segment, which is read back: one of those is 1, and none negative.
    """

    def defined(e: Expr) -> Expr:
        definition = ranges.definition_of(e) if isinstance(e, Tensor) else None
        return e if definition is None else defined(definition)

    hot, operand = own_segment_of(total, defined) or (None, total.operand)
    axes = {*total.axes} if hot is None else axes_of(hot.operand)
    term = defined(operand)
    terms = Add.make_args(defined(term.exp)) if isinstance(term, exp) else ()
    for subtracted in terms:
        entry = Add(*(t for t in terms if t != subtracted))
        if _compared(-subtracted, hot, defined) == (axes, defined(entry)):
            return True
    return False


def _compared(largest: Expr, hot: OneHot | None, defined: Callable[[Expr], Expr]):
    """The axes along which ``largest`` is that, in the segment that ``hot`` picks if there is one,
    and of what.
    """
    largest, along = defined(largest), set()
    if hot is not None:
        picked, row = picked_of(largest) or (None, largest)
        largest = defined(row) if picked == hot else largest
    while isinstance(largest, Max):
        along, largest = along | {*largest.axes}, defined(largest.operand)
    if hot is None:
        return along, largest
    first, other = largest.args if isinstance(largest, Piecewise) else ((S.Zero, S.true),) * 2
    of_segment = first[1] == (hot > 0) and other == (MINUS_INFINITY, True)
    return along if of_segment else set(), defined(first[0])


def _is_share(e: Mul, ranges: Ranges) -> bool:
    """Whether ``e`` is one of the terms of a sum, over that and more, where none is negative."""
    for divisor in (f.base for f in e.args if isinstance(f, Pow) and f.exp == -1):
        definition = ranges.definition_of(divisor) if isinstance(divisor, Tensor) else None
        terms = Add.make_args(divisor if definition is None else definition)
        of_terms = (t.operand if isinstance(t, Sum) else t for t in terms)
        if e * divisor in of_terms:
            return all(bounds(term, ranges).low >= 0 for term in (e * divisor, *terms))
    return False


def _signed(e: Expr) -> Bounds:
    """Bounds from the sign that SymPy knows."""
    if e.is_nonnegative:
        return NONNEGATIVE
    return Bounds(high=0.0) if e.is_nonpositive else ANYWHERE


def _summed(operand: Bounds) -> Bounds:
    """Bounds of a sum of any number of terms, even none."""
    return Bounds(0.0 if operand.low >= 0 else -inf, 0.0 if operand.high <= 0 else inf)


def _product(a: float, b: float) -> float:
    return 0.0 if a == 0 or b == 0 else a * b


def _power(x: float, exponent: float) -> float:
    if x == 0 and exponent < 0:
        return inf
    try:
        return x**exponent
    except OverflowError:
        return inf
