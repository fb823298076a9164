"""Sizes that follow from others by a formula: the lines that compute and refuse them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from codegen.program import values
from codegen.targets.torch.vocabulary import PRODUCT

if TYPE_CHECKING:
    from codegen.targets.torch.checks import Checks


def derived_lines(
    printer: Checks, length: values.Derived, line: str, raised: Callable[[str], str]
) -> list[str]:
    """``line`` computes the size; what is no length is refused, by what ``raised`` writes."""
    name = line.partition(" ")[0]
    found = f"{printer.around.program}: {name} = {length.formula} is"
    lines = [line, f"if {name} < 1:", f"    {raised(f'{found} {{{name}}}')}"]
    if length.divisor == values.Number(Fraction(1)):
        return lines
    dividend, divisor = (printer.text(v, PRODUCT) for v in (length.dividend, length.divisor))
    whole = f"{found} not whole: {{{dividend}}} / {divisor}"
    return [f"if {dividend} % {divisor}:", f"    {raised(whole)}", *lines]
