"""Elements of formulas in MathML, closed and escaped."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element, tostring

DOT, INVISIBLE_TIMES, APPLY, MINUS, ARROW = "\u22c5", "\u2062", "\u2061", "\u2212", "\u2192"
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
    """A browser slants a name of one letter; the style sheet does so to longer ones."""
    return leaf("mi", text) if len(text) == 1 else leaf("mi", text, **{"class": "name"})


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
    math = with_children(Element("math", {"display": display}), children)
    return tostring(math, encoding="unicode", short_empty_elements=False)
