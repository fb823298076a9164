"""A product that is added to something, as one operation: what is of full size is neither written
nor read again in between.

In the forward and the backward; the step-by-step functions compute one operation after the other,
as autograd does.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields, replace
from fractions import Fraction
from typing import TypeVar

from codegen.lowering.frames import broadcast
from codegen.program import Load, MulAdd, Number, Plus, Power, Step, Times, Value, is_number

Node = TypeVar("Node", Value, Step)
TWO = Number(Fraction(2))


def fused(node: Node, numbers: Collection[str]) -> Node:
    """``node`` with what is added to a product fused with it; the arguments called ``numbers`` are
    Python numbers.
    """
    changed = {}
    for field in fields(node):
        before = getattr(node, field.name)
        after = _inside(before, numbers)
        if after is not before:
            changed[field.name] = after
    node = replace(node, **changed) if changed else node
    return _sum(node, numbers) if isinstance(node, Plus) else node


def _inside(item, numbers: Collection[str]):
    if isinstance(item, Value):
        return fused(item, numbers)
    if not isinstance(item, tuple):
        return item
    after = tuple(_inside(each, numbers) for each in item)
    return item if all(a is b for a, b in zip(after, item, strict=True)) else after


def _sum(value: Plus, numbers: Collection[str]) -> Value:
    """From left to right, as it is added up; of the first two, the product second."""
    terms = list(value.terms)
    if (
        len(terms) > 1
        and _product(terms[0][0], numbers)
        and not any(minus for _, minus in terms[:2])
    ):
        (first, _), (second, _) = terms[:2]
        if not is_number(second, numbers) and _product(second, numbers) is None:
            terms[:2] = [(second, False), (first, False)]
    added, changed = terms[:1], False
    for term, negative in terms[1:]:
        product, begun = _product(term, numbers), _plus(added)
        if product is None or is_number(begun, numbers) or added == [(terms[0][0], True)]:
            added.append((term, negative))
        else:
            dims = broadcast([begun.dims, term.dims])
            added = [(MulAdd(begun, *product, negative, dims=dims), False)]
            changed = True
    return _plus(added) if changed else value


def _plus(terms: list[tuple[Value, bool]]) -> Value:
    if len(terms) == 1 and not terms[0][1]:
        return terms[0][0]
    return Plus(tuple(terms), dims=broadcast(term.dims for term, _ in terms))


def _product(value: Value, numbers: Collection[str]) -> tuple[Value, Value] | None:
    """The two that are multiplied last, if ``value`` is that: tensors, or a number and a tensor."""
    if isinstance(value, Power) and value.exponent == TWO and isinstance(value.base, Load):
        return None if is_number(value, numbers) else (value.base, value.base)
    if not isinstance(value, Times) or not value.dims:
        return None
    *before, (last, divides) = value.factors
    if divides or not before or is_number(last, numbers):
        return None
    if len(before) == 1:
        return before[0][0], last
    return Times(tuple(before), dims=broadcast(factor.dims for factor, _ in before)), last
