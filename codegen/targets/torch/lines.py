"""Breaks a line of code that is too long where a person would.

The terms of a sum stand below each other, and so do the arguments of the longest call in a product.
What is printed is one expression on several lines: nothing is decided about what it computes.
"""

from __future__ import annotations

from collections.abc import Iterator

LONGEST = 100  # of a line, as in the code of the project
STEP = "    "
OPENING, CLOSING = "([{", ")]}"
SUMS, PRODUCTS, CHOICES = (" + ", " - "), (" * ", " / ", " @ "), (" if ", " else ")


def broken(line: str, margin: str = STEP, longest: int = LONGEST) -> str:
    """``line`` on as many lines as it needs; the first has no margin yet."""
    if len(margin + line) <= longest:
        return line
    name, equals, expression = line.partition(" = ")
    if not equals or not name.isidentifier():
        name, equals, expression = "", "", line
    lines = _broken(name + equals, expression, "", margin, longest, bracketed=False)
    return "\n".join(lines).removeprefix(margin)


def _broken(
    before: str, e: str, after: str, margin: str, longest: int, bracketed: bool
) -> list[str]:
    """The lines of ``e`` with what stands before and after it; ``bracketed`` inside of brackets,
    where a line may end anywhere.
    """
    whole = margin + before + e + after
    if len(whole) <= longest:
        return [whole]
    for signs in (CHOICES, SUMS):
        parts = _split(e, signs)
        if len(parts) > 1:
            return _below(before, parts, after, margin, longest, bracketed)
    opening, closing = _longest_bracket(e)
    head, tail = margin + before + e[: opening + 1], margin + e[closing:] + after
    if closing > opening + 1 and max(len(head), len(tail)) <= longest:
        return [head, *_inside(e[opening + 1 : closing], margin + STEP, longest), tail]
    parts = _split(e, PRODUCTS)
    if len(parts) > 1:
        return _below(before, parts, after, margin, longest, bracketed)
    return [whole]


def _below(before, parts, after, margin, longest, bracketed) -> list[str]:
    """Parts below each other, in brackets of their own unless they are in some."""
    if bracketed:
        lines = _broken(before, parts[0], "", margin, longest, True)
        for i, part in enumerate(parts[1:], 2):
            end = after if i == len(parts) else ""
            sign, _, rest = part.partition(" ")
            lines += _broken(f"{sign} ", rest, end, margin, longest, True)
        return lines
    inner = margin + STEP
    return [f"{margin}{before}(", *_below("", parts, "", inner, longest, True), f"{margin}){after}"]


def _inside(e: str, margin: str, longest: int) -> list[str]:
    """What stands in brackets: one argument a line, or one expression."""
    arguments = _split(e, (", ",))
    if len(arguments) == 1:
        return _broken("", e, "", margin, longest, bracketed=True)
    lines = []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not name.isidentifier():
            name, equals, value = "", "", argument
        lines += _broken(name + equals, value, ",", margin, longest, bracketed=False)
    return lines


def _split(e: str, signs: tuple[str, ...]) -> list[str]:
    """``e`` at the signs outside of all brackets; what follows one begins with it, but for a comma
    and for the sign of a number.
    """
    parts, start = [], 0
    for i in _outside(e):
        sign = next((s for s in signs if e.startswith(s, i)), None)
        if sign is not None:
            parts.append(e[start:i])
            start = i + len(sign) if sign == ", " else i + 1
    return [*parts, e[start:]]


def _outside(e: str) -> Iterator[int]:
    """The places outside of brackets and quotes."""
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
    """Where the brackets open and close that have the most in them, of those in no others."""
    places = [i for i in _outside(e) if e[i] in OPENING + CLOSING]
    pairs = zip(places[::2], places[1::2], strict=True)
    return max(pairs, key=lambda pair: pair[1] - pair[0], default=(0, 0))
