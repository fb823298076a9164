"""Rules that follow each kind of node as a moderate factor times an exponential that is not taken:
`identities`, mathematics beside its code, each with the condition under which it holds.

``tests/test_stability.py`` proves every one.
"""

from __future__ import annotations

from functools import partial, reduce

from sympy import Abs, Add, Expr, Mul, Piecewise, Pow, S, cosh, exp, expand, log

from derive.gradient.range.exponents import extreme, positive_picked
from derive.gradient.range.following import Following, Scaled
from derive.language.called import LONGEST_NAME, names_of, words_of
from derive.language.identity import IdentityRule
from derive.language.nodes import (
    LogCumSumExp,
    LogCumSumExpBack,
    OneHot,
    Peak,
    Recurrence,
    RecurrenceBefore,
    Reduction,
    Sum,
    renamed,
)
from derive.language.symbols import MINUS_INFINITY, Axis, Tensor, axes_of, tensors_in
from derive.proof.zero.positive import is_positive

LONGEST_EXPONENT = 16  # characters, so that its largest and what is left have short names too


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
    return scales.name(e, names_of(e, words)) if e.has(Piecewise) else e


def _sum_along(scales: Following, e: Sum) -> Scaled:
    operand = scales.of(e.operand)
    carried = [axis for axis in e.axes if axis in axes_of(operand.exponent)]
    if not carried:
        return Scaled(e.on(operand.factor), operand.exponent)
    if scales.stays_moderate(operand.exponent):
        return Scaled(e.on(scales.value_of(operand)))
    hots = [f for f in Mul.make_args(operand.factor) if isinstance(f, OneHot)]
    picking = next((hot for hot in hots if e.axes == (hot.axis,)), None)
    if picking is not None:
        return Scaled(e.on(operand.factor), _at_label(scales, operand.exponent, picking))
    words = _called(operand.exponent)
    terms = Add.make_args(operand.exponent)
    varying = Add(*(term for term in terms if axes_of(term) & {*carried}))
    segments = next((hot for hot in hots if _is_by_segment(hot, varying, carried)), None)
    top = (
        varying if segments is None else Piecewise((varying, segments > 0), (MINUS_INFINITY, True))
    )
    for axis in carried:
        top = Peak.over(top, [axis])
    along = "_".join(axis.name for axis in carried)
    own = top = scales.name(top, (f"max_{words}", f"max_{words}_along_{along}"))
    if segments is not None:
        own = _at_label(scales, top, segments)
    shifted = (f"{words}_shifted", f"{words}_shifted_along_{along}")
    difference = scales.name(varying - own, shifted)
    shifted = scales.name(exp(difference), [f"exp_{name}" for name in shifted])
    return Scaled(e.on(operand.factor * shifted), top + operand.exponent - varying)


def _is_by_segment(hot: OneHot, e: Expr, axes: list[Axis]) -> bool:
    """Whether a sum along ``axes`` of what ``hot`` is a factor of adds up ``e`` by its label."""
    return hot.axis not in {*axes, *axes_of(e)} and bool(axes_of(hot.operand) & {*axes})


def _at_label(scales: Following, e: Expr, hot: OneHot) -> Expr:
    """``e`` with what varies along the axis of ``hot`` read at its label, under a name."""
    row = Add(*(term for term in Add.make_args(e) if hot.axis in axes_of(term)))
    number, read = row.as_coeff_Mul()
    picked = Sum.over(hot * read, [hot.axis])
    return number * scales.name(picked, names_of(picked, _called(read))) + e - row


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
        whole = kind.over(operand.exponent, e.axes)
        names = names_of(whole, _called(operand.exponent))
        return Scaled(operand.factor, scales.name(whole, names))
    growing = -operand.exponent if e.reverse else operand.exponent
    if not scales.values.grows(growing, e.axis):
        return inside
    step = RecurrenceBefore.over(growing, S.Zero, MINUS_INFINITY, e.axes) - growing
    return Scaled(type(e).over(operand.factor, exp(step), S.Zero, e.axes), operand.exponent)


def _choice(scales: Following, e: Piecewise) -> Scaled:
    """Follow a choice whose only alternative is 0."""
    others = [value for value, _ in e.args if value != 0]
    scaled = scales.of(others[0]) if len(others) == 1 < len(e.args) else Scaled(S.One)
    if scaled.exponent == 0:
        return Scaled(scales.inside(e))
    words = _called(scaled.exponent)
    chosen = Piecewise(*((scaled.exponent if v != 0 else MINUS_INFINITY, c) for v, c in e.args))
    factor = scaled.factor
    if factor != 1:
        factor = Piecewise(*((factor if v != 0 else v, c) for v, c in e.args))
    return Scaled(factor, scales.name(chosen, (f"{words}_chosen",)))


def _logarithm(scales: Following, e: log) -> Scaled:
    argument = scales.of(e.args[0])
    scaled = argument
    if argument.exponent == 0:
        scaled = scales.of(scales.quotient(e.args[0]))
    if scaled.exponent == 0 and not _holds_exponential(scales, argument.factor):
        return Scaled(_picked(scales, log(argument.factor)))
    scaled = argument if scaled.exponent == 0 else scaled
    rest = _split(scales, scaled.factor)
    rest = rest.replace(_is_of_exponentials, partial(_named_logarithm, scales))
    return Scaled(rest + scales.named.get(scaled.exponent, scaled.exponent))


def _named_logarithm(scales: Following, e: log) -> Expr:
    """log(1 + exp(-|x|)) under one name everywhere."""
    words = "_".join(dict.fromkeys(t.name for t in tensors_in(e)))
    before = f"log_of_{words}" if len(words) < LONGEST_NAME else "log_of_exponentials"
    return scales.name(e, names_of(e, words, before))


def _called(exponent: Expr) -> str:
    """A name for an exponent."""
    words = getattr(exponent, "name", None) or words_of(exponent)
    return words if words and len(words) <= LONGEST_EXPONENT else "exponent"


def _picked(scales: Following, e: log) -> Expr:
    """``e``, or the entry that an index picks of the logarithms, where only those are finite."""
    total = scales.values.definition_of(e.args[0]) or e.args[0]
    picked = positive_picked(total)
    finite = picked and scales.safe(log(picked[1]))
    return e if not picked or finite == log(picked[1]) else total.on(picked[0] * finite)


def _holds_exponential(scales: Following, e: Expr) -> bool:
    """Whether an exponential is a factor of ``e``, all of which are positive."""
    known = scales.values.definition_of(e)
    if known is not None:
        return bool(e.is_positive) and _holds_exponential(scales, known)
    if isinstance(e, Mul):
        return is_positive(e) and any(_holds_exponential(scales, factor) for factor in e.args)
    if isinstance(e, Pow):
        return is_positive(e.base) and _holds_exponential(scales, e.base)
    return isinstance(e, exp)


def _split(scales: Following, e: Expr) -> Expr:
    """The logarithm of a product of positive factors, one by one; of values too, where they hold an
    exponential, or are a power of another one.
    """
    known = scales.values.definition_of(e)
    is_power = isinstance(known, Pow) and isinstance(known.base, Tensor) and known.base.is_positive
    if known is not None and (is_power or _holds_exponential(scales, e)):
        return _split(scales, known)
    if isinstance(e, Mul) and is_positive(e):
        return Add(*(_split(scales, factor) for factor in e.args))
    if isinstance(e, Pow) and is_positive(e.base):
        return e.exp * _split(scales, e.base)
    content, primitive = e.primitive() if isinstance(e, Add) else (S.One, e)
    if content != 1:
        return log(content) + _split(scales, primitive)
    return e.exp if isinstance(e, exp) else log(e)


def _is_of_exponentials(e: Expr) -> bool:
    return isinstance(e, log) and e.has(exp) and not e.has(Reduction)


# The contract: ``rewrite(scales, e)`` gives factor and exponent with e = factor*exp(exponent).
identities: dict[type, IdentityRule] = {
    Tensor: IdentityRule("v = f*exp(k)", "that is the value v", _tensor),
    exp: IdentityRule("exp(u) = 1*exp(u)", "always", _exponential),
    cosh: IdentityRule("cosh(u) = (exp(u) + exp(-u))/2", "always", _hyperbolic),
    Mul: IdentityRule("a*exp(j) * b*exp(k) = a*b*exp(j + k)", "always", _product),
    Pow: IdentityRule("(a*exp(k))**r = a**r*exp(r*k)", "r is whole, or a is positive", _power),
    Add: IdentityRule(
        "a*exp(j) + b*exp(k) = (a*exp(j - m) + b*exp(k - m))*exp(m)",
        "m is the larger of j and k; for a = b the bracket is a*(1 + exp(-|j - k|))",
        _sum_of_terms,
    ),
    Sum: IdentityRule(
        "Sum(a*exp(k), C) = Sum(a*exp(k - m), C)*exp(m)",
        "m = Max(k, C), or k where it does not vary along C; in a sum by label, which is a factor "
        "of a, m is the largest of the segment; what a label picks has the exponent of that entry",
        _sum_along,
    ),
    Recurrence: IdentityRule(
        "CumSum(exp(k), T) = exp(LogCumSumExp(k, T)); "
        "CumSum(a*exp(k), T) = Scan(exp(Previous(k, T) - k), a, T)*exp(k)",
        "always; the latter where k never decreases along T; from the end with -k in the factor",
        _cumulated,
    ),
    Piecewise: IdentityRule(
        "Piecewise((a*exp(k), c), (0, True)) = "
        "Piecewise((a, c), (0, True))*exp(Piecewise((k, c), (-oo, True)))",
        "always; where a is 1 it may stay 1, for exp(-oo) is 0",
        _choice,
    ),
    log: IdentityRule(
        "log(a*exp(k)) = log(a) + k; log(Sum(OneHot(i, C)*a, C)) = Sum(OneHot(i, C)*log(a), C)",
        "a is positive; i is the index of an entry along C",
        _logarithm,
    ),
}
