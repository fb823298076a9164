"""Recurrences along an axis: a cumulative sum or product, a scan, and a step to the next place."""

from __future__ import annotations

from sympy import Expr

from codegen.lowering.context import Context
from codegen.lowering.frames import Frame, arranged, axes_in, fitted
from codegen.lowering.picks import Picked, axes_at
from codegen.program.arrays import AsNumber, Cumulate, Expand, Scanned, Stepped
from codegen.program.parts import is_number
from codegen.program.values import Compare, Value
from derive.language.nodes import GoneAlong, LargestSoFar, LogCumSumExp, NewMax
from derive.language.notation.layout import plain


def recurrent(lowering: Context, e: GoneAlong, frame: Frame, picked: Picked) -> Value:
    """The operands with all axes of the node, scanned along one of them."""
    own = tuple(axis for axis in lowering.order if axis in axes_at(e, picked))
    along, dims = own.index(e.axis), plain(own)

    def whole(operand: Expr) -> Value:
        value = lowering.value(operand, own, picked)
        if is_number(value, lowering.scalars):
            return Expand(value, dims=dims)
        return fitted(value, dims)

    def partly(operand: Expr) -> Value:
        return arranged(lowering.value(operand, own, picked), own)

    if isinstance(e, LogCumSumExp):
        logarithm = Cumulate("logarithm", whole(e.operand), along, e.reverse, dims=dims)
        return arranged(logarithm, frame)
    if isinstance(e, (LargestSoFar, NewMax)):
        largest: Value = Cumulate("max", whole(e.operand), along, e.reverse, dims=dims)
        if isinstance(e, NewMax):
            new = Compare(whole(e.operand), ">=", largest, dims=dims)
            largest = AsNumber(new, dims=dims)
        return arranged(largest, frame)
    initial = None if e.initial == 0 else partly(e.initial)
    if e.is_step:
        value: Value = Stepped(whole(e.operand), initial, along, e.reverse, dims=dims)
        return arranged(value, frame)
    if e.is_sum:
        value = Cumulate("sum", whole(e.operand), along, e.reverse, dims=dims)
    elif e.is_product:
        value = Cumulate("product", whole(e.factor), along, e.reverse, dims=dims)
    else:
        factor, terms = partly(e.factor), whole(e.operand)
        if e.reverse and not e.exclusive and e.axis in axes_in(factor):
            place = along - len(own) + len(factor.dims)
            factor = Stepped(factor, None, place, True, dims=factor.dims)
        value = Scanned(factor, terms, initial, along, e.reverse, dims=dims)
    if e.exclusive:
        value = Stepped(value, initial, along, e.reverse, dims=dims)
    return arranged(value, frame)
