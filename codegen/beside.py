"""What is derived and proved beside a closed form."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from derive.derivation import derive_definition
from derive.language.errors import QuestionError, UnprovedError
from derive.notation.specialised import without_options
from derive.orders import FIRST, SECOND
from derive.orders.second import SecondOrder, second_order
from derive.orders.third import ThirdOrder, third_order
from derive.proving.proved import Proved

LONGEST_WITHOUT_OPTIONS = 60  # seconds: calls that pass nothing optional then take the long way
LONGEST_SECOND = 120  # seconds for each of its two programs: autograd then takes second derivatives
NOT_DERIVED = "those of a recurrence are not derived"
EMITTED = r"; (nothing|no second derivative) was emitted$"  # says an error where it is one


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


def beside_of(
    proved: Proved,
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
    order: int = SECOND,
) -> Beside:
    """What is derived beside the closed form, in ``limit`` seconds for each part of it."""
    plain = _without_options(proved)
    if order == FIRST or proved.definition.carried:
        return Beside(None, plain, refused=NOT_DERIVED * (order > FIRST))
    limit = LONGEST_SECOND if limit is None else limit
    try:
        second = second_order(proved, progress, limit)
        of_plain = None if plain is None else second_order(plain, progress, limit)
    except UnprovedError as error:
        return Beside(None, plain, refused=reason_of(error))
    if order == SECOND:
        return Beside(second, plain, of_plain)
    try:
        third = third_order(second, progress, limit)
        third_of_plain = None if of_plain is None else third_order(of_plain, progress, limit)
    except UnprovedError as error:
        return Beside(second, plain, of_plain, refused=reason_of(error))
    return Beside(second, plain, of_plain, third, third_of_plain)


def _without_options(proved: Proved) -> Proved | None:
    """The same mathematics where nothing optional is passed; None where that is not shorter, or
    proved for fewer sizes.
    """
    definition = without_options(proved.closed_form.definition)
    if definition is None:
        return None
    try:
        plain = derive_definition(definition, limit=LONGEST_WITHOUT_OPTIONS)
    except UnprovedError:
        return None
    return plain if plain.every_size or not proved.every_size else None


def reason_of(error: QuestionError | UnprovedError) -> str:
    """Why derivatives or kernels are missing, on one line; all else is emitted."""
    lines = re.sub(EMITTED, "", str(error)).splitlines()
    return "; ".join(filter(None, (" ".join(line.split()) for line in lines)))
