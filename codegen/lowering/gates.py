"""Maxima, and gates that are 0 where a condition does not hold: decided from the values that are
compared.

A gate is a comparison with a number, which every target has in one pass. The equations, for finite
u and v and infinite ones, where sign(NaN) is 0 and a NaN that decides passes the gate:

| kept where | gate | where u or v is NaN |
|---|---|---|
| u > t, t a number | u above t | kept |
| t > u, t a number | t - u above 0 | kept |
| u > v | sign(u - v) above 0 | 0; so only where the choice is 0 there as well |
| u >= v | sign(u - v) above -1 | kept |
| u != t, t a number | abs(u - t) above 0 | kept |

So a NaN never turns into a spurious 0. The difference of two numbers is 0 only if they are equal,
as long as denormals are not flushed to 0.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction

from sympy import Add, And, Eq, Expr, Ne, Not, Or, Piecewise
from sympy.core.relational import Relational

from codegen.lowering.choices import compared
from codegen.lowering.frames import axes_in, broadcast
from codegen.lowering.picks import Picked
from codegen.program.parts import is_number, is_wide
from codegen.program.values import Apply, Choose, Clamp, Compare, Extreme, Gate, Number, Plus, Value
from derive.gradient.closing.conditions import of_magnitude
from derive.language.nodes import OneHot, Position
from derive.language.notation.layout import Layout
from derive.language.symbols import Axis, is_constant, tensors_in

OPPOSITE = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
INDICES = {"label", "kept"}
ZERO, MINUS_ONE = Number(Fraction(0)), Number(Fraction(-1))


def choice_of(test: Value, yes: Value, no: Value, dims: Layout, numbers: Collection[str]) -> Value:
    """``yes`` where the test holds, else ``no``; the larger or smaller of two if equivalent."""
    if isinstance(test, Compare) and test.relation in OPPOSITE:
        whole = is_number(yes, numbers) and is_number(no, numbers)
        larger = test.relation in (">", ">=")
        if (yes, no) == (test.left, test.right) and not whole:
            return extreme(larger, yes, no, numbers)
        if (yes, no) == (test.right, test.left) and not whole:
            return extreme(not larger, no, yes, numbers)
    return Choose(test, yes, no, dims=dims)


def extreme(largest: bool, left: Value, right: Value, numbers: Collection[str]) -> Value:
    """The larger or smaller of two: a number becomes the bound of a clamp, and joins one that is
    there.
    """
    dims = broadcast([left.dims, right.dims])
    if is_number(left, numbers) and is_number(right, numbers):
        return Choose(Compare(left, ">=" if largest else "<=", right), left, right)
    if is_number(left, numbers):
        left, right = right, left
    if not is_number(right, numbers):
        return Extreme(largest, left, right, dims=dims)
    if largest:
        return Clamp(left, right, None, dims=dims)
    if isinstance(left, Clamp) and left.high is None:
        return Clamp(left.operand, left.low, right, dims=dims)
    return Clamp(left, None, right, dims=dims)


def gate(lowering, e: Piecewise, frame: tuple[Axis, ...], picked: Picked) -> Value | None:
    """A choice between 0 and something, as gates; None for others, and for a small one."""
    found = _kept(e)
    if found is None:
        return None
    kept, tests, passes = found
    if kept == 1 or not all(map(_decides, tests)):
        return None
    value = lowering.value(kept, frame, picked)
    if is_number(value, lowering.scalars):
        return None
    for test in tests:
        u, v = (lowering.value(compared(e), frame, picked) for e in _sides(test))
        measured = _measure(test.rel_op, u, v, passes, lowering.scalars)
        if (
            measured is None
            or is_wide(measured[1])
            or len(axes_in(measured[0])) < _most_axes(lowering)
        ):
            return None
        value = Gate(value, *measured, dims=broadcast([value.dims, measured[0].dims]))
    return value


def _most_axes(lowering) -> int:
    return max(len({d.axis for d in dims if not d.one}) for dims in lowering.layouts.values())


def _kept(e: Piecewise) -> tuple[Expr, list, bool] | None:
    """The nonzero branch, the conditions under which it is kept, and whether it is kept where they
    are asked of NaN.
    """
    if len(e.args) != 2:
        return None
    (first, condition), (last, _) = e.args
    magnitude = of_magnitude(condition)
    condition = condition if magnitude is None else magnitude
    if first == 0:
        tests = condition.args if isinstance(condition, Or) else (condition,)
        return last, [Not(test) for test in tests], True
    if last == 0:
        return first, [*(condition.args if isinstance(condition, And) else (condition,))], False
    return None


def _decides(test) -> bool:
    """True if entries decide, and not indices."""
    if not isinstance(test, Relational) or isinstance(test, Eq) or test.has(OneHot, Position):
        return False
    roles = {t.role for t in tensors_in(test)}
    return bool(roles - {"scalar"}) and not roles & INDICES


def _sides(test: Relational) -> tuple[Expr, Expr]:
    """The larger side, and the smaller one."""
    if isinstance(test, Ne):
        return test.args
    u, v = test.gts, test.lts
    if is_constant(u) and v.could_extract_minus_sign() and not isinstance(v, Add):
        return -v, -u
    return u, v


def _measure(
    relation: str, u: Value, v: Value, passes: bool, numbers: Collection[str]
) -> tuple[Value, Value] | None:
    """A measure and a threshold, which it exceeds where the test holds. Both sides are computed as
    in a comparison, then subtracted: rounding must not make equal values differ.
    """
    difference = u
    if u == ZERO:
        difference = Plus(((v, True),), dims=v.dims)
    elif v != ZERO:
        added = isinstance(v, Number) and v.value < 0
        less = Number(-v.value) if added else v
        difference = Plus(((u, False), (less, not added)), dims=broadcast([u.dims, v.dims]))
    if relation == "!=":
        magnitude = Apply("Abs", difference, dims=difference.dims)
        return (magnitude, ZERO) if is_number(v, numbers) else None
    sign = Apply("sign", difference, dims=difference.dims)
    if relation in (">=", "<="):
        return sign, MINUS_ONE
    if is_number(v, numbers):
        return u, v
    if is_number(u, numbers):
        return difference, ZERO
    return None if passes else (sign, ZERO)
