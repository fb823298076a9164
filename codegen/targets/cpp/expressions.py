"""An entry of a value as a C++ expression."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from codegen.schedule.elements import Element, is_number, is_whole
from codegen.targets.cpp.vocabulary import FUNCTIONS, POWERS, PREFIXES, SIGNS, SUFFIXES, TAKEN
from derive.language.errors import QuestionError


def named(name: str) -> str:
    """A name of a forward as one that C++ and the writer have free; others stay others."""
    plain = name.rstrip("_")
    taken = plain in TAKEN or plain.startswith(PREFIXES) or plain.endswith(SUFFIXES)
    return f"{name}_" if taken else name


class Expressions:
    """Prints elements. ``places`` says how an entry of an array is written: a function of its
    indices as texts; ``at_hand`` what has a variable already.
    """

    def __init__(self, sizes: Mapping[str, str]):
        self.sizes = dict(sizes)
        self.places: dict[str, object] = {}
        self.at_hand: dict[Element, str] = {}

    def text(self, e: Element) -> str:
        """An expression of type Real, of a whole number, or of a condition."""
        if e in self.at_hand:
            return self.at_hand[e]
        method = getattr(self, f"_{e.kind.replace(' ', '_')}", None)
        if method is not None:
            return method(e)
        sign = SIGNS.get(e.kind)
        if sign is None:
            raise QuestionError(f"C++ has no text for {e.kind}", "add it to expressions.py")
        return "(" + f" {sign} ".join(map(self.mixed(e), e.args)) + ")"

    def mixed(self, e: Element):
        """How the arguments of an operation are printed: whole numbers as Real, unless all are."""
        if is_whole(e) or e.kind in ("and", "or"):
            return self.text
        return self.real

    def real(self, e: Element) -> str:
        """An expression of type Real."""
        if e in self.at_hand or not is_whole(e):
            return self.text(e)
        if e.kind == "number":
            return f"Real({int(e.number)})"
        return f"Real({self.text(e)})"

    def double(self, e: Element) -> str:
        """What is made of numbers alone, in double precision."""
        if e.kind == "number":
            return _decimal(e.number)
        if e.kind == "size":
            return f"double({self.size(e.name)})"
        if e.kind == "scalar":
            return named(e.name)
        if e.kind == "compare":
            left, right = map(self.double, e.args)
            return f"({left} {e.name} {right})"
        if e.kind == "choose":
            condition, yes, no = map(self.double, e.args)
            return f"({condition} ? {yes} : {no})"
        if e.kind in SIGNS:
            return "(" + f" {SIGNS[e.kind]} ".join(map(self.double, e.args)) + ")"
        if e.kind == "negate":
            return f"(-{self.double(e.args[0])})"
        if e.kind == "not":
            return f"(!{self.double(e.args[0])})"
        if e.kind == "power":
            return f"pow({self.double(e.args[0])}, {self.double(e.args[1])})"
        if e.kind == "call":
            return f"{FUNCTIONS[e.name]}({', '.join(map(self.double, e.args))})"
        if e.kind == "real":
            return self.double(e.args[0])
        raise QuestionError(f"C++ has no number for {e.kind}", "add it to expressions.py")

    def size(self, axis: str) -> str:
        return f"size_{self.sizes[axis]}"

    def length(self, axis: str, parts: Mapping[str, tuple[str, ...]]) -> str:
        """That of an axis, into which others may have been flattened."""
        return " * ".join(map(self.size, parts.get(axis, (axis,))))

    # -- leaves ---------------------------------------------------------------

    def _number(self, e: Element) -> str:
        if is_whole(e):
            return str(int(e.number))
        return f"Real({_decimal(e.number)})"

    def _scalar(self, e: Element) -> str:
        return f"Real({named(e.name)})"

    def _size(self, e: Element) -> str:
        return self.size(e.name)

    def _index(self, e: Element) -> str:
        return f"i_{e.name}"

    def _entry(self, e: Element) -> str:
        return self.places[e.name]([*map(self.text, e.args)])

    _label = _entry

    # -- operations -----------------------------------------------------------

    def _negate(self, e: Element) -> str:
        return f"(-{self.mixed(e)(e.args[0])})"

    def _not(self, e: Element) -> str:
        return f"(!{self.text(e.args[0])})"

    def _real(self, e: Element) -> str:
        return f"Real({self.text(e.args[0])})"

    def _compare(self, e: Element) -> str:
        whole = all(map(is_whole, e.args))
        left, right = map(self.text if whole else self.real, e.args)
        return f"({left} {e.name} {right})"

    def _choose(self, e: Element) -> str:
        condition, yes, no = e.args
        return f"choose({self.text(condition)}, {self.real(yes)}, {self.real(no)})"

    def _power(self, e: Element) -> str:
        base, exponent = e.args
        written = POWERS.get(exponent.number) if exponent.kind == "number" else None
        if written is not None:
            return written.format(self.real(base))
        return f"pow({self.real(base)}, {self.real(exponent)})"

    def _call(self, e: Element) -> str:
        if e.name not in FUNCTIONS:
            raise QuestionError(
                f"the C++ target has no function for {e.name}",
                "add its line to FUNCTIONS in codegen/targets/cpp/vocabulary.py",
            )
        return f"{FUNCTIONS[e.name]}({', '.join(map(self.real, e.args))})"


def _decimal(value: Fraction | float) -> str:
    number = float(value)
    if number in (float("inf"), -float("inf")):
        return "-infinity" if number < 0 else "infinity"
    text = repr(number)
    return text if number >= 0 else f"({text})"


__all__ = ["Expressions", "is_number", "named"]
