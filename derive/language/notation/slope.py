"""A step of a gradient inside of a forward."""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Expr

from derive.language.symbols import Tensor


@dataclass(frozen=True)
class TotalGradient:
    """The gradient of a total ``by`` a tensor is ``value``; for those before it, it is ``read``:
    a tensor that has this value, or the value itself.
    """

    by: Tensor
    read: Expr
    value: Expr
