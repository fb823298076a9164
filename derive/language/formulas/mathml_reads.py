"""Entries read at an index, as MathML, with the index below; and functions of a matrix."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from derive.language.formulas.mathml_elements import (
    applied,
    brackets,
    leaf,
    listed,
    operator,
    row,
    subscript,
)
from derive.language.nodes import MatrixNode, Position
from derive.language.reading_at import At
from derive.language.symbols import Tensor


class ReadAt:
    """The printing methods of `At`, of positions and of functions of a matrix."""

    def _print(self, e) -> Element:
        raise NotImplementedError

    def _print_Position(self, e: Position) -> Element:
        return subscript(leaf("mi", "index", mathvariant="normal"), self._print(e.axis))

    def _print_At(self, e: At) -> Element:
        place = [self._print(e.axis), operator("="), self._print(e.index)]
        if e.fill != 0:
            place += [leaf("mtext", ", else\u00a0"), self._print(e.fill)]
        operand = self._print(e.operand)
        operand = operand if isinstance(e.operand, Tensor) else brackets(operand)
        return subscript(operand, row(*place))

    def _print_OfMatrix(self, e: MatrixNode) -> Element:
        return applied(e.said, map(self._print, e.operands), listed(map(self._print, e.axes)))
