"""Checks of one line of mathematics, and its exact form.

Every check raises `NotationError` with the problem and the remedy; its line is that of the caller.
"""

from __future__ import annotations

from collections.abc import Mapping

from sympy import (
    Add,
    Derivative,
    Expr,
    Float,
    Function,
    I,
    Integral,
    Mul,
    Piecewise,
    Pow,
    Product,
    S,
    Subs,
    exp,
    log,
    nan,
    oo,
    zoo,
)
from sympy import Sum as SymbolicSum
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational
from sympy.functions.elementary.piecewise import ExprCondPair

from derive.language.choices import Branches, partial
from derive.language.detached import Detach
from derive.language.errors import PAGE, NotationError, caller_place, shortened_text
from derive.language.extremes import SYMPYS, extreme_of
from derive.language.functions import check_known, in_known_functions
from derive.language.nodes import ArrayNode, Broadcast, OneHot, Sum
from derive.language.reading_at import At
from derive.language.source.typed_numbers import as_typed
from derive.language.symbols import MINUS_INFINITY, Axis, Tensor, axes_of, is_constant, tensors_in

UNDEFINED = (nan, zoo, oo, -oo, I)
IMAGINARY = (
    "numbers are real: leave out what is imaginary, as a root or a logarithm of a negative number "
    f"is; the cube root of -8 is written -8**Rational(1, 3) ({PAGE})"
)
INFINITE = (
    "nothing is divided by 0, and no number is infinite; -oo may be a branch of a Piecewise, or a "
    "side of a comparison"
)
OF_SYMPY = f"write it with Sum and functions ({PAGE})"
FOREIGN = (SymbolicSum, Product, Integral, Derivative, AppliedUndef)


def is_stated(value: object) -> bool:
    """Whether a class body gives the name to a statement, not to a number or a size."""
    known = isinstance(value, Expr) and is_constant(value) and not value.has(*UNDEFINED)
    return isinstance(value, Expr) and not isinstance(value, Axis) and not known


def check_statement(e: Expr) -> None:
    """Refuse what has no value, and the ways in which a label gets lost unnoticed."""
    if e.has(*UNDEFINED) or misplaced_infinity(e) or _imaginary(e):
        place = caller_place()
        written = shortened_text(place.formula) if place else ""
        raise NotationError(
            f"{written or e} is not a finite real number everywhere",
            IMAGINARY if e.has(I) or _imaginary(e) else INFINITE,
        )
    foreign = sorted(e.atoms(*FOREIGN), key=str)
    if foreign:
        kind = type(foreign[0]).__name__
        raise NotationError(
            f"{kind} is SymPy's here, and not part of the notation",
            f"import {kind} from gradform" if kind == "Sum" else OF_SYMPY,
        )
    check_known(e)
    _check_derivatives(e)
    for choice in e.atoms(Piecewise):
        if choice.args[-1].cond is not S.true:
            raise NotationError(
                f"{choice} has no value where none of its conditions holds",
                "end it with (..., True)",
            )
    _check_labels(e)


def check_axes_meant(e: Expr, twins: Mapping[Axis, Axis]) -> None:
    """Refuse the ways in which an axis gets lost unnoticed."""
    in_indices = {s for node in e.atoms(At) for s in node.index.atoms(Add)}
    for sum_of in e.atoms(Add) - in_indices:
        _check_sides(sum_of, twins)
    for total in e.atoms(Sum):
        _check_factors(total)


def _check_labels(e: Expr) -> None:
    picked = {t for hot in e.atoms(OneHot) for t in hot.operand.atoms(Tensor)}
    for label in (t for t in tensors_in(e) if t.role == "label"):
        if label not in picked or _outside_one_hot(e, label):
            raise NotationError(
                f"{label} is a label: it indexes an axis and is not a number to calculate with",
                f"meet it as OneHot({label}, C), with the axis that it indexes",
            )
    for hot in e.atoms(OneHot):
        if hot.axis in axes_of(hot.operand):
            raise NotationError(
                f"{hot}: {hot.operand} lies along {hot.axis}, so it cannot index it",
                "name the axis that the label is an index of",
            )


def _imaginary(e: Expr) -> bool:
    """Whether a part of ``e`` is no real number, as SymPy's (-8)**(1/3) is not: a negative number
    under a root or a logarithm.
    """
    powers = e.atoms(Pow)
    if any(p.base.is_number and p.exp.is_number and p.is_real is False for p in powers):
        return True
    bases = {p.base for p in powers if p.exp.is_integer is not True}
    return any(b.is_negative for b in bases | {f.args[0] for f in e.atoms(log)})


def _check_derivatives(e: Expr) -> None:
    """Refuse a function of tensors that SymPy has no derivative of."""
    for call in e.atoms(Function):
        if isinstance(call, (ArrayNode, Piecewise, Branches)):
            continue
        for k, operand in enumerate(call.args):
            if tensors_in(operand) and partial(call, k).has(Derivative, Subs):
                raise NotationError(
                    f"SymPy has no derivative of {call} by {operand}",
                    f"{type(call).__name__} takes a number there, not a tensor ({PAGE})",
                )


def misplaced_infinity(e) -> bool:
    """Whether -oo stands anywhere but alone in a branch or on one side of a comparison."""
    if e == MINUS_INFINITY:
        return True
    places = isinstance(e, (ExprCondPair, Relational, At))
    return any(misplaced_infinity(a) for a in e.args if not (places and a == MINUS_INFINITY))


def may_be_infinite(e: Expr) -> bool:
    """Whether ``e`` may be -oo: by a branch, or by an operand; an exponential of that is a number
    again.
    """
    if e == MINUS_INFINITY or (isinstance(e, Tensor) and e.is_real is None):
        return True
    if isinstance(e, Piecewise):
        return any(may_be_infinite(branch.expr) for branch in e.args)
    return not isinstance(e, exp) and any(map(may_be_infinite, e.args))


def known_signs(e: Expr) -> dict[str, bool]:
    """Assumptions for SymPy on the sign of a statement, so that later powers and logarithms may
    rely on it.
    """
    if may_be_infinite(e):
        return {"extended_real": True}
    if e.is_positive:
        return {"positive": True}
    return {"nonnegative": True} if e.is_nonnegative else {}


def tensors_outside_conditions(e) -> set[Tensor]:
    """Tensors that ``e`` has a derivative by: not those only in its conditions, or detached."""
    if isinstance(e, Tensor):
        return {e}
    if isinstance(e, Detach):
        return set()
    parts = [branch.expr for branch in e.args] if isinstance(e, Piecewise) else e.args
    return set().union(*map(tensors_outside_conditions, parts))


def _outside_one_hot(e, label) -> bool:
    if isinstance(e, OneHot):
        return False
    return e == label or any(_outside_one_hot(arg, label) for arg in e.args)


def _axis_names(axes) -> str:
    return ", ".join(sorted(axis.name for axis in axes)) or "no axis"


def _check_sides(sum_of: Add, twins) -> None:
    """Refuse a sum whose sides all lack axes: one must have them all, or it is an outer sum."""

    def original(axes):
        return frozenset(twins.get(axis, axis) for axis in axes)

    sides = [(side, original(axes_of(side))) for side in sum_of.args]
    everything = frozenset().union(*(axes for _, axes in sides))
    if any(axes == everything for _, axes in sides):
        return
    widest = max(sides, key=lambda side: (len(side[1]), str(side[0])))
    other = next(side for side in sides if not side[1] <= widest[1])
    missing = _axis_names(other[1] - widest[1])
    raise NotationError(
        f"{sum_of}: axis {missing} is on one side and missing on the other: "
        f"{other[0]} has {_axis_names(other[1])}, {widest[0]} has {_axis_names(widest[1])}",
        f"give both the same axes; if every pair is meant, write Broadcast({widest[0]}, {missing})",
    )


def _check_factors(total: Sum) -> None:
    """Refuse a factor with an axis of its own in place of the summed axis."""
    for term in Add.make_args(total.operand):
        _check_product(total, Mul.make_args(term))


def _check_product(total: Sum, factors) -> None:
    summed = set(total.axes)
    for factor in factors:
        others = frozenset().union(*(axes_of(f) for f in factors if f is not factor))
        own = axes_of(factor) - others
        if own and not axes_of(factor) & summed and others & summed:
            raise NotationError(
                f"{total}: axis {_axis_names(total.axes)} is on one side and missing on the other: "
                f"{factor} has only {_axis_names(axes_of(factor))}",
                f"give {factor} the axis {_axis_names(total.axes)}, or take it out of the Sum",
            )


def without_marks(e):
    """The expression without `Broadcast`, since axes broadcast by name anyway."""
    if isinstance(e, Broadcast):
        return without_marks(e.operand)
    if isinstance(e, ArrayNode):
        return e.through(without_marks)
    return e.func(*map(without_marks, e.args)) if e.has(Broadcast) else e


def in_notation(e: Expr) -> Expr:
    """Make decimals exact, and SymPy's larger or smaller of two the choice that it is."""
    e = e.replace(lambda n: isinstance(n, Float), as_typed)
    e = in_known_functions(e.xreplace({S.NegativeInfinity: MINUS_INFINITY}))
    return e.replace(lambda n: isinstance(n, (*SYMPYS,)), _choice)


def _choice(extreme) -> Expr:
    """The ordered extreme for SymPy's `Max` or `Min` of a tensor and numbers, made by a function
    called from a class body; with several tensors the order is unknown: raises `NotationError`.
    """
    ours = SYMPYS[type(extreme)]
    lie = [arg for arg in extreme.args if not is_constant(arg)]
    if len(lie) > 1 or any(isinstance(arg, Axis) for arg in extreme.args):
        raise NotationError(
            f"{extreme}: this {ours.__name__} is SymPy's, which does not know which of equals is "
            "the first, nor an axis from a size",
            f"import {ours.__name__} from gradform, where it is called",
        )
    return extreme_of(extreme.args, ours.LARGEST)
