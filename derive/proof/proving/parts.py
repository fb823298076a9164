"""Identities for an axis that is cut into parts, behind code for many ranks.

Each is proved for any number of parts, of any lengths, 0 among them, by induction: ``start`` says
that it holds for none, ``step`` that it goes on to hold when a part of n entries is put behind
parts of s entries together. Differences are exactly zero in SymPy. Chunks are parts in time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sympy import (
    Expr,
    Function,
    KroneckerDelta,
    Max,
    Piecewise,
    Sum,
    exp,
    expand,
    log,
    oo,
    powsimp,
    simplify,
    symbols,
)

i, j, s, n = symbols("i j s n", integer=True, nonnegative=True)
f, g, of_rows = Function("f"), Function("g"), Function("of_rows")
d = symbols("d", real=True)
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


def _rows() -> tuple[Expr, ...]:
    """Row i of a part is row s + i of the whole, for entries of a row and for sums along it."""
    row, own = of_rows(i, j), of_rows(s + i, j)
    along = Sum(f(row), (j, 0, n - 1)).subs(i, s + i) - Sum(f(own), (j, 0, n - 1))
    return f(row).subs(i, s + i) - f(own), along


def _joined_sums() -> tuple[Expr, ...]:
    """Two sums of n entries, added to one number: their sum."""
    both = Sum(f(i) + g(i), (i, s, s + n - 1))
    return (both.expand() - Sum(f(i), (i, s, s + n - 1)) - Sum(g(i), (i, s, s + n - 1)),)


def _rescaled() -> tuple[Expr, ...]:
    """A term measured from one maximum is that measured from another times a power of the distance,
    for every degree; twice is once; of nothing so far, measured from -oo, it stays nothing.
    """
    term = exp(d * (whole - f(i)))
    once = exp(d * (whole - more)) * exp(d * (more - f(i)))
    twice = exp(d * (whole - part)) * exp(d * (part - more))
    return (
        powsimp(expand(once) - expand(term)),
        powsimp(expand(twice) - expand(exp(d * (whole - more)))),
        exp(-oo),
    )


def _upstream() -> tuple[Expr, ...]:
    """A gradient is linear in the upstream one: made for 1 and multiplied, term by term."""
    return (c * (part + more) - (c * part + c * more), c * part - c * (1 * part))


def _symmetric() -> tuple[Expr, ...]:
    """By x, the sum of v times the gradient is how the gradient of x moves along v."""
    x, y, v, w = symbols("x y v w", real=True)
    of = Function("of")(x, y)
    along = v * of.diff(x) + w * of.diff(y)
    moved = [one.diff(x) * v + one.diff(y) * w for one in (of.diff(x), of.diff(y))]
    return (along.diff(x) - moved[0], along.diff(y) - moved[1])


def _round() -> tuple[Expr, ...]:
    """Of two parts, and so of all that are met one after the other, either may be the first."""
    at_first, later = Sum(f(i), (i, 0, s - 1)), Sum(f(i), (i, s, s + n - 1))
    turned = Sum(f(i), (i, 0, s + n - 1)) - at_first - later
    return turned, Max(Max(whole, more), part) - Max(Max(whole, part), more)


def _collected() -> tuple[Expr, ...]:
    """Rows put one part behind the other: entry s + i of all is entry i of the part from s on."""
    return (Piecewise((f(i), i < s), (f(s + (i - s)), True)).simplify() - f(i),)


def _carried() -> tuple[Expr, ...]:
    """h[t] = f[t]*h[t-1] + g[t], of which a sum, a product and the value before are cases, begun in
    the state h[s-1]: if place s + n is that of the whole, so is the next one. So do a maximum and
    the logarithm of a sum.
    """
    h, own = Function("h"), Function("own")
    at = s + n + 1
    whole_one = f(at) * h(at - 1) + g(at)
    next_one = (f(at) * own(n) + g(at)).subs(own(n), h(s + n))
    first = (f(s) * c + g(s)).subs(c, h(s - 1)) - (f(s) * h(s - 1) + g(s))
    summed = log(exp(log(exp(whole) + exp(part))) + exp(more)) - log(
        exp(whole) + exp(log(exp(part) + exp(more)))
    )
    return whole_one - next_one, first, *_maxima(), summed


def _near() -> tuple[Expr, ...]:
    """Row i of a part, which is row s + i of all, reads the row c behind it: row i + c + j of those
    from j before the part on.
    """
    return (f(s - j + (i + c + j)) - f((s + i) + c),)


def _exchanged() -> tuple[Expr, ...]:
    """One more entry of S on both sides, where the sums over those before are ``total``."""
    g_of, v, total_of = g(j), of_rows(n, j), f(j)
    grown = Sum(expand(g_of * (total_of + c * v)), (j, 0, s)).expand()
    left = Sum(g_of * total_of, (j, 0, s)) + c * Sum(g_of * v, (j, 0, s))
    return (grown - left,)


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
    "rows": OfParts("a row of a chunk is that row of the whole: what a row needs is in it", _rows),
    "joined sums": OfParts("a sum of two sums over the chunks is one sum", _joined_sums),
    "rescaled": OfParts(
        "a sum of terms measured from a running maximum is multiplied by a power of the "
        "exponential of its growth",
        _rescaled,
    ),
    "exchanged": OfParts(
        "a sum of a product with an adjoint is one of the output and its upstream gradient",
        _exchanged,
    ),
    "carried": OfParts(
        "what runs along the rows goes on from the state at the end of the chunk before", _carried
    ),
    "near": OfParts("a window at a row of a chunk reads rows of the chunk and of its halo", _near),
    "upstream": OfParts(
        "gradients are linear in the upstream gradient: made for 1, then multiplied", _upstream
    ),
    "symmetric": OfParts(
        "second derivatives are symmetric: times a vector, they say how gradients move along it",
        _symmetric,
    ),
    "round": OfParts("parts are met in any order: sums and maxima are the same", _round),
    "collected": OfParts("rows put one chunk behind the other are all rows", _collected),
    "logarithm": OfParts("a common term is subtracted after the sum", _logarithms),
    "share": OfParts("a common divisor is applied after the sum", _shares),
}
