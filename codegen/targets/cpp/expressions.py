"""An entry of a value as a C++ expression."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from codegen.schedule.elements import Element, is_number, is_whole
from codegen.targets.cpp.names import Names, named
from codegen.targets.cpp.vocabulary import FUNCTIONS, LEVELS, POWERS, SIGNS
from derive.language.errors import QuestionError

# How a name says what a value is made of.
JOINED = {"add": "plus", "subtract": "minus", "multiply": "times", "divide": "over"}
RELATIONS = {"==": "is", "!=": "is_not", "<": "below", ">": "above"}
DIGITS = {0: "zero", 1: "one", 2: "two", 3: "three", 4: "four"}
LONGEST = 32  # characters of such a name
ALONE = 9  # the level of what nothing around it tears apart
NEGATED, DIVIDED = LEVELS["negate"], LEVELS["divide"]


class Expressions:
    """Prints elements. ``places`` says how an entry of an array is written: a function of its
    indices as texts; ``at_hand`` what has a variable already. What binds less than the ``level``
    of the place where it stands is printed in parentheses.
    """

    def __init__(self, names: Names):
        self.names = names
        self.places: dict[str, object] = {}
        self.at_hand: dict[Element, str] = {}

    def text(self, e: Element, level: int = 0) -> str:
        """An expression of type Real, of a whole number, or of a condition."""
        if e in self.at_hand:
            return self.at_hand[e]
        method = getattr(self, f"_{e.kind.replace(' ', '_')}", None)
        if method is None and e.kind not in SIGNS:
            raise QuestionError(f"C++ has no text for {e.kind}", "add it to expressions.py")
        text = method(e) if method else self._joined(e)
        return f"({text})" if level_of(e) < level else text

    def _joined(self, e: Element) -> str:
        plain = is_whole(e) or e.kind in ("and", "or")
        return joined(e, SIGNS[e.kind], self.text if plain else self.real)

    def real(self, e: Element, level: int = 0) -> str:
        """An expression of type Real."""
        if e in self.at_hand or not is_whole(e):
            return self.text(e, level)
        if e.kind == "number":
            return f"Real({int(e.number)})"
        return f"Real({self.text(e)})"

    def double(self, e: Element, level: int = 0) -> str:
        """What is made of numbers alone, in float64."""
        text = self._double(e)
        return f"({text})" if level_of(e) < level else text

    def _double(self, e: Element) -> str:
        if e.kind == "number":
            return _decimal(e.number)
        if e.kind == "size":
            return f"double({self.size(e.name)})"
        if e.kind == "scalar":
            return self._scalar_name(e)
        if e.kind == "compare":
            return joined(e, e.name, self.double)
        if e.kind == "choose":
            condition, yes, no = e.args
            return f"({self.double(condition)} ? {self.double(yes)} : {self.double(no)})"
        if e.kind in SIGNS:
            return joined(e, SIGNS[e.kind], self.double)
        if e.kind == "negate":
            return f"-{self.double(e.args[0], ALONE)}"
        if e.kind == "not":
            return f"!{self.double(e.args[0], ALONE)}"
        if e.kind == "power":
            return f"pow({self.double(e.args[0])}, {self.double(e.args[1])})"
        if e.kind == "call":
            return f"{FUNCTIONS[e.name]}({', '.join(map(self.double, e.args))})"
        if e.kind == "real":
            return f"({self.double(e.args[0])})"
        raise QuestionError(f"C++ has no number for {e.kind}", "add it to expressions.py")

    def size(self, axis: str) -> str:
        return self.names.size(axis)

    def length(self, axis: str, parts: Mapping[str, tuple[str, ...]]) -> str:
        """That of an axis, into which others may have been flattened."""
        return " * ".join(map(self.size, parts.get(axis, (axis,))))

    # -- names ----------------------------------------------------------------

    def named(self, e: Element, otherwise: str) -> str:
        """A free name that says what a value is; ``otherwise`` where that would be long."""
        name = self.said(e)
        short = name.isidentifier() and len(name) <= LONGEST
        return self.names.free(named(name) if short else otherwise)

    def said(self, e: Element) -> str:
        """Nothing that is a name where it is not said in some words."""
        if e.kind == "number":
            return DIGITS.get(e.number, "?")
        if e.kind in ("entry", "label"):
            text = self.text(e).removesuffix("_now")
            places = [self.names.index(i.name) if i.kind == "index" else "?" for i in e.args]
            return text if text.isidentifier() else "_".join([e.name, "".join(places)]).strip("_")
        if e.kind == "size":
            return self.size(e.name)
        if e.kind == "scalar":
            return e.name
        parts = [*map(self.said, e.args)]
        if e.kind in JOINED:
            return f"_{JOINED[e.kind]}_".join(parts)
        if e.kind == "compare":
            return f"_{RELATIONS.get(e.name, '?')}_".join(parts)
        if e.kind in ("choose", "guard"):
            return "_or_".join(parts[1:])
        if e.kind == "negate":
            return f"minus_{parts[0]}"
        if e.kind == "call":
            return "_".join([e.name, *parts])
        return parts[0] if e.kind == "real" else "?"

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

    # -- operations -----------------------------------------------------------

    def _negate(self, e: Element) -> str:
        return f"-{(self.text if is_whole(e) else self.real)(e.args[0], ALONE)}"

    def _not(self, e: Element) -> str:
        return f"!{self.text(e.args[0], ALONE)}"

    def _real(self, e: Element) -> str:
        return f"Real({self.text(e.args[0])})"

    def _compare(self, e: Element) -> str:
        return joined(e, e.name, self.text if all(map(is_whole, e.args)) else self.real)

    def _choose(self, e: Element) -> str:
        condition, yes, no = e.args
        return f"choose({self.text(condition)}, {self.real(yes)}, {self.real(no)})"

    def _guard(self, e: Element) -> str:
        condition, yes, no = e.args
        return f"({self.text(condition)} ? {self.real(yes)} : {self.real(no)})"

    def _power(self, e: Element) -> str:
        base, exponent = e.args
        plain = exponent.kind == "number"
        root = POWERS.get(abs(exponent.number)) if plain else None
        if root is None:
            return f"pow({self.real(base)}, {self.real(exponent)})"
        if exponent.number > 0:
            return f"{root}({self.real(base)})"
        return f"1 / {f'{root}({self.real(base)})' if root else self.real(base, DIVIDED + 1)}"

    def _call(self, e: Element) -> str:
        if e.name not in FUNCTIONS:
            raise QuestionError(
                f"the C++ target has no function for {e.name}",
                "add its line to FUNCTIONS in codegen/targets/cpp/vocabulary.py",
            )
        return f"{FUNCTIONS[e.name]}({', '.join(map(self.real, e.args))})"


def level_of(e: Element) -> int:
    """How much what is printed of an element binds."""
    if e.kind == "power":
        exponent = e.args[1]
        inverse = exponent.kind == "number" and exponent.number < 0
        return DIVIDED if inverse and POWERS.get(abs(exponent.number)) is not None else ALONE
    if e.kind == "number" and is_whole(e) and e.number < 0:
        return NEGATED
    return LEVELS.get(e.kind, ALONE)


def joined(e: Element, sign: str, printed) -> str:
    """Both arguments of an operation: equals are computed from the left, and conditions beside
    others stand in parentheses.
    """
    own, least = level_of(e), LEVELS["add"]
    left, right = e.args
    return f"{printed(left, max(own, least))} {sign} {printed(right, max(own + 1, least))}"


def _decimal(value: Fraction | float) -> str:
    number = float(value)
    if number in (float("inf"), -float("inf")):
        return "-infinity" if number < 0 else "infinity"
    text = repr(number)
    return text if number >= 0 else f"({text})"


__all__ = ["Expressions", "is_number", "named"]
