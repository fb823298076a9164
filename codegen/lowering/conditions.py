"""Choices as they are written, and their conditions."""

from __future__ import annotations

from fractions import Fraction

from sympy import Piecewise
from sympy.core.relational import Relational
from sympy.logic.boolalg import ITE, And, BooleanFalse, BooleanTrue, Not, Or

from codegen.lowering.context import Context
from codegen.lowering.frames import broadcast
from codegen.lowering.gates import choice_of, gate
from codegen.lowering.nodes import counted
from codegen.program.arrays import Expand
from codegen.program.parts import is_number
from codegen.program.values import Choose, Combine, Compare, Number, Value
from derive.language.errors import QuestionError
from derive.language.notation.layout import Layout


def lowered_choice(lowering: Context, e: Piecewise, frame, picked) -> Value:
    """A choice, from the last branch to the first. Where a number decides, the code has one of the
    branches and not a tensor made of them, so each gets the dimensions of the whole.
    """
    if not lowering.rounds_as_autograd and (gated := gate(lowering, e, frame, picked)) is not None:
        return gated
    *others, (last, _) = e.args
    value = lowering.value(last, frame, picked)
    for chosen, condition in reversed(others):
        branch = lowering.value(chosen, frame, picked)
        test = _condition(lowering, condition, frame, picked)
        dims = broadcast([test.dims, branch.dims, value.dims])
        both = is_number(branch, lowering.scalars) and is_number(value, lowering.scalars)
        if is_number(test, lowering.scalars) and not both:
            branch, value = (_whole(lowering, v, dims) for v in (branch, value))
        if lowering.rounds_as_autograd:  # and takes the branch's own derivative at the edge
            value = Choose(test, branch, value, dims=dims)
        else:
            value = choice_of(test, branch, value, dims, lowering.scalars)
    return value


def _whole(lowering: Context, value: Value, dims: Layout) -> Value:
    """``value`` as a tensor of these dimensions."""
    whole = value.dims == dims and not is_number(value, lowering.scalars)
    return value if whole else Expand(value, dims=dims)


def _condition(lowering: Context, c, frame, picked) -> Value:
    if isinstance(c, Relational):
        left, right = (lowering.value(counted(side), frame, picked) for side in (c.lhs, c.rhs))
        return Compare(left, c.rel_op, right, dims=broadcast([left.dims, right.dims]))
    if isinstance(c, (BooleanTrue, BooleanFalse)):
        return Number(Fraction(int(bool(c))))
    if isinstance(c, ITE):
        test, yes, no = c.args
        return _condition(lowering, Or(And(test, yes), And(Not(test), no)), frame, picked)
    if isinstance(c, (And, Or, Not)):
        operands = tuple(_condition(lowering, arg, frame, picked) for arg in c.args)
        return Combine(type(c).__name__.lower(), operands, dims=broadcast(o.dims for o in operands))
    raise QuestionError(f"the condition {c} is not supported", "use <, <=, >, >=, and, or, not")
