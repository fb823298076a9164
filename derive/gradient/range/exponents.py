"""Exponents by the definitions of values: at most zero or not, and in terms of earlier values."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from sympy import (
    Abs,
    Add,
    Basic,
    Expr,
    Ge,
    Gt,
    Le,
    Lt,
    Mul,
    Piecewise,
    Pow,
    cosh,
    exp,
    expand,
    log,
    nan,
    zoo,
)

from derive.gradient.range.bounds import Bounds, Ranges, bounds
from derive.language.nodes import (
    GoneAlong,
    LogCumSumExp,
    Max,
    OneHot,
    Recurrence,
    RecurrenceBefore,
    Reduction,
    Reindexing,
    Sum,
    Whole,
    renamed,
)
from derive.language.operations import operations_in
from derive.language.segments import own_segment_of, picked_of
from derive.language.symbols import (
    MINUS_INFINITY,
    Axis,
    Tensor,
    axes_of,
    is_number_or_size,
    tensors_in,
)
from derive.proof.zero.positive import is_positive


class Definitions:
    """The definitions of the values of a forward, by name."""

    def __init__(self, known: Mapping[str, Expr]):
        self.known = known
        self.ranges = Ranges(self.definition_of)

    def is_nonpositive(self, u: Expr) -> bool:
        """Whether ``u`` is at most zero by its form: an entry minus the largest of its row."""
        if u.is_nonpositive:
            return True
        u = expand(u)
        for term in Add.make_args(u):
            coefficient, node = term.as_independent(Tensor, as_Add=False)
            definition = self.definition_of(node)
            if isinstance(definition, Add) or _is_multiple(definition):
                return self.is_nonpositive(u + coefficient * (definition - node))
            for bound in self._bounds(node, below=bool(coefficient.is_negative)):
                rest = expand(u - coefficient * (node - bound))
                if operations_in(rest) < operations_in(u) and self.is_nonpositive(rest):
                    return True
        return False

    def bounds(self, e: Expr) -> Bounds:
        """Bounds of ``e``."""
        return bounds(e, self.ranges)

    def _bounds(self, node: Expr, below: bool) -> list[Expr]:
        """Lower bounds of ``node``, or upper ones where not ``below``."""
        if (definition := self.definition_of(node)) is not None:
            return self._bounds(definition, below)
        if isinstance(node, Piecewise):
            values = [value for value, _ in node.args]
            return values if is_extreme(node, largest=below) else []
        if isinstance(node, Max) and below:
            return [node.operand, *self._bounds(node.operand, below)]
        if isinstance(node, Sum) and below:
            return self._bounds_at_label(node)
        if isinstance(node, LogCumSumExp) and below:
            return [node.operand]
        if isinstance(node, RecurrenceBefore) and node.is_step and not below:
            grows = node.initial == MINUS_INFINITY and self.grows(node.operand, node.axis)
            return [node.operand] if grows else []
        if isinstance(node, log) and below:
            return self._exponents_in(node.args[0])
        return [node.args[0], -node.args[0]] if isinstance(node, Abs) and below else []

    def _bounds_at_label(self, node: Sum) -> list[Expr]:
        """Lower bounds of the entry that a label picks: in a row of the largest of each segment, or
        of logarithms of their sums, the segment's own entries.
        """
        hot, row = picked_of(node) or (None, None)
        known = self.in_definitions(row) if hot is not None else None
        if isinstance(known, log):
            return self._exponents_in(node.on(hot * known.args[0]))
        found = self._bounds(row, below=True) if hot is not None else []
        segments = [e.args[0] for e in found if isinstance(e, Piecewise)]
        return [value for value, condition in segments if condition == (hot > 0)]

    def grows(self, e: Expr, axis: Axis) -> bool:
        """Whether ``e`` never decreases along an axis."""
        for term in Add.make_args(expand(e)):
            coefficient, node = term.as_independent(Tensor, as_Add=False)
            if axis not in axes_of(node):
                continue
            so_far = self._so_far(node)
            if so_far is None or so_far.axis != axis:
                return False
            if not (coefficient.is_negative if so_far.reverse else coefficient.is_positive):
                return False
        return True

    def _so_far(self, e: Expr) -> GoneAlong | None:
        """The running sum of positive numbers that ``e`` is, or is the logarithm of; else None."""
        if (definition := self.definition_of(e)) is not None:
            return self._so_far(definition)
        if isinstance(e, log):
            return self._so_far(e.args[0])
        total = isinstance(e, Recurrence) and e.is_sum and e.operand.is_nonnegative
        return e if total or isinstance(e, LogCumSumExp) else None

    def _exponents_in(self, e: Expr) -> list[Expr]:
        """Exponents of the exponentials that a positive sum has as whole terms."""
        if (definition := self.definition_of(e)) is not None:
            return self._exponents_in(definition)
        if (own := own_segment_of(e, self.in_definitions)) is not None:
            return self._exponents_in(own[1])
        if isinstance(e, Sum) or (isinstance(e, Recurrence) and e.is_sum and not e.exclusive):
            return self._exponents_in(e.operand)
        if isinstance(e, Add) and all(map(is_positive, e.args)):
            return [k for term in e.args for k in self._exponents_in(term)]
        return [e.exp] if isinstance(e, exp) else []

    def unfolded(self, e: Expr) -> Expr:
        """``e`` with the values in it that are made of exponentials entry by entry written out."""
        found = {t: self._pointwise(t) for t in tensors_in(e)}
        return e.xreplace({t: inside for t, inside in found.items() if inside.has(exp, cosh)})

    def _pointwise(self, e: Expr) -> Expr:
        """``e`` with its values written out, but for those that have sums in them. What a function
        is taken of stays under its name, a logarithm apart: no factor comes out of a function.
        """
        if isinstance(e, (Add, Mul, Pow, log)):
            inside = {arg: self._pointwise(arg) for arg in e.args}
            return e.func(*(new if new.has(exp, cosh) else arg for arg, new in inside.items()))
        definition = self.definition_of(e)
        if definition is None or definition.has(Reduction, Reindexing, Whole, Piecewise):
            return e
        return self._pointwise(definition)

    def in_definitions(self, e: Expr) -> Expr:
        """``e``, or the node by which it is defined if it is a value."""
        definition = self.definition_of(e)
        return e if definition is None else self.in_definitions(definition)

    def definition_of(self, node: Expr) -> Expr | None:
        """The definition of a value, along the axes along which it is met; None for all else."""
        if not isinstance(node, Tensor) or node.name not in self.known:
            return None
        met = dict(zip(node.home, node.axes, strict=True))
        return renamed(self.known[node.name], met)


def _is_multiple(e: Expr | None) -> bool:
    """Whether ``e`` is a number times something."""
    return isinstance(e, Mul) and not isinstance(e.as_independent(Tensor, as_Add=False)[1], Mul)


def extreme(a: Expr, b: Expr, largest: bool = True) -> Expr:
    """The larger, or the smaller, of two as a choice; |a| is the larger of a and -a.

    Neither may hold a choice itself, which SymPy would move out of the condition.
    """
    if largest and expand(a + b) == 0:
        return Abs(a)
    if all(e == 0 or e.could_extract_minus_sign() for e in (a, b)):
        return -extreme(-a, -b, not largest)
    a, b = sorted((a, b), key=lambda e: (is_number_or_size(e), e.sort_key()))
    return Piecewise((a, a >= b if largest else a <= b), (b, True))


def is_extreme(choice: Piecewise, largest: bool = True) -> bool:
    """Whether a choice is the larger, or the smaller, of two values, whichever of equals it is."""
    values = [value for value, _ in choice.args]
    if len(values) != 2 or any(value.has(Piecewise, nan, zoo) for value in values):
        return False
    compared = (Ge, Gt) if largest else (Le, Lt)
    ways = product(compared, (values, values[::-1]))
    return any(choice == Piecewise((a, holds(a, b)), (b, True)) for holds, (a, b) in ways)


def positive_picked(e: Expr) -> tuple[OneHot, Expr] | None:
    """The one-hot and the row, if ``e`` is what that picks of positive entries."""
    found = picked_of(e)
    return found if found and is_positive(found[1]) else None


def extremes_joined(e: Expr) -> Expr:
    """``e`` with max(a, b) + min(a, b) = a + b used, and like terms under logarithms collected."""
    for node in sorted(e.atoms(Piecewise), key=lambda node: node.sort_key()):
        if is_extreme(node):
            values = [value for value, _ in node.args]
            other = extreme(*values, largest=False)
            joined = expand(e.xreplace({node: Add(*values) - other}))
            if operations_in(joined) < operations_in(e):
                e = joined
    return e


def limits(exponent: Expr, condition: Basic) -> bool:
    """Whether an exponent is at most a number where the condition holds."""
    if not isinstance(condition, (Ge, Gt, Le, Lt)):
        return False
    return expand(exponent - condition.lts + condition.gts).is_number
