"""An entry of a value as an expression in Triton, or in Python for numbers."""

from __future__ import annotations

from fractions import Fraction

from codegen.schedule.elements import ONE, ZERO, Element, is_number, is_whole
from codegen.targets.tables import expressions
from codegen.targets.tables.expressions import ALONE
from codegen.targets.triton.vocabulary import (
    FUNCTIONS,
    LEVELS,
    OF_NUMBERS,
    POWERS,
    SIGNS,
    TRITON,
)

named = TRITON.named
MOST_WHOLE = 2**31  # larger ones are printed as floats: integers of Triton end at 2^63


class TritonExpressions(expressions.Expressions):
    """Prints elements."""

    LANGUAGE, SIGNS, LEVELS, FUNCTIONS, POWERS = "Triton", SIGNS, LEVELS, FUNCTIONS, POWERS

    def real(self, e: Element, level: int = 0) -> str:
        """The text: sizes and small numbers are converted where they meet floats."""
        return self.text(e, level)

    def entry_said(self, e: Element) -> str:
        return self.text(e)

    # -- leaves ---------------------------------------------------------------

    def _number(self, e: Element) -> str:
        return decimal(e.number)

    def _size(self, e: Element) -> str:
        return self.size(e.name)

    def _counts(self, e: Element) -> str:
        return f"is_counted({self.text(e.args[0])}, {named(e.name)})"

    def _counted(self, e: Element) -> str:
        return f"counted_label({self.text(e.args[0])}, {named(e.name)})"

    # -- operations -----------------------------------------------------------

    # On the interpreter a place that a loop counts is a number of Python's, and tests of it are.

    def _not(self, e: Element) -> str:
        text = self.text(e.args[0], ALONE)
        return f"~{text}" if e.entries else f"({text} == 0)"

    def _real(self, e: Element) -> str:
        if not e.entries:
            return f"tl.where({self.text(e.args[0])}, 1, 0).to(REAL)"
        return f"{self.text(e.args[0], ALONE)}.to(REAL)"

    def _choose(self, e: Element) -> str:
        condition, yes, no = e.args
        if (yes, no) == (ONE, ZERO):
            return self._real(e)
        first = self.real(yes) if no.kind != "number" else self.with_dtype(yes)
        return f"tl.where({self.text(condition)}, {first}, {self.real(no)})"

    def with_dtype(self, e: Element) -> str:
        """The text with a dtype: a number has none of its own."""
        return f"tl.full([], {self.real(e)}, REAL)" if e.kind == "number" else self.real(e)

    # -- numbers --------------------------------------------------------------

    def in_python(self, e: Element, level: int = 0) -> str:
        """A constant expression, as the launching Python code computes it."""
        text = self._in_python(e)
        return f"({text})" if self.level_of_number(e) < level else text

    def level_of_number(self, e: Element) -> int:
        if e.kind == "power":
            return LEVELS["negate"] + 1
        return 0 if e.kind == "choose" else LEVELS.get(e.kind, ALONE)

    def _in_python(self, e: Element) -> str:
        printed = self.in_python
        if e.kind == "number":
            return decimal(e.number).replace('float("inf")', "math.inf")
        if e.kind == "size":
            return self.names.codes[e.name]
        if e.kind == "scalar":
            return e.name
        if e.kind == "real":
            return printed(e.args[0])
        if e.kind == "choose":
            condition, yes, no = e.args
            return f"{printed(yes, 1)} if {printed(condition, 1)} else {printed(no)}"
        if e.kind == "call":
            self.function(e.name)  # raises for an unknown function
            own = OF_NUMBERS.get(e.name, f"math.{e.name}")
            return f"{own}({', '.join(map(printed, e.args))})"
        if e.kind in ("negate", "not"):
            return f"{'-' if e.kind == 'negate' else 'not '}{printed(e.args[0], ALONE)}"
        sign = {"power": "**", "compare": e.name, "and": "and", "or": "or"}.get(e.kind)
        own = self.level_of_number(e)
        left, right = e.args
        return f"{printed(left, own + 1)} {sign or SIGNS[e.kind]} {printed(right, own + 1)}"


def is_known_before(e: Element) -> bool:
    """True if it is made of numbers, other than one size alone, which cannot overflow."""
    if not is_number(e) or e.kind in ("number", "size"):
        return False
    return not (is_whole(e) and sum(part.kind == "size" for part in e.parts()) == 1)


def decimal(value: Fraction | float) -> str:
    number = float(value)
    if number in (float("inf"), -float("inf")) or number != number:
        return f'float("{number}")'
    whole = isinstance(value, Fraction) and value.denominator == 1 and abs(value) < MOST_WHOLE
    return str(int(value)) if whole else repr(number)
