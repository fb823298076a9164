"""The table of entries: what one entry of a value is, by those of its parts.

A rule receives the flattening of the function, the value, and the indices of the value's dimensions
by their axes; it returns an element, and changes nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from codegen.program.values import Value
from codegen.schedule.elements import Axes, Element
from derive.language.errors import QuestionError
from derive.language.notation.layout import Layout

Indices = Mapping[str, tuple[Element, ...]]


class Entries(Protocol):
    """The part of the flattening that a rule may use: other entries, parts of flattened axes."""

    layouts: dict[str, Layout]

    def entry(self, value: Value, at: Indices) -> Element: ...

    def load(self, name: str, dims: Layout, at: Indices) -> Element: ...

    def place(self, value: Value, at: Indices, along: str) -> Element: ...

    def unflattened(self, axis: str) -> Axes: ...

    def unpacked(self, axis: str, place: Element) -> tuple[Element, ...]: ...

    def reduced_apart(self, value: Any) -> str: ...

    def unknown(self, node: object) -> QuestionError: ...


Rule = Callable[[Entries, Any, Indices], Element]
rules: dict[type[Value], Rule] = {}


def rule(*kinds: type[Value]) -> Callable[[Rule], Rule]:
    """Put a function into the table."""

    def kept(function: Rule) -> Rule:
        rules.update(dict.fromkeys(kinds, function))
        return function

    return kept
