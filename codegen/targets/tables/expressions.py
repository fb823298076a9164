"""An entry of a value as an expression in a C-like language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from codegen.schedule.elements import Element, is_whole
from codegen.targets.tables.names import Names
from derive.language.errors import QuestionError

# Parts of a name that describes a value.
JOINED = {"add": "plus", "subtract": "minus", "multiply": "times", "divide": "over"}
RELATIONS = {"==": "is", "!=": "is_not", "<": "below", ">": "above"}
DIGITS = {0: "zero", 1: "one", 2: "two", 3: "three", 4: "four"}
LONGEST = 32  # characters of such a name
ALONE = 9  # precedence of an atom


class Expressions:
    """Prints elements; one method for each kind, or a binary operator. An element of lower
    precedence than the ``level`` of its place is printed in parentheses: ``LEVELS`` are the
    precedences. ``POWERS`` are those that are functions of the base, or itself, by their exponents.
    """

    LANGUAGE: str
    SIGNS: Mapping[str, str]
    LEVELS: Mapping[str, int]
    FUNCTIONS: Mapping[str, str]
    POWERS: Mapping[Fraction, str]

    def __init__(self, names: Names):
        self.names = names

    def text(self, e: Element, level: int = 0) -> str:
        method = getattr(self, f"_{e.kind.replace(' ', '_')}", None)
        if method is None and e.kind not in self.SIGNS:
            raise QuestionError(f"{self.LANGUAGE} has no text for {e.kind}", "add it to its target")
        text = method(e) if method else self._joined(e)
        return f"({text})" if self.level_of(e) < level else text

    def real(self, e: Element, level: int = 0) -> str:
        """A floating-point expression."""
        raise NotImplementedError

    # -- operations -----------------------------------------------------------

    def _joined(self, e: Element) -> str:
        plain = is_whole(e) or e.kind in ("and", "or")
        return self.joined(e, self.SIGNS[e.kind], self.text if plain else self.real)

    def joined(self, e: Element, sign: str, printed: Callable[[Element, int], str]) -> str:
        """Both arguments of an operation: equal precedence is left-associative, and conditions
        beside others stand in parentheses.
        """
        own, least = self.level_of(e), self.LEVELS["add"]
        left, right = e.args
        return f"{printed(left, max(own, least))} {sign} {printed(right, max(own + 1, least))}"

    def level_of(self, e: Element) -> int:
        """The precedence of an element's text."""
        if e.kind == "power":
            exponent = e.args[1]
            inverse = exponent.kind == "number" and exponent.number < 0
            known = inverse and self.POWERS.get(abs(exponent.number)) is not None
            return self.LEVELS["divide"] if known else ALONE
        if e.kind == "number" and is_whole(e) and e.number < 0:
            return self.LEVELS["negate"]
        return self.LEVELS.get(e.kind, ALONE)

    def _negate(self, e: Element) -> str:
        (negated,), printed = e.args, self.text if is_whole(e) else self.real
        if negated.kind == "negate":
            return printed(negated.args[0], self.LEVELS["negate"])
        return f"-{printed(negated, ALONE)}"

    def _compare(self, e: Element) -> str:
        return self.joined(e, e.name, self.text if all(map(is_whole, e.args)) else self.real)

    def _power(self, e: Element) -> str:
        base, exponent = e.args
        plain = exponent.kind == "number"
        root = self.POWERS.get(abs(exponent.number)) if plain else None
        if root is None:
            return f"{self.FUNCTIONS['power']}({self.real(base)}, {self.real(exponent)})"
        if exponent.number > 0:
            return f"{root}({self.real(base)})"
        level = self.LEVELS["divide"] + 1
        return f"1 / {f'{root}({self.real(base)})' if root else self.real(base, level)}"

    def _call(self, e: Element) -> str:
        return f"{self.function(e.name)}({', '.join(map(self.real, e.args))})"

    def function(self, name: str) -> str:
        if name not in self.FUNCTIONS:
            raise QuestionError(
                f"the {self.LANGUAGE} target has no function for {name}",
                "add its name to codegen/targets/functions.py",
            )
        return self.FUNCTIONS[name]

    # -- names ----------------------------------------------------------------

    def size(self, axis: str) -> str:
        return self.names.size(axis)

    def length(self, axis: str, parts: Mapping[str, tuple[str, ...]]) -> str:
        """The length of an axis, which may be flattened from others."""
        return " * ".join(map(self.size, parts.get(axis, (axis,))))

    def named(self, e: Element, otherwise: str) -> str:
        """A free, descriptive name for a value; ``otherwise`` if it would be long."""
        name = self.said(e)
        short = name.isidentifier() and len(name) <= LONGEST
        return self.names.free(self.names.language.named(name) if short else otherwise)

    def entry_said(self, e: Element) -> str:
        """The name of an entry that has one; otherwise a text that is no name."""
        raise NotImplementedError

    def said(self, e: Element) -> str:
        """Words that describe an element; a text that is no name if there are none."""
        if e.kind == "number":
            return DIGITS.get(e.number, "?")
        if e.kind in ("entry", "label"):
            text = self.entry_said(e)
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
            return "_".join([e.name.lower(), *parts])
        return parts[0] if e.kind == "real" else "?"
