"""An entry of a value as a C++ expression."""

from __future__ import annotations

from fractions import Fraction

from codegen.schedule.elements import Element, is_whole
from codegen.targets.cpp.names import CppNames, named
from codegen.targets.cpp.vocabulary import FUNCTIONS, LEVELS, POWERS, SIGNS
from codegen.targets.tables import expressions
from codegen.targets.tables.expressions import ALONE
from derive.language.errors import QuestionError


class CppExpressions(expressions.Expressions):
    """Prints elements. ``places`` maps arrays to the text of an entry: a function of its indices as
    texts; ``at_hand`` maps elements to their variables.
    """

    LANGUAGE, SIGNS, LEVELS, FUNCTIONS, POWERS = "C++", SIGNS, LEVELS, FUNCTIONS, POWERS

    def __init__(self, names: CppNames):
        super().__init__(names)
        self.places: dict[str, object] = {}
        self.at_hand: dict[Element, str] = {}

    def text(self, e: Element, level: int = 0) -> str:
        """An expression of type Real, an integer, or a condition."""
        return self.at_hand[e] if e in self.at_hand else super().text(e, level)

    def real(self, e: Element, level: int = 0) -> str:
        """An expression of type Real."""
        if e in self.at_hand or not is_whole(e):
            return self.text(e, level)
        if e.kind == "number":
            return f"Real({int(e.number)})"
        return f"Real({self.text(e)})"

    def double(self, e: Element, level: int = 0) -> str:
        """A constant expression, in float64."""
        text = self._double(e)
        return f"({text})" if self.level_of(e) < level else text

    def _double(self, e: Element) -> str:
        if e.kind == "number":
            return _decimal(e.number)
        if e.kind == "size":
            return f"double({self.size(e.name)})"
        if e.kind == "scalar":
            return self._scalar_name(e)
        if e.kind == "compare":
            return self.joined(e, e.name, self.double)
        if e.kind == "choose":
            condition, yes, no = e.args
            return f"({self.double(condition)} ? {self.double(yes)} : {self.double(no)})"
        if e.kind in SIGNS:
            return self.joined(e, SIGNS[e.kind], self.double)
        if e.kind == "negate":
            return f"-{self.double(e.args[0], ALONE)}"
        if e.kind == "not":
            return f"!{self.double(e.args[0], ALONE)}"
        if e.kind == "power":
            return f"pow({self.double(e.args[0])}, {self.double(e.args[1])})"
        if e.kind == "call":
            return f"{self.function(e.name)}({', '.join(map(self.double, e.args))})"
        if e.kind == "real":
            return f"({self.double(e.args[0])})"
        raise QuestionError(f"C++ has no number for {e.kind}", "add it to expressions.py")

    def entry_said(self, e: Element) -> str:
        return self.text(e).removesuffix("_now")

    # -- leaves ---------------------------------------------------------------

    def _number(self, e: Element) -> str:
        if is_whole(e):
            return str(int(e.number))
        return f"Real({_decimal(e.number)})"

    def _scalar(self, e: Element) -> str:
        return f"Real({self._scalar_name(e)})"

    def _scalar_name(self, e: Element) -> str:
        return named(e.name)

    def _size(self, e: Element) -> str:
        return self.size(e.name)

    def _index(self, e: Element) -> str:
        return self.names.index(e.name)

    def _entry(self, e: Element) -> str:
        return self.places[e.name]([*map(self.text, e.args)])

    _label = _entry

    def _counts(self, e: Element) -> str:
        return f"is_counted({self.text(e.args[0])}, {named(e.name)})"

    def _counted(self, e: Element) -> str:
        return f"counted_label({self.text(e.args[0])}, {named(e.name)})"

    # -- operations -----------------------------------------------------------

    def _divide(self, e: Element) -> str:
        dividend, divisor = e.args
        known = self.at_hand.get(inverted(divisor))
        level = self.LEVELS["divide"]
        return f"{self.real(dividend, level)} / {known}" if known else self._joined(e)

    def _not(self, e: Element) -> str:
        return f"!{self.text(e.args[0], ALONE)}"

    def _real(self, e: Element) -> str:
        return f"Real({self.text(e.args[0])})"

    def _choose(self, e: Element) -> str:
        condition, yes, no = e.args
        return f"choose({self.text(condition)}, {self.real(yes)}, {self.real(no)})"

    def _guard(self, e: Element) -> str:
        condition, yes, no = e.args
        return f"({self.text(condition)} ? {self.real(yes)} : {self.real(no)})"


def inverted(divisor: Element) -> Element:
    """A divisor used many times, where loops are; its name is that of a `Divisor`."""
    return Element("divisor", (divisor,))


def _decimal(value: Fraction | float) -> str:
    number = float(value)
    if number in (float("inf"), -float("inf")):
        return "-infinity" if number < 0 else "infinity"
    text = repr(number)
    return text if number >= 0 else f"({text})"
