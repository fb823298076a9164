"""Elements of formulas in MathML, closed and escaped."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from xml.etree.ElementTree import Element, tostring

from derive.language.formulas.latex_names import GREEK, symbol_of

DOT, INVISIBLE_TIMES, APPLY, MINUS, ARROW = "\u22c5", "\u2062", "\u2061", "\u2212", "\u2192"
HAT = "\N{COMBINING CIRCUMFLEX ACCENT}"
LONG, WIDE = 36, 24  # characters of a formula, and of a part of a fraction, from which it is broken
BROKEN = "2.2em"  # the height of brackets between which a line may be broken
INFIX = frozenset(f"+/{MINUS}{DOT}{INVISIBLE_TIMES}=")
TALL = frozenset({"mfrac", "munder", "mtable", "mroot", "msqrt"})


def leaf(tag: str, text: str, **attributes: str) -> Element:
    element = Element(tag, attributes)
    element.text = text
    return element


def with_children(element: Element, children: Iterable[Element]) -> Element:
    element.extend(children)
    return element


def row(*children: Element) -> Element:
    return children[0] if len(children) == 1 else with_children(Element("mrow"), children)


def operator(sign: str, **attributes: str) -> Element:
    return leaf("mo", sign, **attributes)


def identifier(text: str) -> Element:
    """A name as a symbol: τ for ``tau``, ``dq`` with the subscript ``gain`` for ``dq_gain``.

    A browser slants a name of one letter; the style sheet does so to longer ones.
    """
    sign, below = sign_of(text)
    return subscript(_name(sign), _name(below)) if below else _name(sign)


def sign_of(name: str) -> tuple[str, str]:
    """The sign that a name is written as, and its subscript, which may be empty."""
    for d in ("", "d") if name.startswith("d") else ("",):
        letter, hat, below = symbol_of(name.removeprefix(d))
        if letter:
            sign = f"{d}{GREEK_SIGNS.get(letter, letter)}{HAT * hat}"
            return unicodedata.normalize("NFC", sign), GREEK_SIGNS.get(below, below)
    return name, ""


def _name(text: str) -> Element:
    return leaf("mi", text) if len(text) == 1 else leaf("mi", text, **{"class": "name"})


def _greek(name: str) -> str:
    size = "SMALL" if name.islower() else "CAPITAL"
    letter = {"LAMBDA": "LAMDA"}.get(name.upper(), name.upper())
    return unicodedata.lookup(f"GREEK {size} LETTER {letter}")


# Another sign for epsilon, as in LaTeX: a forward may have that name and eps.
GREEK_SIGNS = {name: _greek(name) for name in GREEK if name != "eps"}
GREEK_SIGNS |= {"eps": "\u03b5", "epsilon": "\u03f5"}


def brackets(inside: Element, left: str = "(", right: str = ")") -> Element:
    """Brackets grow where there is something to grow with: Chromium leaves gaps beside others."""
    tall = any(element.tag in TALL for element in inside.iter())
    grows = {} if tall else {"stretchy": "false"}
    return row(operator(left, **grows), inside, operator(right, **grows))


def listed(elements: Iterable[Element], sign: str = ",") -> Element:
    parts: list[Element] = []
    for element in elements:
        parts += [operator(sign), element] if parts else [element]
    return row(*parts)


def table(rows: Iterable[Iterable[Element]], **attributes: str) -> Element:
    def cells(row):
        return [with_children(Element("mtd"), [element]) for element in row]

    return with_children(
        Element("mtable", attributes), [with_children(Element("mtr"), cells(r)) for r in rows]
    )


def subscript(base: Element, below: Element) -> Element:
    return with_children(Element("msub"), [base, below])


def fraction(above: Element, below: Element) -> Element:
    return with_children(Element("mfrac"), [above, below])


def indicator(condition: Element) -> Element:
    """1 where the condition holds, else 0."""
    slanted = Element("mspace", {"width": "0.1em"})  # a capital leans into the bracket
    inside = row(condition, slanted)
    return row(leaf("mn", "1", **{"class": "indicator"}), brackets(inside, "[", "]"))


def applied(name: str, operands: Iterable[Element], under: Element | None = None) -> Element:
    """A function of operands, with the element ``under`` its name."""
    sign = leaf("mi", name, mathvariant="normal")
    sign = sign if under is None else subscript(sign, under)
    return row(sign, operator(APPLY), brackets(listed(operands)))


def closed(children: Iterable[Element], display: str = "block") -> str:
    parts = wrapping(children) if display == "block" else [*children]
    wraps = {"class": "wraps"} if len(parts) > 1 and display == "block" else {}
    math = with_children(Element("math", {"display": display, **wraps}), parts)
    return tostring(math, encoding="unicode", short_empty_elements=False)


def wrapping(children: Iterable[Element]) -> list[Element]:
    """The parts of a formula, each a row that begins with an operator, between which a browser may
    break the line; a single one where the formula is short.
    """
    whole = row(*children)
    if not _is_long(whole):
        return [whole]
    parts: list[list[Element]] = [[]]
    for element in _flat(whole):
        infix = element.tag == "mo" and element.text in INFIX and "form" not in element.attrib
        if infix and parts[-1]:
            parts.append([])
            element.set("form", "infix")  # at the beginning of a row it would be another
        parts[-1].append(element)
    return [with_children(Element("mrow"), part) for part in parts]


def _is_long(element: Element) -> bool:
    if element.tag == "mfrac":
        return any(sum(map(len, part.itertext())) > WIDE for part in element)
    return sum(map(len, element.itertext())) > LONG


def _flat(element: Element) -> Iterable[Element]:
    """The elements of a row, with those of every long row in it; a long fraction on one line."""
    _of_one_size(element)
    for child in element if element.tag == "mrow" else (element,):
        if child.tag == "mrow" and _is_long(child):
            yield from _flat(child)
        elif child.tag == "mfrac" and _is_long(child):
            above, below = child
            yield from _flat(brackets(above)) if above.tag == "mrow" else (above,)
            yield from (operator("/"), brackets(below) if below.tag == "mrow" else below)
        else:
            yield child


def _of_one_size(element: Element) -> None:
    """Give brackets that grow one size: on two lines each would grow with its own neighbours."""
    is_tall = element.tag == "mrow" and any(part.tag in TALL for part in element.iter())
    ends = [element[0], element[-1]] if is_tall else []
    if [end.text for end in ends if end.tag == "mo"] == ["(", ")"]:
        for bracket in ends:
            if "stretchy" not in bracket.attrib:
                bracket.attrib |= {"minsize": BROKEN, "maxsize": BROKEN}
