"""Nodes of a function: loops over named axes, and operations on whole arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from codegen.program.values import Value
from codegen.schedule.elements import Axes, Element, index
from derive.language.notation.layout import Layout


@dataclass(frozen=True)
class Node:
    """``value`` at every index of ``axes``; with a ``kind`` ('sum', 'max') also reduced over
    ``along``.
    """

    name: str
    axes: Axes
    value: Element
    kind: str = ""
    along: Axes = ()

    @property
    def space(self) -> Axes:
        """The axes that its loops run over."""
        return (*self.axes, *self.along)

    @property
    def reads(self) -> frozenset[str]:
        return frozenset(e.name for e in self.value.entries)


def own(node: Node) -> Element:
    """The value of a node at its own place."""
    return Element("entry", tuple(map(index, node.axes)), node.name)


@dataclass(frozen=True)
class LibraryNode:
    """``value`` as an operation on whole arrays, which a library does: a matrix product, an
    index-add, an argmax. Its result is ``name``, and it ``reads`` these arrays; its ``entries`` are
    as those of an `Array`.
    """

    name: str
    axes: Axes
    value: Value
    reads: frozenset[str]
    entries: str = "exact"


@dataclass(frozen=True)
class Array:
    """An array in memory, along ``axes``. Its entries are 'real', in the dtype of the inputs;
    'exact', in that of the computation, which is wider than inputs of 16 bits; or 'whole',
    integers.
    """

    name: str
    axes: Axes
    layout: Layout
    entries: str = "real"


@dataclass(frozen=True)
class Flat:
    """The nodes of a function in an order in which they can be computed. ``results`` maps each
    result to the name of a node, an array, or a number.

    ``arrays`` are the arguments; ``picks`` are (label, axis) of values picked by a label; ``parts``
    are those of flattened axes; ``rounded`` are the outputs and gradients, which have the dtype of
    the inputs; ``joined`` are axes that are several as one; ``ignored`` are labels by which entries
    are masked, each with the argument that masks.
    """

    arrays: tuple[Array, ...]
    scalars: tuple[str, ...]
    nodes: tuple[Node | LibraryNode, ...]
    layouts: Mapping[str, Layout]
    results: tuple[tuple[str, str], ...]
    picks: tuple[tuple[str, str], ...]
    parts: Mapping[str, tuple[str, ...]]
    rounded: frozenset[str] = frozenset()
    joined: Mapping[str, Axes] = field(default_factory=dict)
    ignored: Mapping[str, str] = field(default_factory=dict)
