"""From mathematics to a Program's values: axes become dimensions, one-hots become indices, sums
become products.

In: expressions over named axes. Out: `Value`s and `Step`s with every dimension decided. The rules:

- A *frame* is the list of axes that a value is aligned with, at the right, as broadcasting aligns
  shapes.
- A sum over a one-hot picks an entry; a one-hot among the terms of a statement adds at one entry in
  each row; a sum over the positions of a label adds rows where the label says. No one-hot of full
  size is built where one of these does.
- A sum over a product that is larger than its factors is a matrix product.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sympy import Add, Derivative, Dummy, Expr, Mul, Piecewise, Pow, S, Subs
from sympy.core.function import Function as SymbolicFunction
from sympy.core.relational import Relational
from sympy.logic.boolalg import ITE, And, BooleanFalse, BooleanTrue, Not, Or

from codegen.lowering.choices import compared, with_pieces
from codegen.lowering.constants import constant
from codegen.lowering.frames import arranged, axes_in, broadcast, fitted, is_fresh, without_ones
from codegen.lowering.gates import choice_of, extreme, gate
from codegen.lowering.idioms import Pulled, with_idioms
from codegen.lowering.indices import index_of, picked_entry, split_one_hots
from codegen.lowering.nodes import counted, lowered_node
from codegen.lowering.picks import NOTHING_PICKED, Picked, axes_at, met
from codegen.lowering.pieces import bent, larger, sloping, smaller
from codegen.program.arrays import (
    Expand,
    Own,
    Zeros,
)
from codegen.program.parts import is_number
from codegen.program.steps import (
    AddAt,
    Assign,
    Step,
)
from codegen.program.values import (
    Apply,
    Bend,
    Clamp,
    Combine,
    Compare,
    Constant,
    Load,
    Number,
    Plus,
    Power,
    Pullback,
    SizeOf,
    Slope,
    Times,
    Value,
)
from derive.chain.chain import adjoint_of, in_terms_of_output, outer_argument
from derive.formulas.text import numerator_and_denominator, ordered_factors, ordered_terms
from derive.language.choices import Branches, Compared, zero_unless
from derive.language.errors import QuestionError
from derive.language.float_range import IN_LOGARITHMS, unheld_number
from derive.language.nodes import ArrayNode, OneHot, Peak, SubtractedPeak, Sum, along, renamed
from derive.language.symbols import Axis, MinusInfinity, Tensor, is_constant, tensors_in
from derive.notation.definition import Statement
from derive.notation.layout import Dim, Layout
from derive.zero.positive import is_positive


@dataclass(frozen=True)
class Difference:
    """A sum of terms that stay together, which is subtracted where it is ``negative``."""

    e: Expr
    negative: bool


class Lowering:
    """Lowers expressions over tensors whose layouts are known.

    ``layouts`` has the layout of every tensor by name, ``order`` the axes in the order of
    dimensions. ``statements`` are needed for a `Pullback`: the derivative of their outermost
    function. With ``saved`` only the tensors of these names are at hand; without, the rounding is
    that of reverse-mode differentiation, one operation at a time: what is divided by numbers is
    multiplied by one number instead. ``peaks`` says what tensors are the largest of, in a row, each
    in the forms in which it may be met, ``magnitudes`` what tensors are the absolute values of.
    """

    def __init__(
        self,
        layouts: Mapping[str, Layout],
        order: Sequence[Axis],
        statements: Mapping[str, Statement] | None = None,
        saved: frozenset[str] | None = None,
        peaks: Mapping[str, Sequence[Expr]] | None = None,
        magnitudes: Mapping[str, Expr] | None = None,
    ):
        self.layouts, self.order, self.peaks = layouts, list(order), peaks or {}
        self.statements, self.saved, self.magnitudes = statements, saved, magnitudes or {}
        self.rounds_as_autograd = statements is not None and saved is None
        self.scalars: set[str] = set()  # those that were met: Python numbers in the code

    def statement(self, name: str, e: Expr, layout: Layout, like: str) -> list[Step]:
        """The steps that compute ``name = e``; ``like`` names a tensor of the same kind, for
        zeros.
        """
        frame = tuple(dim.axis for dim in layout)
        rest, hots = split_one_hots(e)
        if rest == 0:
            value: Value = Zeros(like, dims=layout)
        else:
            value = self.value(rest, frame)
            if self._is_number(value) and not is_constant(rest):
                value = Expand(value, dims=layout)  # a tensor in the mathematics
            value = fitted(value, layout)
            value = value if is_fresh(value) or not hots else Own(value, dims=layout)
        return [
            Assign(name, value),
            *(self._add_at(name, hot, factor, layout) for hot, factor in hots),
        ]

    def _add_at(self, name: str, hot: OneHot, factor: Expr, layout: Layout) -> AddAt:
        along = [dim.axis for dim in layout].index(hot.axis)
        others = tuple(dim for dim in layout if dim.axis != hot.axis)
        frame = tuple(dim.axis for dim in others)
        label = met(hot.operand)
        index = index_of(self, label, frame)
        index = index if isinstance(index, Number) else fitted(index, others)
        value = fitted(self.value(factor, frame, {hot.axis: label}), others)
        if self._is_number(value):
            value = Expand(value, dims=others)  # what is added has to be a tensor
        return AddAt(name, index, along, value, len(layout))

    def value(self, e: Expr, frame: tuple[Axis, ...], picked: Picked = NOTHING_PICKED) -> Value:
        """``e`` aligned with ``frame``, at the picked entries of some axes."""
        if isinstance(e, Tensor):
            return self.tensor(e, frame, picked)
        if isinstance(e, Axis):
            return SizeOf(e.name)
        if isinstance(e, MinusInfinity):
            return Constant("-oo", -math.inf)
        if e.is_number:
            _check_held(e)
        if e.is_Rational:
            return Number(Fraction(int(e.p), int(e.q)))
        if e.is_number:
            return constant(e)
        if isinstance(e, ArrayNode):
            return lowered_node(self, e, frame, picked)
        if isinstance(e, Add):
            return self._sum(self._differences_first(ordered_terms(e)), frame, picked)
        if isinstance(e, Mul):
            return self._product(e, frame, picked)
        if isinstance(e, Pow):
            base, power = (self.value(arg, frame, picked) for arg in e.args)
            return Power(base, power, dims=broadcast([base.dims, power.dims]))
        if isinstance(e, Piecewise):
            return self._choice(e, frame, picked)
        if isinstance(e, (Branches, Compared)):
            e = e.choice if self.rounds_as_autograd else compared(e)
            return self.value(e, frame, picked)
        if isinstance(e, (larger, smaller)):
            left, right = (self.value(arg, frame, picked) for arg in e.args)
            return extreme(isinstance(e, larger), left, right, self.scalars)
        if isinstance(e, bent):
            value, measure, slope = (self.value(arg, frame, picked) for arg in e.args)
            return Bend(value, measure, slope, dims=broadcast([value.dims, measure.dims]))
        if isinstance(e, sloping):
            value, measure, scale = (self.value(arg, frame, picked) for arg in e.args)
            return Slope(value, measure, scale, dims=broadcast([value.dims, measure.dims]))
        if isinstance(e, Pulled):
            upstream, output = (self.value(arg, frame, picked) for arg in e.args)
            slope = self.value(e.slope(e.args[1]), frame, picked)
            dims = broadcast([upstream.dims, output.dims])
            return Pullback(e.of, upstream, None, output, slope, dims=dims)
        if isinstance(e, SymbolicFunction) and len(e.args) == 1:
            operand = self.value(e.args[0], frame, picked)
            return Apply(type(e).__name__, operand, dims=operand.dims)
        if isinstance(e, (Derivative, Subs)):
            raise QuestionError(
                f"SymPy does not know a derivative that is needed: {e}",
                "write the forward in functions that SymPy differentiates, such as exp, log, sqrt, "
                "tanh, erf, Abs and Piecewise",
            )
        raise QuestionError(
            f"there is no code for {type(e).__name__} in {e}",
            "write it in exp, log, sqrt, tanh, erf, Abs, Piecewise and the like; a function that "
            "torch has gets its line in codegen/targets/torch/vocabulary.py",
        )

    def _sum(self, terms: Sequence[Expr | Difference], frame, picked) -> Value:
        values = [
            (self._sum(ordered_terms(term.e), frame, picked), term.negative)
            if isinstance(term, Difference)
            else self._term(term, frame, picked)
            for term in terms
        ]
        return Plus(tuple(values), dims=broadcast(value.dims for value, _ in values))

    def _differences_first(self, terms: Sequence[Expr]) -> list[Expr | Difference]:
        """The terms of a sum, an entry and the largest of its row together and before the others:
        they nearly cancel, and what is large is rounded.
        """
        rest, differences = list(terms), []
        for term in terms:
            largest = next((t for t in (term, -term) if isinstance(t, Tensor)), None)
            for entry in () if largest is None else self.peaks.get(largest.name, ()):
                negative, entry = largest == term, along(entry, largest)  # largest - entry
                own = [term, *Add.make_args(-entry if negative else entry)]
                if len(terms) > len(own) and all(t in rest for t in own):
                    rest = [t for t in rest if t not in own]
                    differences.append(Difference(entry - largest, negative))
        return sorted(differences, key=lambda d: d.negative) + rest

    def _term(self, term: Expr, frame, picked) -> tuple[Value, bool]:
        negative = term.could_extract_minus_sign() and not isinstance(term, Add)
        term = -term if negative else term
        if negative and isinstance(term, Peak):
            term = SubtractedPeak.over(term.operand, term.axes)
        return self.value(term, frame, picked), negative

    def _product(self, e: Mul, frame, picked) -> Value:
        """Small factors before large ones, and divided before they meet: what is of full size is
        touched once.
        """
        if e.as_coeff_Mul()[0].is_negative:
            if (absorbed := _sign_absorbed(-e)) is not None:
                return self.value(absorbed, frame, picked)
            if self.rounds_as_autograd and isinstance(-e, Sum):
                return self.value((-e).on(-(-e).operand), frame, picked)  # as it was broadcast
            positive = self.value(-e, frame, picked)
            return Plus(((positive, True),), dims=positive.dims)
        if (selected := self._selected(e, frame, picked)) is not None:
            return selected
        numbers = [f for f in e.args if f.is_number]
        if not all(
            f.is_Rational for f in numbers
        ):  # a root or pi: one number with the rest of them
            rest = Mul(*(f for f in e.args if not f.is_number))
            _check_held(Mul(*numbers))
            number = constant(Mul(*numbers))
            value = self.value(rest, frame, picked)
            return Times(((number, False), (value, False)), dims=value.dims)
        above, below = numerator_and_denominator(e)
        numerators = [self.value(f, frame, picked) for f in ordered_factors(above)]
        denominators = [self.value(f, frame, picked) for f in ordered_factors(below)]
        one = Number(Fraction(1))  # what a one-hot is, read at its own label
        numerators = sorted((v for v in numerators if v != one), key=lambda v: len(axes_in(v)))
        if self.rounds_as_autograd:
            numerators, denominators = _one_number(numerators, denominators)
        if not numerators:
            numerators = [one]
        factors: list[tuple[Value, bool]] = []
        for i, value in enumerate(numerators):
            factors.append((value, False))
            following = numerators[i + 1 :]
            room = len(axes_in(following[0])) if following else None
            ready = [
                d
                for d in denominators
                if room is None or (axes_in(d) <= axes_in(value) and len(axes_in(value)) < room)
            ]
            if following and isinstance(value, Clamp):  # by its bound: the quotient is at most 1
                ready += [d for d in denominators if isinstance(d, Load) and d not in ready]
            if following and isinstance(value, Number):
                ready = []  # a number meets a tensor first: 2 * x / N, not 2 / N * x
            factors += [(d, True) for d in ready]
            denominators = [d for d in denominators if d not in ready]
        return Times(tuple(factors), dims=broadcast(v.dims for v, _ in factors))

    def _selected(self, e: Mul, frame, picked) -> Value | None:
        """A product with a choice one of whose branches is 0, its factors inside of that: where it
        is 0 they are never met, and 0 times an infinity is no number.

        What is larger than the choice stays outside, so that it is touched once; not so if it
        divides by data, or if the choice is between 0 and 1 and would have to be multiplied with.
        The branches stay in their order: of what is no number neither the condition holds nor its
        opposite.
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
        value = self._choice(Piecewise(*pairs, evaluate=False), frame, picked)
        outside = Mul(*(f for f in rest if f not in inside))
        if outside == 1:
            return value
        other = self.value(outside, frame, picked)
        return Times(((value, False), (other, False)), dims=broadcast([value.dims, other.dims]))

    def _choice(self, e: Piecewise, frame, picked) -> Value:
        """A choice, from the last branch to the first. Where a number decides, the code has one of
        the branches and not a tensor that is made of them, so each is made what the whole is.
        """
        if not self.rounds_as_autograd and (gated := gate(self, e, frame, picked)) is not None:
            return gated
        *others, (last, _) = e.args
        value = self.value(last, frame, picked)
        for chosen, condition in reversed(others):
            branch = self.value(chosen, frame, picked)
            test = self._condition(condition, frame, picked)
            dims = broadcast([test.dims, branch.dims, value.dims])
            both = self._is_number(branch) and self._is_number(value)
            if self._is_number(test) and not both:
                branch, value = (self._whole(v, dims) for v in (branch, value))
            value = choice_of(test, branch, value, dims, self.scalars)
        return value

    def _whole(self, value: Value, dims: Layout) -> Value:
        """``value`` as a tensor of these dimensions."""
        whole = value.dims == dims and not self._is_number(value)
        return value if whole else Expand(value, dims=dims)

    def _is_number(self, value: Value) -> bool:
        """Whether a value is a Python number when the code runs: no tensor is in it."""
        return is_number(value, self.scalars)

    def _condition(self, c, frame, picked) -> Value:
        if isinstance(c, Relational):
            left, right = (self.value(counted(side), frame, picked) for side in (c.lhs, c.rhs))
            return Compare(left, c.rel_op, right, dims=broadcast([left.dims, right.dims]))
        if isinstance(c, (BooleanTrue, BooleanFalse)):
            return Number(Fraction(int(bool(c))))
        if isinstance(c, ITE):
            test, yes, no = c.args
            return self._condition(Or(And(test, yes), And(Not(test), no)), frame, picked)
        if isinstance(c, (And, Or, Not)):
            operands = tuple(self._condition(arg, frame, picked) for arg in c.args)
            return Combine(
                type(c).__name__.lower(), operands, dims=broadcast(o.dims for o in operands)
            )
        raise QuestionError(
            f"there is no code for the condition {c}", "use <, <=, >, >=, and, or, not"
        )

    def accumulated(
        self, name: str, terms: Sequence[Expr], layout: Layout, like: str
    ) -> list[Step]:
        """The steps that add up ``terms`` from left to right."""
        if not self.rounds_as_autograd:
            terms = [with_pieces(with_idioms(term), self.magnitudes) for term in terms]
        if len(terms) < 3 or any(split_one_hots(term)[1] for term in terms):
            return self.statement(name, Add(*terms), layout, like)
        frame = tuple(dim.axis for dim in layout)
        values = tuple(self._term(term, frame, NOTHING_PICKED) for term in terms)
        value = Plus(values, dims=broadcast(v.dims for v, _ in values))
        return [Assign(name, fitted(value, layout))]

    def pullback(self, t: Tensor, frame, picked) -> Value:
        """The upstream gradient of a statement, times the derivative of its outermost function:
        values along the same axes, whichever of them the code will have.
        """
        statement = self.statements[t.name.removeprefix("d")]
        e, along = statement.expression, dict(zip(t.home, t.axes, strict=True))
        kept = {along.get(dim.axis, dim.axis) for dim in self.layouts[statement.name]}
        inner = tuple(axis for axis in frame if axis in kept | axes_at(t, picked))

        def lowered(part: Expr) -> Value:
            return self.value(renamed(part, along), inner, picked)

        def at_hand(part: Expr) -> Value | None:
            known = self.saved is None or {t.name for t in tensors_in(part)} <= self.saved
            return lowered(part) if known else None

        upstream = lowered(adjoint_of(statement.tensor))
        argument, output = map(at_hand, (outer_argument(statement), statement.tensor))
        if isinstance(e, Pow):
            name = "sqrt" if e.exp == S.Half else "Pow"
            slope = self._slope_of_power(argument, e.exp)
        else:
            place, name = Dummy("argument", real=True), type(e).__name__
            slope = e.func(place).diff(place).xreplace({place: e.args[0]})
            slope = lowered(in_terms_of_output(slope, statement))
        dims = broadcast(part.dims for part in (upstream, argument, output) if part is not None)
        return arranged(Pullback(name, upstream, argument, output, slope, dims=dims), frame)

    def _slope_of_power(self, base: Value, exponent: Expr) -> Value:
        """r * u**(r - 1)"""
        lower = exponent - 1
        power = base if lower == 1 else Power(base, self.value(lower, ()), dims=base.dims)
        if exponent == -1:
            return Plus(((power, True),), dims=power.dims)
        return Times(((self.value(exponent, ()), False), (power, False)), dims=power.dims)

    def tensor(self, t: Tensor, frame, picked) -> Value:
        if t.role == "pullback":
            return self.pullback(t, frame, picked)
        if t.role == "scalar":
            self.scalars.add(t.name)
        along = dict(zip(t.home, t.axes, strict=True))
        stored = tuple(Dim(along.get(dim.axis, dim.axis), dim.one) for dim in self.layouts[t.name])
        value = without_ones(Load(t.name, dims=stored), t.axes)
        for axis in [axis for axis in t.axes if axis in picked]:
            value = picked_entry(self, value, axis, picked[axis])
        return arranged(value, frame)


def _check_held(number: Expr) -> None:
    """A number that came out of the derivation can be computed with. Raises `QuestionError`."""
    problem = unheld_number(number)
    if problem:
        raise QuestionError(f"the forward or its gradient has {problem}", IN_LOGARITHMS)


def _one_number(
    numerators: list[Value], denominators: list[Value]
) -> tuple[list[Value], list[Value]]:
    """Numbers and sizes, also those below the line, as one number in front: 2/(N - 1) * x.

    A product with a number is differentiated into a product with that number, and so it rounds
    the same both ways.
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
    """Whether the value is made of numbers and sizes alone."""
    if isinstance(value, (Number, Constant, SizeOf)):
        return True
    if isinstance(value, Plus):
        return all(_is_number(term) for term, _ in value.terms)
    if isinstance(value, Times):
        return all(_is_number(factor) for factor, _ in value.factors)
    return isinstance(value, Power) and _is_number(value.base) and _is_number(value.exponent)


def _may_be_infinite(e: Expr) -> bool:
    """Whether ``e`` divides by data that may be 0 as far as its form tells."""
    divisors = [power.base for power in e.atoms(Pow) if power.exp.is_negative]
    return any(not is_constant(base) and not is_positive(base) for base in divisors)


def _sign_absorbed(e: Expr) -> Expr | None:
    """``-e`` with the sign inside of a difference that is summed: -Sum(a - b) = Sum(b - a)."""
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
