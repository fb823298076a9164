"""The words in which array nodes define their entries.

``entry(by, at)`` of a node is its entry at the places ``at``, as the reader ``by`` computes sums,
largest entries and comparisons of places. Finite readers (``finite.py``) have a number for each
place and write everything out: in SymPy scalars and in the numbers of an arithmetic. The reader of
``proof/proving/every_size.py`` has a symbol, so that a formula holds for every size.

A word is added where a node cannot be said in those that there are; then both kinds of reader
implement it. The last four take the node itself, as no other node needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from sympy import Expr

from derive.language.symbols import Axis

Places = Mapping[Axis, Any]  # a number, or symbols, for each axis
Row = Callable[[Places], Any]  # the entry at further places


class EntryReader(Protocol):
    """The words in which a node says its entries."""

    def at(self, e: Expr, places: Places):
        """An entry of an operand."""

    def total(self, axes: Iterable[Axis], row: Row):
        """The sum of all entries along ``axes``."""

    def times(self, one, other):
        """The product of two entries."""

    def largest(self, axis: Axis, row: Row, places: Places):
        """The largest entry along an axis."""

    def is_largest(self, axis: Axis, row: Row, places: Places, place):
        """1 where the first largest entry along the axis is that at ``place``, else 0."""

    def largest_so_far(self, axis: Axis, row: Row, places: Places):
        """The largest entry up to the place along the axis."""

    def is_new_largest(self, axis: Axis, row: Row, places: Places):
        """1 where the entry at the place is the largest up to there, the last of equals, else 0."""

    def position(self, axis: Axis, places: Places):
        """The place along an axis as a number, from 0."""

    def is_same(self, one, other):
        """1 where two places are the same, else 0."""

    def is_label(self, label: Expr, axis: Axis, places: Places):
        """1 where a label is the place along the axis, else 0."""

    def reshaped(self, e: Expr, places: Places) -> Places:
        """The places along the axes that a reshaping binds, from those that it brings."""

    def read(self, e: Expr, places: Places):
        """The entry at an index that is affine in places; the fill where that is out of range."""

    def recurrence(self, e: Expr, places: Places):
        """h[t] = a[t]*h[t-1] + b[t], or its transpose; if exclusive the state before each place."""

    def of_matrix(self, e: Expr, places: Places):
        """An entry of a function of a matrix."""
