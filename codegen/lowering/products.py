"""Products: the order of factors, early divisions, and factors inside of a choice."""

from __future__ import annotations

from fractions import Fraction

from sympy import Add, Expr, Mul, Piecewise, Pow

from codegen.lowering.conditions import lowered_choice
from codegen.lowering.constants import check_held, constant
from codegen.lowering.context import Context
from codegen.lowering.frames import axes_in, broadcast
from codegen.lowering.picks import axes_at
from codegen.program.values import Clamp, Constant, Load, Number, Plus, Power, SizeOf, Times, Value
from derive.language.choices import zero_unless
from derive.language.diagonals import Identity
from derive.language.formulas.text import numerator_and_denominator, ordered_factors
from derive.language.nodes import Sum
from derive.language.symbols import is_constant
from derive.proof.zero.positive import is_positive

TWO = Number(Fraction(2))  # dividing by it is exact


def lowered_product(lowering: Context, e: Mul, frame, picked) -> Value:
    """A product with small factors before large ones, and divided before they meet: full-size
    values are touched once.
    """
    if e.as_coeff_Mul()[0].is_negative:
        if (absorbed := _sign_absorbed(-e)) is not None:
            return lowering.value(absorbed, frame, picked)
        if lowering.rounds_as_autograd and isinstance(-e, Sum):
            return lowering.value((-e).on(-(-e).operand), frame, picked)  # as it was broadcast
        positive = lowering.value(-e, frame, picked)
        return Plus(((positive, True),), dims=positive.dims)
    if (outside := _off_diagonal(e)) is not None:
        return lowering.value(outside, frame, picked)
    if (selected := _selected(lowering, e, frame, picked)) is not None:
        return selected
    numbers = [f for f in e.args if f.is_number]
    if not all(f.is_Rational for f in numbers):  # a root or pi: one number with the rest of them
        rest = Mul(*(f for f in e.args if not f.is_number))
        check_held(Mul(*numbers))
        number = constant(Mul(*numbers))
        value = lowering.value(rest, frame, picked)
        return Times(((number, False), (value, False)), dims=value.dims)
    above, below = numerator_and_denominator(e)
    numerators = [lowering.value(f, frame, picked) for f in ordered_factors(above)]
    denominators = [lowering.value(f, frame, picked) for f in ordered_factors(below)]
    one = Number(Fraction(1))  # a one-hot, read at its own label
    numerators = sorted((v for v in numerators if v != one), key=lambda v: len(axes_in(v)))
    if not lowering.rounds_as_autograd:
        numerators = _together(numerators)
    if lowering.rounds_as_autograd:
        numerators, denominators = _one_number(numerators, denominators)
    factors = _in_order(numerators or [one], denominators)
    return Times(tuple(factors), dims=broadcast(v.dims for v, _ in factors))


def _together(values: list[Value]) -> list[Value]:
    """Group values along the same axes: their product is no larger than one of them."""
    along = [(len(axes_in(v)), axes_in(v)) for v in values]
    return [
        values[i]
        for i in sorted(range(len(values)), key=lambda i: (along[i][0], along.index(along[i])))
    ]


def _in_order(numerators: list[Value], denominators: list[Value]) -> list[tuple[Value, bool]]:
    """The factors from left to right, each with True where it divides: at the first of them that is
    along all of its axes, if the next ones make it larger; else at the end.
    """
    factors: list[tuple[Value, bool]] = []
    met: frozenset = frozenset()
    for i, value in enumerate(numerators):
        factors.append((value, False))
        following = numerators[i + 1 :]
        met |= axes_in(value)
        ready = [
            d
            for d in denominators
            if not following or (axes_in(d) <= met and not axes_in(following[0]) <= met)
        ]
        if following and isinstance(value, Clamp):  # by its bound: the quotient is at most 1
            ready += [d for d in denominators if isinstance(d, Load) and d not in ready]
        if following and isinstance(value, Number):
            ready = []  # a number meets a tensor first: 2 * x / N, not 2 / N * x
        elif following and _may_double(following) and all(axes_in(v) <= met for v in following):
            ready += [d for d in denominators if d == TWO and d not in ready]  # x / 2 * (t + 1)
        factors += [(d, True) for d in ready]
        denominators = [d for d in denominators if d not in ready]
    return factors


def _may_double(factors: list[Value]) -> bool:
    """True if a product with them may overflow although half of it does not."""
    return any(isinstance(value, Plus) for value in factors)


def _off_diagonal(e: Mul) -> Expr | None:
    """The product with 1 - Identity(N, M), as a choice that is 0 on the diagonal."""
    for hot in e.atoms(Identity):
        if 1 - hot in e.args:
            return Piecewise((0, hot.condition), (e / (1 - hot), True), evaluate=False)
    return None


def _selected(lowering: Context, e: Mul, frame, picked) -> Value | None:
    """A product with a choice that has a zero branch, with its factors moved inside: where it is 0
    they are never met, and 0 times an infinity would be NaN.

    Factors larger than the choice stay outside, so that they are touched once, unless they divide
    by data, or the choice is between 0 and 1 and would have to be multiplied with. The branches
    keep their order: for NaN neither the condition nor its opposite holds.
    """
    choices = (f for f in e.args if isinstance(f, Piecewise))
    choice = next((f for f in choices if any(branch == 0 for branch, _ in f.args)), None)
    if choice is None:
        return None
    rest = [f for f in e.args if f is not choice]
    inside = [f for f in rest if axes_at(f, picked) <= axes_at(choice, picked)]
    indicator = zero_unless(choice) is not None and all(f.is_number for f in inside)
    if indicator or any(_may_be_infinite(f) for f in rest if f not in inside):
        inside = rest
    if not inside:
        return None
    pairs = [(0 if branch == 0 else Mul(branch, *inside), test) for branch, test in choice.args]
    value = lowered_choice(lowering, Piecewise(*pairs, evaluate=False), frame, picked)
    outside = Mul(*(f for f in rest if f not in inside))
    if outside == 1:
        return value
    other = lowering.value(outside, frame, picked)
    return Times(((value, False), (other, False)), dims=broadcast([value.dims, other.dims]))


def _one_number(
    numerators: list[Value], denominators: list[Value]
) -> tuple[list[Value], list[Value]]:
    """Numbers and sizes, also those in the denominator, as one number in front: 2/(N - 1) * x.

    A product with a number is differentiated into a product with that number, and so it rounds the
    same both ways.
    """
    above = [v for v in numerators if _is_number(v)]
    below = [v for v in denominators if _is_number(v)]
    rest = [v for v in numerators if not _is_number(v)]
    if not below or not rest:
        return numerators, denominators
    divisor = below[0] if len(below) == 1 else Times(tuple((v, False) for v in below))
    factors = [(v, False) for v in above or [Number(Fraction(1))]] + [(divisor, True)]
    return [Times(tuple(factors)), *rest], [v for v in denominators if not _is_number(v)]


def _is_number(value: Value) -> bool:
    """True if the value is made of numbers and sizes alone."""
    if isinstance(value, (Number, Constant, SizeOf)):
        return True
    if isinstance(value, Plus):
        return all(_is_number(term) for term, _ in value.terms)
    if isinstance(value, Times):
        return all(_is_number(factor) for factor, _ in value.factors)
    return isinstance(value, Power) and _is_number(value.base) and _is_number(value.exponent)


def _may_be_infinite(e: Expr) -> bool:
    """True if ``e`` divides by data that may be 0 as far as its form tells."""
    divisors = [power.base for power in e.atoms(Pow) if power.exp.is_negative]
    return any(not is_constant(base) and not is_positive(base) for base in divisors)


def _sign_absorbed(e: Expr) -> Expr | None:
    """``-e`` with the sign moved into a summed difference: -Sum(a - b) = Sum(b - a)."""
    product = Mul.make_args(e)
    for total in (f for f in product if isinstance(f, Sum)):
        factors = Mul.make_args(total.operand)
        for difference in (f for f in factors if isinstance(f, Add)):
            if any(term.could_extract_minus_sign() for term in difference.args):
                others = [f for f in factors if f is not difference]
                swapped = Add(*(-term for term in difference.args))
                rest = [f for f in product if f is not total]
                return Mul(*rest, Sum.over(Mul(*others, swapped), total.axes))
    return None
