"""Identities for an axis that is cut into parts, behind code for many ranks.

Each is proved for any number of parts, of any lengths, 0 among them, by induction: ``start`` says
that it holds for none, ``step`` that it goes on to hold when a part of n entries is put behind
parts of s entries together. Differences are exactly zero in SymPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sympy import Expr, Function, KroneckerDelta, Max, Sum, oo, simplify, symbols

i, j, s, n = symbols("i j s n", integer=True, nonnegative=True)
f = Function("f")
whole, part, more = symbols("whole part more", real=True)
total, squares, own, own_squares, c = symbols("total squares own own_squares c", real=True)
m, k = symbols("m k", positive=True)


@dataclass(frozen=True)
class OfParts:
    """An identity, in words, and the differences that have to be zero for it."""

    words: str
    differences: Callable[[], tuple[Expr, ...]]

    @property
    def proved(self) -> bool:
        return all(simplify(difference) == 0 for difference in self.differences())


def _sums() -> tuple[Expr, ...]:
    """The sum over s + n entries is that over s plus that over the next n; over none it is 0."""
    f_of = f(i)
    before, behind = Sum(f_of, (i, 0, s - 1)), Sum(f_of, (i, s, s + n - 1))
    together = Sum(f_of, (i, 0, s + n - 1))
    return before + behind - together, together.subs({s: 0, n: 0}).doit()


def _picks() -> tuple[Expr, ...]:
    """A picked entry is a sum too: of the entries times 1 at the index, else 0."""
    f_of = f(i) * KroneckerDelta(i, j)
    before, behind = Sum(f_of, (i, 0, s - 1)), Sum(f_of, (i, s, s + n - 1))
    return (before + behind - Sum(f_of, (i, 0, s + n - 1)),)


def _maxima() -> tuple[Expr, ...]:
    """The largest of the whole so far, of a part and of the next; of an empty part it is -oo."""
    one_by_one, at_once = Max(Max(whole, part), more), Max(whole, part, more)
    return one_by_one - at_once, Max(-oo, part) - part


def _moments() -> tuple[Expr, ...]:
    """Of m entries with the sum ``total`` and the sum of squares ``squares``, and k more: squares
    about any c are those about its own mean and the entries times the distance squared; and the
    mean is that of the means, each as often as it has entries.
    """
    about = squares - 2 * c * total + m * c**2
    about_own = squares - total**2 / m
    joined = (m * (total / m) + k * (own / k)) / (m + k)
    return about - about_own - m * (total / m - c) ** 2, joined - (total + own) / (m + k)


def _shares() -> tuple[Expr, ...]:
    """Terms over one divisor are added first and divided once."""
    return ((part / m + more / m) - (part + more) / m,)


def _logarithms() -> tuple[Expr, ...]:
    """Weighted terms less one constant are added first, and the constant is subtracted as often as
    it has weight: of two terms, and so of any number of them.
    """
    apart = part * (m - c) + more * (k - c)
    return (apart - (part * m + more * k - c * (part + more)),)


identities = {
    "sum": OfParts("a sum is the sum of the parts' sums", _sums),
    "pick": OfParts("an index lies in exactly one part, and the others contribute 0", _picks),
    "largest": OfParts(
        "a maximum is the maximum of the parts' maxima, -oo for an empty part", _maxima
    ),
    "moments": OfParts(
        "a mean is the length-weighted mean of the parts' means, and squared deviations combine by "
        "the formula of Chan, Golub and LeVeque (1979)",
        _moments,
    ),
    "logarithm": OfParts("a common term is subtracted after the sum", _logarithms),
    "share": OfParts("a common divisor is applied after the sum", _shares),
}
