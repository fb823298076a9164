"""Checks on the parts of a statement: tensors of its own class body, and axes of one meaning."""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Expr, preorder_traversal

from derive.language.errors import NotationError
from derive.language.symbols import (
    Along,
    Axes,
    Axis,
    MinusInfinity,
    Tensor,
    axes_of,
    check_axes,
    same_name,
)


def check_own(value: Expr, tensors: Mapping[str, Tensor]) -> None:
    """Check that every symbol is a tensor of this class body, or the size of an axis."""
    for symbol in sorted(value.free_symbols, key=str):
        if isinstance(symbol, (Axis, MinusInfinity)):
            continue
        if not isinstance(symbol, Tensor):
            raise NotationError(
                f"{symbol} is a symbol of SymPy's, not a tensor",
                f"declare it: {symbol} = Input(N, C), or {symbol} = Scalar(1.0)",
            )
        if tensors.get(symbol.name) != symbol.at_home:
            raise NotationError(
                f"{symbol} is not a tensor of this forward",
                "to use another forward, call it: h = Other(x)",
            )


def check_along(value: Expr, tensors: Mapping[str, Tensor]) -> None:
    """Check that every name of an axis means one thing in a class body, and that no part of
    ``value`` lies along two `Axes`.
    """
    along = {axis for node in value.atoms(Along) for axis in node.axes}
    along |= {axis for tensor in value.atoms(Tensor) for axis in tensor.axes}
    earlier = {axis for tensor in tensors.values() for axis in tensor.axes}
    same_name(earlier | along | value.atoms(Axis))
    if sum(isinstance(axis, Axes) for axis in along) > 1:
        for part in preorder_traversal(value):
            check_axes(axes_of(part), part)
