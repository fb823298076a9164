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
from collections.abc import Callable, Sequence
from fractions import Fraction

from sympy import Add, Derivative, Expr, Mul, Piecewise, Pow, Subs, exp, floor, polygamma
from sympy.core.function import Function as SymbolicFunction

from codegen.lowering.choices import compared, with_pieces
from codegen.lowering.conditions import lowered_choice
from codegen.lowering.constants import check_held, constant
from codegen.lowering.context import Context
from codegen.lowering.frames import (
    Frame,
    arranged,
    broadcast,
    fitted,
    is_fresh,
    is_kept,
    without_ones,
)
from codegen.lowering.gates import ZERO, extreme
from codegen.lowering.idioms import Pulled, with_idioms
from codegen.lowering.indices import index_of, picked_entry, split_one_hots
from codegen.lowering.joined import joined
from codegen.lowering.nodes import lowered_node
from codegen.lowering.picks import NOTHING_PICKED, Picked, met
from codegen.lowering.pieces import bent, larger, sloping, smaller
from codegen.lowering.products import lowered_product
from codegen.lowering.pullbacks import lowered_pullback
from codegen.lowering.terms import differences_first, lowered_term, lowered_terms
from codegen.program.arrays import Detached, Expand, Own, Zeros
from codegen.program.parts import is_number, is_wide
from codegen.program.steps import AddAt, Assign, Step
from codegen.program.values import (
    Apply,
    Bend,
    Choose,
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
    WholeQuotient,
)
from derive.language.choices import Branches, Compared
from derive.language.detached import Detach
from derive.language.errors import PAGE, QuestionError
from derive.language.functions import KNOWN
from derive.language.nodes import ArrayNode, OneHot
from derive.language.notation.layout import Dim, Layout
from derive.language.symbols import Axis, MinusInfinity, Tensor, is_constant, is_number_or_size


class Lowering(Context):
    """Lowers expressions over tensors whose layouts are known."""

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
            if is_number(value, self.scalars) and not is_constant(rest):
                value = Expand(value, dims=layout)  # a tensor in the mathematics
            value = fitted(value, layout)
            changeable = is_fresh(value) and (self.saved is not None or not is_kept(value))
            value = value if changeable or not hots else Own(value, dims=layout)
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
        if is_number(value, self.scalars):
            value = Expand(value, dims=others)  # the addend has to be a tensor
        return AddAt(name, index, along, value, len(layout))

    def value(self, e: Expr, frame: tuple[Axis, ...], picked: Picked = NOTHING_PICKED) -> Value:
        """``e`` aligned with ``frame``, at the picked entries of some axes."""
        if isinstance(e, Tensor):
            return self.tensor(e, frame, picked)
        if isinstance(e, (Axis, MinusInfinity)) or e.is_number:
            return _leaf(e)
        for kinds, lowered in operations.items():
            if isinstance(e, kinds):
                return lowered(self, e, frame, picked)
        if isinstance(e, SymbolicFunction):
            return _applied(self, e, frame, picked)
        raise _refusal(e)

    def accumulated(
        self, name: str, terms: Sequence[Expr], layout: Layout, like: str
    ) -> list[Step]:
        """The steps that add up ``terms`` from left to right."""
        if not self.rounds_as_autograd:
            terms = [with_pieces(with_idioms(term), self.magnitudes) for term in terms]
        if len(terms) < 3 or any(split_one_hots(term)[1] for term in terms):
            return self.statement(name, Add(*terms), layout, like)
        frame = tuple(dim.axis for dim in layout)
        values = tuple(lowered_term(self, term, frame, NOTHING_PICKED) for term in terms)
        value = Plus(values, dims=broadcast(v.dims for v, _ in values))
        return [Assign(name, fitted(value, layout))]

    def tensor(self, t: Tensor, frame, picked) -> Value:
        if t.role == "pullback":
            return lowered_pullback(self, t, frame, picked)
        if t.role == "scalar":
            self.scalars.add(t.name)
        along = dict(zip(t.home, t.axes, strict=True))
        stored = tuple(Dim(along.get(dim.axis, dim.axis), dim.one) for dim in self.layouts[t.name])
        value = without_ones(Load(t.name, dims=stored), t.axes)
        for axis in [axis for axis in t.axes if axis in picked]:
            value = picked_entry(self, value, axis, picked[axis])
        return arranged(value, frame)


def _leaf(e: Expr) -> Value:
    """A size or a number."""
    if isinstance(e, Axis):
        return SizeOf(e.name)
    if isinstance(e, MinusInfinity):
        return Constant("-oo", -math.inf)
    check_held(e)
    return Number(Fraction(int(e.p), int(e.q))) if e.is_Rational else constant(e)


def _sum(lowering: Context, e: Add, frame, picked) -> Value:
    together, rest = joined(lowering, e.args, frame, picked)
    if together is not None and rest:
        value = lowering.value(Add(*rest), frame, picked)
        dims = broadcast([value.dims, together.dims])
        return Plus(((value, False), (together, False)), dims=dims)
    if together is not None:
        return together
    return lowered_terms(lowering, differences_first(lowering, e), frame, picked)


def _power(lowering: Context, e: Pow, frame, picked) -> Value:
    base, power = (lowering.value(arg, frame, picked) for arg in e.args)
    return Power(base, power, dims=broadcast([base.dims, power.dims]))


def _compared(lowering: Context, e: Branches | Compared, frame, picked) -> Value:
    e = e.choice if lowering.rounds_as_autograd else compared(e)
    return lowering.value(e, frame, picked)


def _applied(lowering: Context, e: SymbolicFunction, frame, picked) -> Value:
    name, args = type(e).__name__, e.args
    orders = KNOWN[name].orders if name in KNOWN else 0
    if isinstance(e, polygamma) and e.args[0] == 0:
        name, args = "digamma", args[1:]
    elif orders:
        args = (*args[orders:], *args[:orders])
    operand, *others = (lowering.value(arg, frame, picked) for arg in args)
    return Apply(name, operand, (*others,), dims=broadcast(v.dims for v in (operand, *others)))


def _extreme(lowering: Context, e: larger | smaller, frame, picked) -> Value:
    left, right = (lowering.value(arg, frame, picked) for arg in e.args)
    return extreme(isinstance(e, larger), left, right, lowering.scalars)


def _bend(lowering: Context, e: bent, frame, picked) -> Value:
    value, measure, slope = (lowering.value(arg, frame, picked) for arg in e.args)
    dims = broadcast([value.dims, measure.dims])
    if is_number(value, lowering.scalars) or is_wide(slope):
        bent_down = Times(((value, False), (slope, False)), dims=value.dims)
        return Choose(Compare(measure, ">", ZERO, dims=measure.dims), value, bent_down, dims=dims)
    return Bend(value, measure, slope, dims=dims)


def _slope(lowering: Context, e: sloping, frame, picked) -> Value:
    value, measure, scale = (lowering.value(arg, frame, picked) for arg in e.args)
    dims = broadcast([value.dims, measure.dims])
    if is_number(value, lowering.scalars) or is_wide(scale):
        below = lowering.value(e.args[0] * e.args[2] * exp(e.args[1]), frame, picked)
        return Choose(Compare(measure, "<=", ZERO, dims=measure.dims), below, value, dims=dims)
    return Slope(value, measure, scale, dims=dims)


def _rounded_down(lowering: Context, e: floor, frame, picked) -> Value:
    """The integer quotient of two sizes."""
    if not is_number_or_size(e):
        operand = lowering.value(e.args[0], frame, picked)
        return Apply("floor", operand, dims=operand.dims)
    above, below = e.args[0].together().as_numer_denom()
    return WholeQuotient(lowering.value(above, ()), lowering.value(below, ()))


def _detached(lowering: Context, e: Detach, frame, picked) -> Value:
    value = lowering.value(e.args[0], frame, picked)
    return Detached(value, dims=value.dims)


def _pulled(lowering: Context, e: Pulled, frame, picked) -> Value:
    upstream, output = (lowering.value(arg, frame, picked) for arg in e.args)
    slope = lowering.value(e.slope(e.args[1]), frame, picked)
    dims = broadcast([upstream.dims, output.dims])
    return Pullback(e.of, upstream, None, output, slope, dims=dims)


# The rule of each operation: its value, aligned with the frame, at the picked entries of some axes.
operations: dict[type | tuple[type, ...], Callable[[Context, Expr, Frame, Picked], Value]] = {
    ArrayNode: lowered_node,
    Add: _sum,
    Mul: lowered_product,
    Pow: _power,
    Piecewise: lowered_choice,
    (Branches, Compared): _compared,
    (larger, smaller): _extreme,
    bent: _bend,
    sloping: _slope,
    Pulled: _pulled,
    floor: _rounded_down,
    Detach: _detached,
}


def _refusal(e: Expr) -> QuestionError:
    if isinstance(e, (Derivative, Subs)):
        return QuestionError(
            f"SymPy cannot differentiate this: {e}",
            "write the forward in functions that SymPy differentiates, such as exp, log, sqrt, "
            "tanh, erf, Abs and Piecewise",
        )
    return QuestionError(
        f"{type(e).__name__} in {e} is not supported",
        "use exp, log, sqrt, tanh, erf, Abs, Piecewise and the like; to add a function of torch, "
        f"extend derive/language/functions.py and codegen/targets/functions.py ({PAGE})",
    )
