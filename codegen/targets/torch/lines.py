"""Breaks a long line of code, or of a formula, where a person would.

The terms of a sum stand below each other, and so do the arguments of the longest call in a product;
plain names among them share a line. The result is the same expression on several lines: nothing is
decided about its value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

LONGEST = 100  # of a line, as in the code of the project
STEP = "    "
OPENING, CLOSING = "([{", ")]}"
SUMS, PRODUCTS, CHOICES = (" + ", " - "), (" * ", " / ", " @ "), (" if ", " else ")
TIGHT = ("*", "/")  # in a formula products have no spaces
ASSIGNED = re.compile(r"( [-+*/]?= )")
PLAIN = re.compile(r"(\w+=)?\*{0,2}-?[\w.]+")  # an argument that is a name or a number


def broken(line: str, margin: str = STEP, longest: int = LONGEST) -> str:
    """``line`` on as many lines as it needs; the first has no margin yet."""
    if len(margin + line) <= longest:
        return line
    name, equals, expression = (*ASSIGNED.split(line, maxsplit=1), "", "")[:3]
    names = name.split(", ")
    if not equals or not all(n.lstrip("*").isidentifier() for n in names):
        names, name, equals, expression = [], "", "", line
    lines = _broken(name + equals, expression, "", margin, longest, bracketed=False)
    if len(names) > 1 and max(map(len, lines)) > longest:
        lines = [f"{margin}(", *filled(names, margin + STEP, longest)]
        lines += _broken(") = ", expression, "", margin, longest, bracketed=False)
    return "\n".join(lines).removeprefix(margin)


def filled(items: Sequence[str], margin: str, longest: int = LONGEST) -> list[str]:
    """The items, each followed by a comma, as many on a line as fit."""
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + len(item) + 2 <= longest:
            lines[-1] += f" {item},"
        else:
            lines.append(f"{margin}{item},")
    return lines


def _broken(
    before: str, e: str, after: str, margin: str, longest: int, bracketed: bool
) -> list[str]:
    """The lines of ``e`` with the text before and after it; ``bracketed`` inside of brackets, where
    a line may end anywhere.
    """
    whole = margin + before + e + after
    if len(whole) <= longest:
        return [whole]
    for signs in (CHOICES, SUMS):
        parts = _split(e, signs)
        if len(parts) > 1:
            return _below(before, parts, after, margin, longest, bracketed)
    factors, (opening, closing) = _split(e, TIGHT), _longest_bracket(e)
    room = longest - len(margin + STEP + before + after)
    if len(factors) > 1 and (closing - opening < len(e) / 2 or room < opening):
        return _below(before, _packed(factors, room), after, margin, longest, bracketed)
    head, tail = margin + before + e[: opening + 1], margin + e[closing:] + after
    if closing > opening + 1 and max(len(head), len(tail)) <= longest:
        return [head, *_inside(e[opening + 1 : closing], margin + STEP, longest), tail]
    parts = _split(e, PRODUCTS)
    if len(parts) > 1:
        return _below(before, parts, after, margin, longest, bracketed)
    return [whole]


def _below(before, parts, after, margin, longest, bracketed) -> list[str]:
    """Parts on lines below each other, in new brackets unless already inside some."""
    if bracketed:
        lines = _broken(before, parts[0], "", margin, longest, True)
        for i, part in enumerate(parts[1:], 2):
            end = after if i == len(parts) else ""
            sign, space, rest = part.partition(" ")
            tight = not space or (part.startswith(TIGHT) and len(sign) > 1)
            first, rest = (part[0], part[1:]) if tight else (f"{sign} ", rest)
            lines += _broken(first, rest, end, margin, longest, True)
        return lines
    inner = margin + STEP
    return [f"{margin}{before}(", *_below("", parts, "", inner, longest, True), f"{margin}){after}"]


def _packed(factors: Sequence[str], room: int) -> list[str]:
    """Factors joined again, as many as there is room for."""
    lines = [factors[0]]
    for factor in factors[1:]:
        if len(lines[-1]) + len(factor) <= room:
            lines[-1] += factor
        else:
            lines.append(factor)
    return lines


def _inside(e: str, margin: str, longest: int) -> list[str]:
    """Break the inside of brackets: the arguments, or one expression."""
    arguments = _split(e, (", ",))
    if len(arguments) == 1:
        return _broken("", e, "", margin, longest, bracketed=True)
    lines = []
    for plain, several in groupby(arguments, lambda a: PLAIN.fullmatch(a) is not None):
        if plain:
            lines += filled(list(several), margin, longest)
            continue
        for argument in several:
            name, equals, value = argument.partition("=")
            if not name.isidentifier():
                name, equals, value = "", "", argument
            lines += _broken(name + equals, value, ",", margin, longest, bracketed=True)
    return lines


def _split(e: str, signs: tuple[str, ...]) -> list[str]:
    """``e`` split at the signs outside of all brackets; each part begins with its sign, except for
    a comma and for the sign of a number.
    """
    parts, start = [], 0
    for i in _outside(e):
        sign = next((s for s in signs if e.startswith(s, i)), None)
        if sign in TIGHT and (not i or e[i - 1] == " " or "**" in e[i - 1 : i + 2]):
            continue  # in code, a power, or the star of an argument
        if sign is not None:
            parts.append(e[start:i])
            start = i if sign in TIGHT else i + len(sign) if sign == ", " else i + 1
    return [*parts, e[start:]]


def _outside(e: str) -> Iterator[int]:
    """Positions outside of brackets and quotes."""
    depth, quoted = 0, False
    for i, c in enumerate(e):
        if c == '"':
            quoted = not quoted
        if quoted:
            continue
        depth -= c in CLOSING
        if depth == 0:
            yield i
        depth += c in OPENING


def _longest_bracket(e: str) -> tuple[int, int]:
    """Positions of the outermost pair of brackets with the longest content."""
    places = [i for i in _outside(e) if e[i] in OPENING + CLOSING]
    pairs = zip(places[::2], places[1::2], strict=True)
    return max(pairs, key=lambda pair: pair[1] - pair[0], default=(0, 0))
