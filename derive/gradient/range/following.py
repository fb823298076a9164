"""The interface of the rules of `scale_rules.py`: values followed as moderate factors times
exponentials.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from sympy import Expr, S

from derive.gradient.range.exponents import Definitions
from derive.language.symbols import Tensor


@dataclass(frozen=True)
class Scaled:
    """The value ``factor*exp(exponent)``."""

    factor: Expr
    exponent: Expr = S.Zero


class Following(Protocol):
    """The followed values (`Scales`), as an identity sees them."""

    known: Mapping[str, Scaled]
    named: Mapping[Expr, Tensor]
    values: Definitions

    def of(self, e: Expr) -> Scaled:
        """``e`` as a factor times an exponential."""

    def name(self, e: Expr, names: Iterable[str]) -> Expr:
        """The value that ``e`` is, under the first of the ``names`` that is free; ``e`` itself
        where no more values are made.
        """

    def safe(self, e: Expr) -> Expr:
        """``e`` without exponentials that overflow, as far as they cancel."""

    def inside(self, e: Expr) -> Expr:
        """``e`` with its operands made safe."""

    def value_of(self, scaled: Scaled) -> Expr:
        """The value itself, with the exponential under its name if it has one."""

    def quotient(self, e: Expr) -> Expr:
        """A difference as the quotient of positive sums that it is."""

    def stays_moderate(self, exponent: Expr) -> bool:
        """Whether its exponential neither overflows nor is 0 in all of its row."""
