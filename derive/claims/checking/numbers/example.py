"""An example in which a claim is not the gradient: the record, and its displayed numbers.

In: a `GradientQuestion` and a point at which the two differ. Out: a `Counterexample`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from sympy import Expr, cancel, expand, nan, radsimp

from derive.claims.checking.numbers.arithmetic import DIGITS, Arithmetic, Floating, Unevaluable
from derive.claims.checking.numbers.comparison import Comparison, GradientQuestion
from derive.claims.checking.numbers.evaluation import Point
from derive.claims.checking.numbers.exact_numbers import Exact
from derive.claims.checking.numbers.points import complexity
from derive.claims.checking.numbers.tables import UNDEFINED, Index
from derive.claims.checking.words.spoken import now_spoken
from derive.language.symbols import Tensor

READABLE = 30  # operations of an irrational number
FLOATING = Floating()


@dataclass(frozen=True)
class Counterexample:
    """At ``point``, entry ``index`` of the gradient of ``of`` is ``expected``, and the claim gives
    ``got`` (nan: undefined).

    ``is_rational``: both are. ``at_kink``: the claim differs only at a tie, where the derivative is
    a convention. ``called``: the gradient's name, if not ``d`` and the tensor's name.
    """

    point: Point
    of: Tensor
    index: Index
    expected: Expr
    got: Expr
    is_rational: bool
    at_kink: bool = False
    called: str = ""


def rows(found: Counterexample) -> dict[str, object]:
    """Names and numbers for display: sizes, data in the order of declaration as nested lists, then
    what was expected and what the claim gives, all in the words that are spoken.
    """
    spoken = now_spoken()
    data = {name: _nested(entries) for name, entries in found.point.values.items()}
    shown = spoken.sizes(found.point.sizes) | spoken.rows(data)
    where = (found.called or f"d{found.of.name}") + (f"{list(found.index)}" if found.index else "")
    scale = prod(data[name] for name in spoken.ones if name in data)
    return shown | {f"expected {where}": found.expected / scale, f"got {where}": found.got / scale}


def _nested(entries: Mapping[Index, Expr], at: Index = ()):
    if at in entries:
        return entries[at]
    places = sorted({i[len(at)] for i in entries if i[: len(at)] == at})
    return [_nested(entries, (*at, place)) for place in places]


def stated(
    question: GradientQuestion,
    point: Point,
    undefined: bool = False,
    at_kink: bool = False,
    last: Arithmetic = FLOATING,
) -> Counterexample | None:
    """The entry that is easiest to read, as exact as possible; if it is not exact, in the
    arithmetic ``last``.
    """
    for arithmetic in (Exact(), Exact(irrational=True), last):
        try:
            found = question.compared(point, arithmetic)
        except Unevaluable:
            continue
        wrong = found.undefined if undefined else found.different
        pairs = [(i, _shown(found, found.expected[i]), _shown(found, found.got[i])) for i in wrong]
        if pairs:
            i, expected, got = min(pairs, key=lambda p: complexity(p[1]) + complexity(p[2]))
            rational = bool(expected.is_Rational and got.is_Rational)
            return Counterexample(point, question.of, i, expected, got, rational, at_kink)
    return None


def _shown(found: Comparison, value) -> Expr:
    """A number in SymPy's shortest form, or its digits if that is long."""
    if value is UNDEFINED:
        return nan
    e = found.arithmetic.sympy(value)
    if e.is_Rational or e.is_Float:
        return e
    if e.count_ops() > READABLE:
        return e.evalf(DIGITS)
    return min((e, radsimp(e), expand(radsimp(e)), cancel(e)), key=lambda form: form.count_ops())
