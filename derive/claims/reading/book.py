"""The signs in which `show` prints a formula, rewritten as code.

A text without such a sign is left as it is: there ``max[C]`` is an index.
"""

# ruff: noqa: RUF001 (this file is about letters that only look like code)

from __future__ import annotations

import re

SIGNS = {
    **dict.fromkeys("−‐‑‒–—﹣－", "-"),
    **dict.fromkeys("·×⋅∗∙＊⊙∘", "*"),
    **dict.fromkeys("÷∕⁄", "/"),
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "∑": "Σ",
}
SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
OTHER_TEXT = r"#[^\n]*|'''.*?'''|\"\"\".*?\"\"\"|'[^'\n]*'|\"[^\"\n]*\""  # comments and strings
ONE_HOT = r"(?<![\w.)\]])1\[[^\[\]=!<>]*(?<!=)=(?!=)"
MARKS = f"[Σ√{''.join(SIGNS)}{SUPERSCRIPTS}]"
BOOK = re.compile(f"(?P<other>{OTHER_TEXT})|{MARKS}|{ONE_HOT}|, *else\\b", re.DOTALL)
MARKED = re.compile(r"(?<![\w.)\]])(Σ|max|argmax|kept|1)\[")
ROOT = re.compile(r"√(?=\w|\()")
CALLED = {"Σ": "Sum", "max": "Max", "argmax": "ArgMax"}
OPERAND = re.compile(r"\s*(\w+)")
ELSE = re.compile(r",\s*else\b")
OPENING, CLOSING = "([{", ")]}"


def as_code(text: str) -> str:
    """``Σ[C](x·1[labels = C])`` as ``Sum(x*OneHot(labels, C), C)``."""
    if not any(found["other"] is None for found in BOOK.finditer(text)):
        return text
    signs = rf"({OTHER_TEXT})|([{''.join(SIGNS)}])|([{SUPERSCRIPTS}]+)"
    text = re.sub(signs, _plain, text, flags=re.DOTALL)
    while found := [*ROOT.finditer(text)]:
        text = _rooted(text, found[-1].start())
    done = len(text)
    while found := [*MARKED.finditer(text, 0, done)]:
        done = found[-1].start()
        text = _called(text, found[-1])
    while found := [*ELSE.finditer(text)]:
        again = _chosen(text, found[-1])
        if again == text:
            break
        text = again
    return text


def _plain(found: re.Match) -> str:
    if found[2]:
        return SIGNS[found[2]]
    if found[3]:
        return "**" + "".join(str(SUPERSCRIPTS.index(digit)) for digit in found[3])
    return found[0]


def _end(text: str, start: int) -> int:
    """The position of the bracket that closes the one at ``start``; -1 if none does."""
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] in OPENING) - (text[place] in CLOSING)
        if not depth:
            return place
    return -1


def _operand(text: str, start: int) -> tuple[str, int] | None:
    """The operand in brackets, or the name, at ``start``, and where it ends."""
    if text[start : start + 1] == "(":
        end = _end(text, start)
        return None if end < 0 else (text[start + 1 : end], end + 1)
    found = OPERAND.match(text, start)
    return found and (found[1], found.end())


def _rooted(text: str, start: int) -> str:
    found = _operand(text, start + 1)
    if found is None:
        return text[:start] + "sqrt" + text[start + 1 :]
    return f"{text[:start]}sqrt({found[0]}){text[found[1] :]}"


def _called(text: str, found: re.Match) -> str:
    """The text with the last of its marked brackets as a call."""
    end = _end(text, found.end() - 1)
    inside, before = text[found.end() : end], text[: found.start()]
    if end < 0:
        return text
    if found[1] == "kept":
        return f"{before}Kept({inside}){text[end + 1 :]}"
    if found[1] == "1":
        left, equal, right = inside.partition("=")
        pair = f"{left.strip()}, {right.strip()}"
        return f"{before}OneHot({pair}){text[end + 1 :]}" if equal else text
    operand = _operand(text, end + 1)
    if operand is None:
        return text
    return f"{before}{CALLED[found[1]]}({operand[0]}, {inside}){text[operand[1] :]}"


def _chosen(text: str, found: re.Match) -> str:
    """``(a if x > 0, else b)`` as a `Piecewise`."""
    depth, start = 1, found.start()
    while depth and start:
        start -= 1
        depth += (text[start] in CLOSING) - (text[start] in OPENING)
    end = _end(text, start)
    if depth or end < 0:
        return text
    cases = [case.partition(" if ") for case in _split(text[start + 1 : found.start()])]
    if not all(condition for _, _, condition in cases):
        return text
    pairs = [f"({value.strip()}, {_compared(c.strip())})" for value, _, c in cases]
    last = text[found.end() : end].strip()
    return f"{text[:start]}Piecewise({', '.join(pairs)}, ({last}, True)){text[end + 1 :]}"


def _compared(condition: str) -> str:
    return re.sub(r"(?<![=!<>])=(?!=)", "==", condition)


def _split(text: str) -> list[str]:
    """The parts between commas outside brackets."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in OPENING) - (sign in CLOSING)
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return parts
