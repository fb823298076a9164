"""The output of a class body that is reduced as the caller says."""

from __future__ import annotations

from derive.language.errors import NotationError, Place
from derive.language.notation.composition import differentiable_in
from derive.language.notation.definition import REDUCTION, Statement
from derive.language.notation.placing import placed_in
from derive.language.notation.reduced import Reduced
from derive.language.symbols import Tensor


def check_not_ended(body, name: str) -> None:
    """Refuse a line after the outputs. Raises `NotationError`."""
    if body.returned:
        last = [*body.places][-1]
        raise NotationError(
            f"{name} comes after {last} = Outputs(...), which says what is returned",
            f"move the line above that of {last}",
        )
    if body.reductions:
        reduced = body.statements[-1].name
        raise NotationError(
            f"{name} comes after {reduced} = Reduced(...), which is the output",
            f"move the line above that of {reduced}",
        )


def state_reduced(body, name: str, reduced: Reduced, place: Place) -> Tensor:
    """State the output once for each of the words; the first is the default.

    Raises `NotationError` for a divisor that has a gradient.
    """
    body.claim(REDUCTION, place)
    for word, divisor in reduced.divisors.items():
        reduced.divisors[word] = placed_in(body, name, divisor, place)
        source = differentiable_in(body, divisor)
        if source is not None:
            raise NotationError(
                f"Reduced(..., {word}={divisor}): that is computed from {source}, which has a "
                "gradient, and what is divided by would need one too",
                f"declare {source} as Given, or state the quotient as the output itself",
            )
    default, *others = reduced.expressions().items()
    first = body.state(name, default[1], place)
    body.reductions[default[0]] = body.statements[-1]
    for word, value in others:
        body.reductions[word] = Statement(*body.stated(name, value), place)
    return first
