"""Recurrences along an axis: a cumulative sum or product, a scan, and a step to the next place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sympy import Expr

from codegen.lowering.context import Context
from codegen.lowering.frames import Frame, arranged, axes_in, fitted
from codegen.lowering.picks import Picked, axes_at
from codegen.program.arrays import AsNumber, Cumulate, Expand, Scanned, Stepped
from codegen.program.parts import is_number
from codegen.program.values import Compare, Value
from derive.language.nodes import GoneAlong, Recurrence
from derive.language.notation.layout import plain


@dataclass(frozen=True)
class RunAlong:
    """A node with all its axes as dimensions, one of which it runs along."""

    lowering: Context
    node: GoneAlong
    picked: Picked

    @cached_property
    def own(self) -> Frame:
        axes = axes_at(self.node, self.picked)
        return tuple(axis for axis in self.lowering.order if axis in axes)

    @property
    def place(self) -> int:
        return self.own.index(self.node.axis)

    def whole(self, operand: Expr) -> Value:
        value = self.lowering.value(operand, self.own, self.picked)
        if is_number(value, self.lowering.scalars):
            return Expand(value, dims=plain(self.own))
        return fitted(value, plain(self.own))

    def partly(self, operand: Expr) -> Value:
        return arranged(self.lowering.value(operand, self.own, self.picked), self.own)

    def cumulated(self, kind: str, operand: Expr) -> Value:
        whole, back = self.whole(operand), self.node.reverse
        return Cumulate(kind, whole, self.place, back, dims=plain(self.own))


def cumulated(lowering: Context, e: GoneAlong, frame: Frame, picked: Picked, kind: str) -> Value:
    """A cumulative operation of the target."""
    return arranged(RunAlong(lowering, e, picked).cumulated(kind, e.operand), frame)


def new_largest(lowering: Context, e: GoneAlong, frame: Frame, picked: Picked) -> Value:
    """Whether each entry is the largest up to itself."""
    along = RunAlong(lowering, e, picked)
    largest, dims = along.cumulated("max", e.operand), plain(along.own)
    new = Compare(along.whole(e.operand), ">=", largest, dims=dims)
    return arranged(AsNumber(new, dims=dims), frame)


def recurrent(lowering: Context, e: Recurrence, frame: Frame, picked: Picked) -> Value:
    """The operands with all axes of the node, scanned along one of them."""
    node = RunAlong(lowering, e, picked)
    own, along, dims = node.own, node.place, plain(node.own)
    whole, partly = node.whole, node.partly
    initial = None if e.initial == 0 else partly(e.initial)
    if e.is_step:
        value: Value = Stepped(whole(e.operand), initial, along, e.reverse, dims=dims)
        return arranged(value, frame)
    if e.is_sum:
        value = node.cumulated("sum", e.operand)
    elif e.is_product:
        value = node.cumulated("product", e.factor)
    else:
        factor, terms = partly(e.factor), whole(e.operand)
        if e.reverse and not e.exclusive and e.axis in axes_in(factor):
            place = along - len(own) + len(factor.dims)
            factor = Stepped(factor, None, place, True, dims=factor.dims)
        value = Scanned(factor, terms, initial, along, e.reverse, dims=dims)
    if e.exclusive:
        value = Stepped(value, initial, along, e.reverse, dims=dims)
    return arranged(value, frame)
