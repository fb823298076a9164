"""The values that parts of a claim would need for the whole to be right, at one point.

The claim is evaluated with the value at a spot scaled by 0, 2 and 3. This shows, entry by entry,
how the claim depends on it, and therefore by which factor it must be multiplied, without solving
anything or knowing the structure of the claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import log2
from typing import Any

from sympy import Expr, Integer

from derive.claims.checking.explaining.written import Spot, WrittenClaim
from derive.claims.checking.numbers.evaluation import Evaluation
from derive.claims.checking.numbers.tables import UNDEFINED, Index, projection
from derive.gradient.chain.chain import adjoint_of
from derive.language.symbols import Tensor

SCALES = tuple(Tensor(f"scale {k}", (), role="scalar") for k in (0, 2, 3))
NEAR = 1e-9  # relative; of float64
ALIKE = 1e-7  # the same, for powers

Entries = Mapping[Index, Any]


class Needs:
    """The values that a claim about the gradient of ``of`` needs at the point ``at``."""

    def __init__(self, at: Evaluation, of: Tensor, written: WrittenClaim, plain: bool = False):
        self.at, self.of, self.written, self.plain = at, of, written, plain
        for t, k in zip(SCALES, (0, 2, 3), strict=True):
            at.give(t, Integer(k))

    def entries(self, e: Expr) -> Entries:
        """The entries of an expression along the axes of the claim."""
        table = self.at.table(self.written.plain(e) if self.plain else e)
        project = projection(self.of.home, table.axes)
        return {i: table.entries[project(i)] for i in self.at.indices(self.of.home)}

    @cached_property
    def right(self) -> Entries:
        return self.entries(adjoint_of(self.of))

    @cached_property
    def got(self) -> Entries:
        return self.entries(self.written.whole)

    @cached_property
    def is_defined(self) -> bool:
        return UNDEFINED not in (*self.right.values(), *self.got.values())

    @cached_property
    def scale(self):
        return max(map(abs, (*self.right.values(), *self.got.values())), default=0) or 1

    def factors(self, spot: Spot) -> tuple[dict[Index, Any] | None, bool]:
        """The factor that the value at a spot needs for each entry of the claim: None for an entry
        that is right without it, and None overall if no factor helps. Also whether the claim is
        linear in the value.
        """
        scaled = [
            self.entries(self.written.with_other(spot, spot.node * scale)) for scale in SCALES
        ]
        found, powers = {}, set()
        for i, wanted in self.right.items():
            none, two, three = (entries[i] for entries in scaled)
            one = self.got[i]
            if UNDEFINED in (one, two, three):
                return None, False
            base = 0 if none is UNDEFINED else none
            step = one - base
            if abs(step) <= NEAR * self.scale:
                if abs(wanted - one) > NEAR * self.scale:
                    return None, False
                found[i] = None
                continue
            power = _power((two - base) / step, (three - base) / step)
            needed = (wanted - base) / step
            if power is None or (power != 1 and needed <= 0):
                return None, False
            powers.add(power)
            found[i] = needed if power == 1 else needed ** (type(needed)(1) / power)
        is_used = any(v is not None for v in found.values())
        return (found if is_used else None), powers == {1}


def _power(twice, thrice) -> float | None:
    """The exponent with which a part depends on a value, from its ratios at 2 and 3 times the
    value; else None.
    """
    if twice <= 0:
        return None
    power = round(2 * log2(twice)) / 2
    fits = abs(twice - 2**power) <= ALIKE * twice and abs(thrice - 3**power) <= ALIKE * 3**power
    return power if power and fits else None
