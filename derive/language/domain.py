"""The values that a number may take: the domain that a scalar declares, and what follows from it.

delta = Scalar(1, above=0)
label_smoothing = Scalar(0, at_least=0, at_most=1)
correction = Scalar(1, below=C)

In: the bounds as they are declared, numbers or expressions in sizes. Out: a `Domain`, which says
whether a value lies in it, and which signs its values have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sympy import Expr, Integer
from sympy.core.logic import fuzzy_and

from derive.language.errors import NotationError
from derive.language.symbols import Axis

# Each bound by the name of its argument: its words, its sign, and whether it bounds from below.
BOUNDS = {
    "above": ("above", ">", True),
    "at_least": ("at least", ">=", True),
    "below": ("below", "<", False),
    "at_most": ("at most", "<=", False),
}


@dataclass(frozen=True)
class Bound:
    """One end of a domain: ``kind`` is its name in `BOUNDS`, ``limit`` a number or an expression in
    sizes.
    """

    kind: str
    limit: Expr

    @property
    def words(self) -> str:
        return BOUNDS[self.kind][0]

    @property
    def relation(self) -> str:
        return BOUNDS[self.kind][1]

    @property
    def is_lower(self) -> bool:
        return BOUNDS[self.kind][2]

    @property
    def is_strict(self) -> bool:
        return len(self.relation) == 1

    def __str__(self) -> str:
        return f"{self.words} {self.limit}"

    def holds(self, value: Expr) -> bool | None:
        """Whether ``value`` satisfies the bound for all sizes; None where that is unknown."""
        inside = value - self.limit if self.is_lower else self.limit - value
        inside = inside.xreplace(
            {a: Integer(a.length) for a in inside.atoms(Axis) if a.length is not None}
        )
        return inside.is_positive if self.is_strict else inside.is_nonnegative


@dataclass(frozen=True)
class Domain:
    """The real numbers within ``bounds``: at most one lower bound, which comes first, and at most
    one upper; all real numbers without any.
    """

    bounds: tuple[Bound, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.bounds)

    def __str__(self) -> str:
        return " and ".join(map(str, self.bounds))

    def holds(self, value: Expr) -> bool | None:
        """Whether ``value`` lies in the domain for all sizes; None where that is unknown."""
        return fuzzy_and([bound.holds(value) for bound in self.bounds])

    def signs(self) -> dict[str, bool]:
        """SymPy assumptions on the sign that all its values share."""
        found = {}
        for bound in self.bounds:
            limit = bound.limit if bound.is_lower else -bound.limit
            strictly, weakly = (
                ("positive", "nonnegative") if bound.is_lower else ("negative", "nonpositive")
            )
            if limit.is_positive or (bound.is_strict and limit.is_nonnegative):
                found[strictly] = True
            elif limit.is_nonnegative:
                found[weakly] = True
        return found

    def mapped(self, function: Callable[[Expr], Expr]) -> Domain:
        """The domain with ``function`` applied to every limit."""
        return Domain(tuple(Bound(bound.kind, function(bound.limit)) for bound in self.bounds))

    def at(self, share: Expr) -> Expr:
        """A value in the domain: between its ends, or within 1 of the only one, for a share between
        0 and 1. At least one end is required.
        """
        ends = [bound.limit for bound in self.bounds]
        if len(ends) == 2:
            return ends[0] + (ends[1] - ends[0]) * share
        return ends[0] + (share if self.bounds[0].is_lower else -share)


@dataclass(frozen=True)
class Demand:
    """A condition on the numbers passed to a function: ``expression``, of scalars and sizes, lies
    in ``domain``.
    """

    expression: Expr
    domain: Domain

    def holds(self, numbers: Mapping[Expr, Expr]) -> bool | None:
        """Whether it holds for these scalars and sizes; None where that is unknown."""
        domain = self.domain.mapped(lambda limit: limit.xreplace(numbers))
        return domain.holds(self.expression.xreplace(numbers))


def domain_of(written: str, limits: Mapping[str, Expr | None]) -> Domain:
    """The domain of the declaration ``written``; ``limits`` maps names in `BOUNDS` to limits, None
    for those that are absent.

    Raises `NotationError` where the domain would be empty.
    """
    bounds = [Bound(kind, limit) for kind, limit in limits.items() if limit is not None]
    lower = [bound for bound in bounds if bound.is_lower]
    upper = [bound for bound in bounds if not bound.is_lower]
    for same in (lower, upper):
        if len(same) > 1:
            raise NotationError(
                f"{written} is to be {same[0]} and {same[1]}", "leave one of the two out"
            )
    if lower and upper:
        strict = lower[0].is_strict or upper[0].is_strict
        other_end = Bound("below" if strict else "at_most", upper[0].limit)
        if other_end.holds(lower[0].limit) is False:
            raise NotationError(
                f"{written} is to be {lower[0]} and {upper[0]}: no number is",
                "swap the two, or leave one out",
            )
    return Domain((*lower, *upper))
