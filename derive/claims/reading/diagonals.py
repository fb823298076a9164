"""Identities between two axes, and diagonals, in a formula of the project's own notation."""

from __future__ import annotations

import ast
from typing import Protocol

from derive.claims.reading.refusals import Refusal
from derive.claims.reading.usage import USAGE
from derive.claims.reading.values import Extent, Space, TextValue
from derive.language.diagonals import Identity
from derive.language.nodes import Sum
from derive.language.symbols import Axis


class NamedValues(Protocol):
    """The interface that looks up axes and values of a formula by name."""

    space: Space

    def axis(self, node: ast.AST) -> Axis: ...

    def operand(self, node: ast.AST) -> TextValue: ...

    def value(self, e, axes, of: TextValue) -> TextValue: ...


def identity(names: NamedValues, one, other) -> TextValue:
    pair = _pair(names, one, other)
    space = names.space
    dims = space.definition.in_order({*pair})
    return space.made(Identity.between(*pair), dims, Extent(), by_name=True)


def diagonal(names: NamedValues, operand, one, other) -> TextValue:
    x, pair = names.operand(operand), _pair(names, one, other)
    e = Sum.over(Identity.between(*pair) * x.expression, pair[1:])
    return names.value(e, {*x.axes} - {pair[1]}, x)


def _pair(names: NamedValues, *nodes) -> tuple[Axis, Axis]:
    one, other = map(names.axis, nodes)
    size = names.space.definition.size
    if one == other or size(one) != size(other):
        raise Refusal(f"{one} and {other} are not two axes of one size", USAGE["Identity"])
    return one, other
