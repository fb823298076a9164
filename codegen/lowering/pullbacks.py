"""The derivative of a statement's outermost function, which a target may have as a function."""

from __future__ import annotations

from sympy import Dummy, Expr, Pow, S

from codegen.lowering.context import Context
from codegen.lowering.frames import arranged, broadcast
from codegen.lowering.picks import axes_at
from codegen.program.values import Plus, Power, Pullback, Times, Value
from derive.gradient.chain.chain import adjoint_of, in_terms_of_output, outer_argument
from derive.language.nodes import renamed
from derive.language.symbols import Tensor, tensors_in


def lowered_pullback(lowering: Context, t: Tensor, frame, picked) -> Value:
    """The upstream gradient of a statement, times the derivative of its outermost function: along
    the same axes, whichever of them the code will have.
    """
    statement = lowering.statements[t.name.removeprefix("d")]
    e, along = statement.expression, dict(zip(t.home, t.axes, strict=True))
    kept = {along.get(dim.axis, dim.axis) for dim in lowering.layouts[statement.name]}
    inner = tuple(axis for axis in frame if axis in kept | axes_at(t, picked))

    def lowered(part: Expr) -> Value:
        return lowering.value(renamed(part, along), inner, picked)

    def at_hand(part: Expr) -> Value | None:
        known = lowering.saved is None or {t.name for t in tensors_in(part)} <= lowering.saved
        return lowered(part) if known else None

    upstream = lowered(adjoint_of(statement.tensor))
    argument, output = map(at_hand, (outer_argument(statement), statement.tensor))
    if isinstance(e, Pow):
        name = "sqrt" if e.exp == S.Half else "Pow"
        slope = _slope_of_power(lowering, argument, e.exp)
    else:
        place, name = Dummy("argument", real=True), type(e).__name__
        slope = e.func(place).diff(place).xreplace({place: e.args[0]})
        slope = lowered(in_terms_of_output(slope, statement))
    dims = broadcast(part.dims for part in (upstream, argument, output) if part is not None)
    return arranged(Pullback(name, upstream, argument, output, slope, dims=dims), frame)


def _slope_of_power(lowering: Context, base: Value, exponent: Expr) -> Value:
    """r * u**(r - 1)"""
    lower = exponent - 1
    power = base if lower == 1 else Power(base, lowering.value(lower, ()), dims=base.dims)
    if exponent == -1:
        return Plus(((power, True),), dims=power.dims)
    return Times(((lowering.value(exponent, ()), False), (power, False)), dims=power.dims)
