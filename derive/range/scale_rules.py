"""How every kind of node is followed as a moderate factor times an exponential that is not taken:
`identities`, mathematics beside its code, each with the condition under which it holds.

``tests/test_stability.py`` proves every one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial, reduce
from typing import Protocol

from sympy import Abs, Add, Expr, Mul, Piecewise, Pow, S, cosh, exp, expand, log

from derive.language.identity import Identity
from derive.language.nodes import (
    LogCumSumExp,
    LogCumSumExpBack,
    Peak,
    Recurrence,
    RecurrenceBefore,
    Reduction,
    Sum,
    renamed,
)
from derive.language.symbols import MINUS_INFINITY, Tensor, axes_of, tensors_in
from derive.range.exponents import Definitions, extreme
from derive.zero.positive import is_positive

LONGEST_WORDS = 30  # characters of a name that is made of others


@dataclass(frozen=True)
class Scaled:
    """The value ``factor*exp(exponent)``."""

    factor: Expr
    exponent: Expr = S.Zero


class Following(Protocol):
    """What an identity may ask of the values that are followed (`Scales`)."""

    known: Mapping[str, Scaled]
    named: Mapping[Expr, Tensor]
    values: Definitions

    def of(self, e: Expr) -> Scaled:
        """``e`` as a factor times an exponential."""

    def name(self, e: Expr, words: str) -> Expr:
        """The value that ``e`` is, or ``e`` itself where no more values are made."""

    def safe(self, e: Expr) -> Expr:
        """``e`` without exponentials that overflow, as far as they cancel."""

    def inside(self, e: Expr) -> Expr:
        """``e`` with that done to its operands."""

    def value_of(self, scaled: Scaled) -> Expr:
        """The value itself, with the exponential under its name if it has one."""

    def quotient(self, e: Expr) -> Expr:
        """A difference as the quotient of positive sums that it is."""

    def stays_moderate(self, exponent: Expr) -> bool:
        """Whether its exponential neither overflows nor is 0 in all of its row."""


def _tensor(scales: Following, e: Tensor) -> Scaled:
    scaled = scales.known.get(e.name)
    if scaled is None:
        return Scaled(e)
    met = dict(zip(e.home, e.axes, strict=True))
    return Scaled(renamed(scaled.factor, met), renamed(scaled.exponent, met))


def _exponential(scales: Following, e: exp) -> Scaled:
    exponent = scales.values.unfolded(e.exp)
    return Scaled(e) if scales.stays_moderate(exponent) else Scaled(S.One, exponent)


def _hyperbolic(scales: Following, e: cosh) -> Scaled:
    return scales.of(e.rewrite(exp))


def _product(scales: Following, e: Mul) -> Scaled:
    parts = [scales.of(factor) for factor in e.args]
    exponent = expand(Add(*(part.exponent for part in parts)))
    return Scaled(Mul(*(part.factor for part in parts)), exponent)


def _power(scales: Following, e: Pow) -> Scaled:
    base = scales.of(e.base)
    if base.exponent == 0 or not (e.exp.is_Integer or is_positive(base.factor)):
        return Scaled(scales.inside(e))
    return Scaled(base.factor**e.exp, expand(base.exponent * e.exp))


def _sum_of_terms(scales: Following, e: Add) -> Scaled:
    parts = [scales.of(term) for term in e.args]
    exponents = list(dict.fromkeys(part.exponent for part in parts))
    if exponents == [0]:
        return Scaled(Add(*(part.factor for part in parts)))
    if len(exponents) == 1:
        return Scaled(Add(*(part.factor for part in parts)), exponents[0])
    if not all(map(is_positive, e.args)):
        whole = scales.quotient(e)
        return Scaled(Add(*map(scales.safe, e.args))) if whole == e else scales.of(whole)
    weights = [Add(*(part.factor for part in parts if part.exponent == k)) for k in exponents]
    exponents = [_without_choice(scales, k, "exponent") for k in exponents]
    largest = reduce(partial(_larger, scales), exponents)
    if largest is None:
        return Scaled(Add(*map(scales.safe, e.args)))
    decided = largest in exponents
    if len(exponents) == 2 and weights[0] == weights[1] and not decided:
        return Scaled(weights[0] * (1 + exp(-Abs(exponents[0] - exponents[1]))), largest)
    pairs = zip(weights, exponents, strict=True)
    return Scaled(Add(*(w * exp(k - largest) for w, k in pairs)), largest)


def _larger(scales: Following, a: Expr | None, b: Expr) -> Expr | None:
    """The larger of two exponents; None where a choice in them can be given no name."""
    if a is not None and scales.values.is_nonpositive(b - a):
        return a
    if a is not None and scales.values.is_nonpositive(a - b):
        return b
    a = None if a is None else _without_choice(scales, a, "larger_exponent")
    return None if a is None or a.has(Piecewise) or b.has(Piecewise) else extreme(a, b)


def _without_choice(scales: Following, e: Expr, words: str) -> Expr:
    """``e``, under a name where it holds a choice: so no choice asks for another."""
    return scales.name(e, words) if e.has(Piecewise) else e


def _sum_along(scales: Following, e: Sum) -> Scaled:
    operand = scales.of(e.operand)
    carried = [axis for axis in e.axes if axis in axes_of(operand.exponent)]
    if not carried:
        return Scaled(e.on(operand.factor), operand.exponent)
    if scales.stays_moderate(operand.exponent):
        return Scaled(e.on(scales.value_of(operand)))
    words = getattr(operand.exponent, "name", "exponent")
    terms = Add.make_args(operand.exponent)
    varying = Add(*(term for term in terms if axes_of(term) & {*carried}))
    top = varying
    for axis in carried:
        top = Peak.over(top, [axis])
    top = scales.name(top, f"{words}_max") + operand.exponent - varying
    difference = scales.name(operand.exponent - top, f"{words}_shifted")
    shifted = scales.name(exp(difference), f"exp_{words}_shifted")
    return Scaled(e.on(operand.factor * shifted), top)


def _cumulated(scales: Following, e: Recurrence) -> Scaled:
    """A cumulative sum: of exponentials alone as one exponential; where the exponent grows on the
    way, as a recurrence whose factors are at most 1.
    """
    inside = Scaled(scales.inside(e))
    operand = scales.of(e.operand)
    if not e.is_sum or e.exclusive or operand.exponent == 0:
        return inside
    if e.axis not in axes_of(operand.exponent):
        return Scaled(e.on(operand.factor), operand.exponent)
    if operand.factor.is_number and operand.factor.is_positive:
        kind = LogCumSumExpBack if e.reverse else LogCumSumExp
        words = f"{getattr(operand.exponent, 'name', 'exponent')}_{kind.word}"
        return Scaled(operand.factor, scales.name(kind.over(operand.exponent, e.axes), words))
    growing = -operand.exponent if e.reverse else operand.exponent
    if not scales.values.grows(growing, e.axis):
        return inside
    step = RecurrenceBefore.over(growing, S.Zero, MINUS_INFINITY, e.axes) - growing
    return Scaled(type(e).over(operand.factor, exp(step), S.Zero, e.axes), operand.exponent)


def _choice(scales: Following, e: Piecewise) -> Scaled:
    """Only where there is nothing but 0 to choose instead."""
    others = [value for value, _ in e.args if value != 0]
    scaled = scales.of(others[0]) if len(others) == 1 < len(e.args) else Scaled(S.One)
    if scaled.exponent == 0:
        return Scaled(scales.inside(e))
    words = getattr(scaled.exponent, "name", "exponent")
    chosen = Piecewise(*((scaled.exponent if v != 0 else MINUS_INFINITY, c) for v, c in e.args))
    factor = scaled.factor
    if factor != 1:
        factor = Piecewise(*((factor if v != 0 else v, c) for v, c in e.args))
    return Scaled(factor, scales.name(chosen, f"{words}_chosen"))


def _logarithm(scales: Following, e: log) -> Scaled:
    argument = scales.of(e.args[0])
    scaled = argument
    if argument.exponent == 0:
        scaled = scales.of(scales.quotient(e.args[0]))
    if scaled.exponent == 0:
        return Scaled(log(argument.factor))
    rest = _split(scaled.factor).replace(_is_of_exponentials, partial(_named_logarithm, scales))
    return Scaled(rest + scales.named.get(scaled.exponent, scaled.exponent))


def _named_logarithm(scales: Following, e: log) -> Expr:
    """log(1 + exp(-|x|)) under one name, wherever it is met."""
    words = "_".join(dict.fromkeys(t.name for t in tensors_in(e)))
    return scales.name(e, f"{words}_log_term" if len(words) < LONGEST_WORDS else "log_term")


def _split(e: Expr) -> Expr:
    """The logarithm of a product of positive factors, one by one."""
    if isinstance(e, Mul) and all(map(is_positive, e.args)):
        return Add(*map(_split, e.args))
    if isinstance(e, Pow) and is_positive(e.base):
        return e.exp * _split(e.base)
    content, primitive = e.primitive() if isinstance(e, Add) else (S.One, e)
    if content != 1:
        return log(content) + _split(primitive)
    return e.exp if isinstance(e, exp) else log(e)


def _is_of_exponentials(e: Expr) -> bool:
    return isinstance(e, log) and e.has(exp) and not e.has(Reduction)


# The contract: ``rewrite(scales, e)`` gives factor and exponent with e = factor*exp(exponent).
identities: dict[type, Identity] = {
    Tensor: Identity("v = f*exp(k)", "that is the value v", _tensor),
    exp: Identity("exp(u) = 1*exp(u)", "always", _exponential),
    cosh: Identity("cosh(u) = (exp(u) + exp(-u))/2", "always", _hyperbolic),
    Mul: Identity("a*exp(j) * b*exp(k) = a*b*exp(j + k)", "always", _product),
    Pow: Identity("(a*exp(k))**r = a**r*exp(r*k)", "r is whole, or a is positive", _power),
    Add: Identity(
        "a*exp(j) + b*exp(k) = (a*exp(j - m) + b*exp(k - m))*exp(m)",
        "m is the larger of j and k; for a = b the bracket is a*(1 + exp(-|j - k|))",
        _sum_of_terms,
    ),
    Sum: Identity(
        "Sum(a*exp(k), C) = Sum(a*exp(k - m), C)*exp(m)",
        "m = Max(k, C), or k where it does not vary along C",
        _sum_along,
    ),
    Recurrence: Identity(
        "CumSum(exp(k), T) = exp(LogCumSumExp(k, T)); "
        "CumSum(a*exp(k), T) = Scan(exp(Previous(k, T) - k), a, T)*exp(k)",
        "always; the latter where k never decreases along T; from the end with -k in the factor",
        _cumulated,
    ),
    Piecewise: Identity(
        "Piecewise((a*exp(k), c), (0, True)) = "
        "Piecewise((a, c), (0, True))*exp(Piecewise((k, c), (-oo, True)))",
        "always; where a is 1 it may stay 1, for exp(-oo) is 0",
        _choice,
    ),
    log: Identity("log(a*exp(k)) = log(a) + k", "a is positive", _logarithm),
}
