"""Numbers as formulas in Python."""

from __future__ import annotations

import re

from codegen.program import values
from codegen.targets.torch.vocabulary import IN_NUMBERS

LONGEST_FORMULA = 24  # more is no shorter to read than the digits


def by_formula(number: values.Constant) -> str | None:
    """A number as a short Python formula of named numbers: a product."""
    names = set(re.findall(r"[A-Za-z_]\w*", number.text))
    long = len(number.text) > LONGEST_FORMULA or re.search(r"[-+]|\d{7}", number.text)
    if long or not names <= IN_NUMBERS.keys():
        return None
    text = re.sub(r"[A-Za-z_]\w*", lambda name: IN_NUMBERS[name[0]], number.text)
    return re.sub(r"(?<!\*)([*/])(?!\*)", r" \1 ", text)
