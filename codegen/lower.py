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

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from sympy import Add, Expr, Integer, Mul, Piecewise, Pow
from sympy.core.function import Function as SymbolicFunction
from sympy.core.relational import Relational
from sympy.logic.boolalg import And, BooleanFalse, BooleanTrue, Not, Or

from codegen.program import (
    AddAt,
    Apply,
    ArgMaxOf,
    Arrange,
    Assign,
    Choose,
    Combine,
    Compare,
    Constant,
    Contract,
    Expand,
    Gathered,
    Load,
    Number,
    OneHotOf,
    Own,
    Pick,
    Plus,
    Power,
    Reduce,
    SizeOf,
    Step,
    Times,
    Value,
    Zeros,
)
from derive.cost import is_contraction
from derive.errors import QuestionError
from derive.layout import Dim, Layout, plain
from derive.notation import ArgMax, Axis, Max, OneHot, Sum, Tensor, axes_of
from derive.text import numerator_and_denominator, ordered_factors, ordered_terms

Picked = Mapping[Axis, Expr]
NOTHING_PICKED: Picked = {}


class Lowering:
    """Lowers expressions over tensors whose layouts are known.

    ``layouts`` has the layout of every tensor by name, ``order`` the axes in the order of
    dimensions.
    """

    def __init__(self, layouts: Mapping[str, Layout], order: Sequence[Axis]):
        self.layouts, self.order = layouts, list(order)

    # -- statements -----------------------------------------------------------

    def statement(self, name: str, e: Expr, layout: Layout, like: str) -> list[Step]:
        """The steps that compute ``name = e``; ``like`` names a tensor of the same kind, for
        zeros.
        """
        frame = tuple(dim.axis for dim in layout)
        rest, hots = split_one_hots(e)
        if any(not self._is_addable(hot, layout) for hot, _ in hots):
            rest, hots = e, []
        if rest == 0:
            value: Value = Zeros(like, dims=layout)
        else:
            value = self.fitted(self.value(rest, frame), layout)
            fresh = not isinstance(value, (Load, Arrange, Expand))
            value = value if fresh or not hots else Own(value, dims=layout)
        return [
            Assign(name, value),
            *(self._add_at(name, hot, factor, layout) for hot, factor in hots),
        ]

    def _is_addable(self, hot: OneHot, layout: Layout) -> bool:
        whole = {dim.axis for dim in layout if not dim.one}
        return axes_of(hot) <= whole and len(whole) == len(layout)

    def _add_at(self, name: str, hot: OneHot, factor: Expr, layout: Layout) -> AddAt:
        along = [dim.axis for dim in layout].index(hot.axis)
        others = tuple(dim for dim in layout if dim.axis != hot.axis)
        frame = tuple(dim.axis for dim in others)
        index = self.fitted(self.index(hot.operand, frame), others)
        value = self.fitted(self.value(factor, frame, {hot.axis: hot.operand}), others)
        return AddAt(name, index, along, value, len(layout))

    def fitted(self, value: Value, layout: Layout) -> Value:
        """``value`` with exactly the dimensions of ``layout``."""
        missing = len(layout) - len(value.dims)
        if missing and all(dim.one for dim in layout[:missing]):
            order = (None,) * missing + tuple(range(len(value.dims)))
            value = Arrange(value, order, dims=layout[:missing] + value.dims)
        if [dim.one for dim in value.dims] != [dim.one for dim in layout]:
            value = Expand(value, dims=layout)
        return value

    # -- expressions ----------------------------------------------------------

    def value(self, e: Expr, frame: tuple[Axis, ...], picked: Picked = NOTHING_PICKED) -> Value:
        """``e`` aligned with ``frame``, at the picked entries of some axes."""
        if isinstance(e, Tensor):
            return self._tensor(e, frame, picked)
        if isinstance(e, Axis):
            return SizeOf(e.name)
        if e.is_Rational:
            return Number(Fraction(int(e.p), int(e.q)))
        if e.is_number:
            return Constant(str(e), float(e))
        if isinstance(e, Sum):
            return self._sum(e, frame, picked)
        if isinstance(e, Max):
            return self._reduced("max", e, frame, picked)
        if isinstance(e, OneHot):
            return self._whole_one_hot(e, frame, picked)
        if isinstance(e, Add):
            terms = [self._term(term, frame, picked) for term in ordered_terms(e)]
            return Plus(tuple(terms), dims=_broadcast(v.dims for v, _ in terms))
        if isinstance(e, Mul):
            return self._product(e, frame, picked)
        if isinstance(e, Pow):
            base, power = (self.value(arg, frame, picked) for arg in e.args)
            return Power(base, power, dims=_broadcast([base.dims, power.dims]))
        if isinstance(e, Piecewise):
            return self._choice(e, frame, picked)
        if isinstance(e, SymbolicFunction) and len(e.args) == 1:
            operand = self.value(e.args[0], frame, picked)
            return Apply(type(e).__name__, operand, dims=operand.dims)
        raise QuestionError(
            f"there is no code for {type(e).__name__} in {e}",
            "add its lowering in codegen/lower.py",
        )

    def _term(self, term: Expr, frame, picked) -> tuple[Value, bool]:
        negative = term.could_extract_minus_sign() and not isinstance(term, Add)
        return self.value(-term if negative else term, frame, picked), negative

    def _product(self, e: Mul, frame, picked) -> Value:
        """Small factors before large ones, and divided before they meet: what is of full size is
        touched once.
        """
        if e.as_coeff_Mul()[0].is_negative:
            positive = self.value(-e, frame, picked)
            return Plus(((positive, True),), dims=positive.dims)
        numbers = [f for f in e.args if f.is_number]
        if not all(
            f.is_Rational for f in numbers
        ):  # a root or pi: one number with the rest of them
            rest = Mul(*(f for f in e.args if not f.is_number))
            number = Constant(str(Mul(*numbers)), float(Mul(*numbers)))
            value = self.value(rest, frame, picked)
            return Times(((number, False), (value, False)), dims=value.dims)
        above, below = numerator_and_denominator(e)
        numerators = [self.value(f, frame, picked) for f in ordered_factors(above)]
        denominators = [self.value(f, frame, picked) for f in ordered_factors(below)]
        numerators = sorted(numerators, key=lambda v: len(_axes(v)))
        if not numerators:
            numerators = [Number(Fraction(1))]
        factors: list[tuple[Value, bool]] = []
        for i, value in enumerate(numerators):
            factors.append((value, False))
            following = numerators[i + 1 :]
            room = len(_axes(following[0])) if following else None
            ready = [
                d
                for d in denominators
                if room is None or (_axes(d) <= _axes(value) and len(_axes(value)) < room)
            ]
            if following and isinstance(value, Number):
                ready = []  # a number meets a tensor first: 2 * x / N, not 2 / N * x
            factors += [(d, True) for d in ready]
            denominators = [d for d in denominators if d not in ready]
        return Times(tuple(factors), dims=_broadcast(v.dims for v, _ in factors))

    def _choice(self, e: Piecewise, frame, picked) -> Value:
        value: Value | None = None
        for chosen, condition in reversed(e.args):
            branch = self.value(chosen, frame, picked)
            if value is None:
                value = branch
                continue
            test = self._condition(condition, frame, picked)
            value = Choose(
                test, branch, value, dims=_broadcast([test.dims, branch.dims, value.dims])
            )
        return value

    def _condition(self, c, frame, picked) -> Value:
        if isinstance(c, Relational):
            left, right = (self.value(side, frame, picked) for side in (c.lhs, c.rhs))
            return Compare(left, c.rel_op, right, dims=_broadcast([left.dims, right.dims]))
        if isinstance(c, (BooleanTrue, BooleanFalse)):
            return Number(Fraction(int(bool(c))))
        if isinstance(c, (And, Or, Not)):
            operands = tuple(self._condition(arg, frame, picked) for arg in c.args)
            return Combine(
                type(c).__name__.lower(), operands, dims=_broadcast(o.dims for o in operands)
            )
        raise QuestionError(
            f"there is no code for the condition {c}", "use <, <=, >, >=, and, or, not"
        )

    # -- tensors and indices --------------------------------------------------

    def _tensor(self, t: Tensor, frame, picked) -> Value:
        met = dict(zip(t.home, t.axes, strict=True))
        stored = tuple(Dim(met.get(dim.axis, dim.axis), dim.one) for dim in self.layouts[t.name])
        value: Value = Load(t.name, dims=stored)
        for axis in [dim.axis for dim in stored if not dim.one and dim.axis in picked]:
            value = self._picked(value, axis, picked[axis])
        return self.arranged(value, frame)

    def arranged(self, value: Value, frame: tuple[Axis, ...]) -> Value:
        """``value`` with its dimensions in the order of ``frame``, those of size 1 that it lacks
        put in.
        """
        dims = value.dims
        if len(dims) <= len(frame) and all(
            d.axis == a for d, a in zip(dims[::-1], frame[::-1], strict=False)
        ):
            return value
        place = {dim.axis: i for i, dim in enumerate(dims)}
        whole = [axis for axis in frame if axis in place and not dims[place[axis]].one]
        start = frame.index(whole[0]) if whole else len(frame)
        slots = frame[start:]
        order = tuple(place.get(axis) for axis in slots)
        arranged = tuple(
            Dim(axis, i is None or dims[i].one) for axis, i in zip(slots, order, strict=True)
        )
        return Arrange(value, order, dims=arranged)

    def index(self, label: Expr, frame: tuple[Axis, ...]) -> Value:
        """The index that a label, or the arg max of an expression, stands for."""
        if isinstance(label, ArgMax):
            (axis,) = label.axes
            inner = self._inner_frame(tuple(a for a in frame if a in axes_of(label)), {axis})
            operand = self.fitted(self.value(label.operand, inner), plain(inner))
            along = inner.index(axis)
            rest = operand.dims[:along] + operand.dims[along + 1 :]
            return self.arranged(ArgMaxOf(operand, along, dims=rest), frame)
        return self._tensor(label, frame, NOTHING_PICKED)

    def _picked(self, value: Value, axis: Axis, label: Expr) -> Value:
        dims = value.dims
        along = [dim.axis for dim in dims].index(axis)
        others = dims[:along] + dims[along + 1 :]
        label_axes = tuple(a for a in self.order if a in axes_of(label))
        whole = {dim.axis for dim in others if not dim.one}
        if set(label_axes) & whole:
            missing = [a for a in label_axes if a not in {d.axis for d in others}]
            if missing:
                raise QuestionError(
                    f"the label {label} shares only some of its axes with what it picks from",
                    "give both the same axes, or none in common",
                )
            index = self.index(label, tuple(dim.axis for dim in others))
            return Pick(value, along, self.fitted(index, others), True, dims=others)
        others = tuple(dim for dim in others if not dim.one)
        if along or len(dims) != len(others) + 1:
            kept = [i for i, dim in enumerate(dims) if dim in others]
            value = Arrange(value, (along, *kept), dims=(dims[along], *others))
        return Pick(value, 0, self.index(label, label_axes), False, dims=plain(label_axes) + others)

    def _whole_one_hot(self, e: OneHot, frame, picked) -> Value:
        if e.axis in picked:
            left, right = (self.index(label, frame) for label in (e.operand, picked[e.axis]))
            test = Compare(left, "==", right, dims=_broadcast([left.dims, right.dims]))
            return Choose(test, Number(Fraction(1)), Number(Fraction(0)), dims=test.dims)
        label_axes = tuple(a for a in self.order if a in axes_of(e.operand))
        index = self.index(e.operand, label_axes)
        return self.arranged(OneHotOf(index, e.axis.name, dims=(*index.dims, Dim(e.axis))), frame)

    # -- sums -----------------------------------------------------------------

    def _sum(self, e: Sum, frame, picked) -> Value:
        picked = {axis: label for axis, label in picked.items() if axis not in e.axes}
        factors = Mul.make_args(e.operand)
        hots = [f for f in factors if isinstance(f, OneHot)]
        for hot in hots:
            rest = Mul(*(f for f in factors if f is not hot))
            others = [axis for axis in e.axes if axis != hot.axis]
            if hot.axis in e.axes and self._can_pick(rest, hot):
                inside = {**picked, hot.axis: hot.operand}
                return self._sum_at(rest, others, frame, inside)
            label_axes = axes_of(hot.operand)
            if hot.axis not in e.axes and label_axes <= set(e.axes) and hot.axis not in picked:
                return self._gathered(
                    hot, rest, [a for a in others if a not in label_axes], frame, picked
                )
        if is_contraction(e) and not hots:
            return self._contraction(e, frame, picked)
        return self._reduced("sum", e, frame, picked)

    def _can_pick(self, rest: Expr, hot: OneHot) -> bool:
        """Whether every tensor along the axis of the one-hot can be read at its label."""
        label_axes = axes_of(hot.operand)
        for t in rest.atoms(Tensor):
            whole = {
                t.axes[t.home.index(d.axis)]
                for d in self.layouts.get(t.name, ())
                if not d.one and d.axis in t.home
            }
            if hot.axis in whole and label_axes & whole and not label_axes <= whole:
                return False
        return True

    def _sum_at(self, e: Expr, axes: list[Axis], frame, picked) -> Value:
        """The sum of ``e``, read at the picked entries, over what is left of the axes."""
        if not axes:
            return self.value(e, frame, picked)
        carried = _axes_at(e, picked)
        counted = [axis for axis in axes if axis not in carried]
        axes = [axis for axis in axes if axis in carried]
        value = (
            self._reduced_value("sum", e, axes, frame, picked)
            if axes
            else self.value(e, frame, picked)
        )
        if not counted:
            return value
        sizes = tuple((SizeOf(axis.name), False) for axis in counted)
        return Times((*sizes, (value, False)), dims=value.dims)

    def _reduced(self, kind: str, e, frame, picked) -> Value:
        inside = {axis: label for axis, label in picked.items() if axis not in e.axes}
        return self._reduced_value(kind, e.operand, list(e.axes), frame, inside)

    def _reduced_value(self, kind: str, operand: Expr, axes: list[Axis], frame, picked) -> Value:
        inner = self._inner_frame(frame, set(axes) | _axes_at(operand, picked))
        value = self.value(operand, inner, picked)
        along = tuple(i for i, dim in enumerate(value.dims) if dim.axis in axes)
        keep = any(axis in frame for axis in axes)
        if keep:
            dims = tuple(Dim(d.axis, d.one or d.axis in axes) for d in value.dims)
        else:
            dims = tuple(d for d in value.dims if d.axis not in axes)
        return self.arranged(Reduce(kind, value, along, keep, dims=dims), frame)

    def _inner_frame(self, frame: tuple[Axis, ...], more: Iterable[Axis]) -> tuple[Axis, ...]:
        missing = [axis for axis in self.order if axis in set(more) and axis not in frame]
        together = sorted([*frame, *missing], key=self.order.index)
        in_order = [axis for axis in together if axis in frame] == list(frame)
        return tuple(together) if in_order else (*missing, *frame)

    def _gathered(self, hot: OneHot, rest: Expr, extra: list[Axis], frame, picked) -> Value:
        """Sum over the label's positions: rows are added where the label says."""
        inside = {**picked, hot.axis: hot.operand}
        label_axes = tuple(a for a in self.order if a in axes_of(hot.operand))
        others = tuple(
            a for a in self.order if a in _axes_at(rest, inside) - set(label_axes) - set(extra)
        )
        source_frame = label_axes + others
        source = self._sum_at(rest, extra, source_frame, inside)
        source = self.fitted(source, plain(source_frame))
        index = self.index(hot.operand, label_axes)
        dims = (Dim(hot.axis), *plain(others))
        return self.arranged(Gathered(index, source, dims=dims), frame)

    def _contraction(self, e: Sum, frame, picked) -> Value:
        constants = [f for f in Mul.make_args(e.operand) if not _axes_at(f, picked)]
        factors = [f for f in Mul.make_args(e.operand) if _axes_at(f, picked)]
        groups = _merged(factors, picked)
        if len(groups) < 2:
            return self._reduced("sum", e, frame, picked)
        operands = [self._operand(group, picked) for group in groups]
        pending = set(e.axes)
        while len(operands) > 1:
            left, right, *others = operands
            elsewhere = set().union(*map(_axes, others)) if others else set()
            summed = {
                axis
                for axis in pending
                if axis in _axes(left) | _axes(right) and axis not in elsewhere
            }
            pending -= summed
            result = [
                a
                for a in self._inner_frame(frame, _axes(left) | _axes(right))
                if a in _axes(left) | _axes(right)
            ]
            dims = plain(axis for axis in result if axis not in summed)
            names = tuple(sorted(axis.name for axis in summed))
            operands = [Contract(left, right, names, dims=dims), *others]
        value = self.arranged(operands[0], frame)
        if not constants:
            return value
        factor = self.value(Mul(*constants), frame, picked)
        return Times(((factor, False), (value, False)), dims=value.dims)

    def _operand(self, e: Expr, picked) -> Value:
        """An operand of a matrix product: with its axes and nothing else; a tensor as it is
        stored.
        """
        axes = _axes_at(e, picked)
        if isinstance(e, Tensor) and not axes_of(e) & set(picked):
            value = self._tensor(e, tuple(e.axes), picked)
            stored = [dim.axis for dim in value.dims]
            return value if set(stored) == axes else self.arranged(value, tuple(e.axes))
        frame = tuple(axis for axis in self.order if axis in axes)
        return self.fitted(self.value(e, frame, picked), plain(frame))


def split_one_hots(e: Expr) -> tuple[Expr, list[tuple[OneHot, Expr]]]:
    """``e`` as a rest and one-hots with their factors: e = rest + factor*OneHot + ...

    A one-hot that does not stand linearly among the terms stays in the rest.
    """
    rest, hots = [], []
    for term in Add.make_args(e):
        factors = list(Mul.make_args(term))
        hot = next((f for f in factors if isinstance(f, OneHot)), None)
        bracket = next(
            (f for f in factors if isinstance(f, Add) and any(map(_has_one_hot, f.args))), None
        )
        if hot is not None:
            factors.remove(hot)
            hots.append((hot, Mul(*factors)))
        elif bracket is not None:
            factors.remove(bracket)
            inner, found = split_one_hots(bracket)
            rest.append(Mul(*factors, inner))
            hots += [(hot, Mul(*factors, factor)) for hot, factor in found]
        else:
            rest.append(term)
    merged: dict[OneHot, Expr] = {}
    for hot, factor in hots:
        merged[hot] = merged.get(hot, Integer(0)) + factor
    return Add(*rest), list(merged.items())


def _has_one_hot(term: Expr) -> bool:
    return any(
        isinstance(f, OneHot) or (isinstance(f, Add) and any(map(_has_one_hot, f.args)))
        for f in Mul.make_args(term)
    )


def _merged(factors: list[Expr], picked) -> list[Expr]:
    """Factors, those with fewer axes multiplied into one that has all of theirs."""
    groups: list[Expr] = []
    for factor in sorted(factors, key=lambda f: (-len(_axes_at(f, picked)), f.sort_key())):
        home = next(
            (i for i, g in enumerate(groups) if _axes_at(factor, picked) <= _axes_at(g, picked)),
            None,
        )
        if home is None:
            groups.append(factor)
        else:
            groups[home] = groups[home] * factor
    return groups


def _axes(value: Value) -> set[Axis]:
    return {dim.axis for dim in value.dims if not dim.one}


def _axes_at(e: Expr, picked: Picked) -> set[Axis]:
    """The axes of ``e`` once some of them are read at an index."""
    axes = set(axes_of(e))
    for axis in [axis for axis in picked if axis in axes]:
        axes = (axes - {axis}) | set(axes_of(picked[axis]))
    return axes


def _broadcast(layouts: Iterable[Layout]) -> Layout:
    """The dimensions of values that were combined, aligned at the right."""
    result: list[Dim] = []
    for layout in layouts:
        for i, dim in enumerate(reversed(layout)):
            if i == len(result):
                result.append(dim)
            elif result[i].one:
                result[i] = dim
    return tuple(reversed(result))


def sizes_used(steps: Iterable[Step]) -> set[str]:
    """The axes whose sizes the steps speak of, by name."""
    return {name for step in steps for name in _sizes_in(step)}


def _sizes_in(node) -> set[str]:
    found: set[str] = set()
    if isinstance(node, SizeOf):
        found.add(node.name)
    if isinstance(node, OneHotOf):
        found.add(node.size)
    if isinstance(node, (Expand, Zeros, Gathered)):
        found |= {dim.axis.name for dim in node.dims if not dim.one}
    for value in vars(node).values() if hasattr(node, "__dataclass_fields__") else ():
        items = value if isinstance(value, tuple) else (value,)
        for item in items:
            for inner in item if isinstance(item, tuple) else (item,):
                if isinstance(inner, Value):
                    found |= _sizes_in(inner)
    return found
