"""Fused multiply-add: a product that is added to something, as one operation, without a full-size
intermediate.

In the forward and the backward; the step-by-step functions compute one operation after the other,
as autograd does.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields, replace
from fractions import Fraction
from typing import TypeVar

from codegen.lowering.frames import broadcast
from codegen.program.arrays import Contract, ContractAdd
from codegen.program.parts import is_number, is_wide
from codegen.program.steps import Step
from codegen.program.values import Gate, Load, MulAdd, Number, Plus, Power, Times, Value

Node = TypeVar("Node", Value, Step)
ONE, TWO = Number(Fraction(1)), Number(Fraction(2))
HALVING = {Number(Fraction(n)): Number(Fraction(1, n)) for n in (2, 4, 8)}


def fused(node: Node, numbers: Collection[str]) -> Node:
    """``node`` with additions to a product fused with it; the arguments called ``numbers`` are
    Python numbers.
    """
    changed = {}
    for field in fields(node):
        if isinstance(node, Gate) and field.name == "measure":
            continue  # a difference of equal numbers stays 0
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
    """The sum from left to right; a product does not come first if possible, except in a
    difference.
    """
    terms = list(value.terms)
    plain = [
        t for t in terms if not t[1] and not is_number(t[0], numbers) and not _is_product(t[0])
    ]
    subtracted_next = len(terms) > 1 and terms[1][1]
    if _is_product(terms[0][0]) and not terms[0][1] and plain and not subtracted_next:
        small = [t for t in plain if t[0].dims != value.dims]
        first = small or plain[:1]
        terms = [*first, *(t for t in terms if t not in first)]
    added, changed = terms[:1], False
    for term, negative in terms[1:]:
        begun = _plus(added)
        together = _fused(begun, term, negative, numbers)
        if together is None or added == [(terms[0][0], True)]:
            added.append((term, negative))
        else:
            added, changed = [(together, False)], True
    return _plus(added) if changed else value


def _is_product(value: Value) -> bool:
    factor, product = _product(value)
    return factor is not None or isinstance(product, Contract)


def _plus(terms: list[tuple[Value, bool]]) -> Value:
    if len(terms) == 1 and not terms[0][1]:
        return terms[0][0]
    return Plus(tuple(terms), dims=broadcast(term.dims for term, _ in terms))


def _fused(addend: Value, term: Value, negative: bool, numbers: Collection[str]) -> Value | None:
    """``addend`` and ``term``, a product that is added or subtracted, as one operation."""
    if is_number(addend, numbers) or not term.dims:
        return None
    dims = broadcast([addend.dims, term.dims])
    factor, product = _product(term)
    if factor is not None and is_number(factor, numbers) and is_wide(factor):
        return None
    if isinstance(product, Contract):
        known = factor is None or is_number(factor, numbers)
        if not known or not product.is_of_matrices or len(dims) > 3 or dims != product.dims:
            return None
        return ContractAdd(addend, product, factor or ONE, negative, dims=dims)
    if factor is None or is_number(product, numbers):
        return None
    return MulAdd(addend, factor, product, negative, dims=dims)


def _product(value: Value) -> tuple[Value | None, Value]:
    """The last two factors, if ``value`` is a product."""
    if isinstance(value, Power) and value.exponent == TWO and isinstance(value.base, Load):
        return value.base, value.base
    if not isinstance(value, Times) or len(value.factors) < 2:
        return None, value
    *before, (last, divides) = value.factors
    if divides and last in HALVING and len(before) == 1:  # exact
        return HALVING[last], before[0][0]
    if divides:
        return None, value
    if len(before) == 1:
        return before[0][0], last
    return Times(tuple(before), dims=broadcast(factor.dims for factor, _ in before)), last
