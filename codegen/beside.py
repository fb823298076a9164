"""What is derived and proved beside a closed form."""

from __future__ import annotations

from dataclasses import dataclass, replace

from derive.orders import FIRST, SECOND
from derive.orders.second import SecondOrder
from derive.orders.third import ThirdOrder
from derive.proving.proved import Proved


@dataclass(frozen=True)
class Beside:
    """What is derived and proved beside a closed form: its ``second`` derivatives, the mathematics
    ``without_options``, the second derivatives of that, and the third ones of both; None for what
    was not. ``refused`` says why derivatives are missing that were asked for.
    """

    second: SecondOrder | None = None
    without_options: Proved | None = None
    second_without_options: SecondOrder | None = None
    third: ThirdOrder | None = None
    third_without_options: ThirdOrder | None = None
    refused: str = ""

    def without(self, order: int, why: str) -> Beside | None:
        """Less the derivatives from this ``order`` on; None where there are none."""
        if order > SECOND and self.third is not None:
            left = replace(self, third=None, third_without_options=None)
        elif order > FIRST and self.second is not None:
            left = Beside(without_options=self.without_options)
        else:
            return None
        return replace(left, refused=why)
