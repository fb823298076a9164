"""Torch's reductions and normalizing functions, by name.

They are read as mathematics: a softmax is ``exp(x)/Sum(exp(x))``, however torch computes it.
"""

from __future__ import annotations

from dataclasses import replace

from sympy import Expr, Mul

from derive.claims.reading.operations.entries import reduced
from derive.claims.reading.refusals import Refusal
from derive.claims.reading.values import INDEX, Space, TextValue
from derive.language.nodes import ArgMax, Max
from derive.language.symbols import axes_of


def count(space: Space, axes) -> Expr:
    return Mul(*(space.size(axis) for axis in axes))


def largest_of(e: Expr, axes) -> Expr:
    for axis in axes:
        e = Max.over(e, [axis]) if axis in axes_of(e) else e
    return e


def _index_of(e: Expr, axes) -> Expr:
    if len(axes) != 1 or axes[0] not in axes_of(e):
        raise Refusal(
            "only an arg max along one dimension is supported", "name the dimension: .argmax(1)"
        )
    return ArgMax.over(e, axes)


def index_of(space: Space, x: TextValue, dim, keepdim) -> TextValue:
    return replace(reduced(space, x, dim, keepdim, _index_of), kind=INDEX)
