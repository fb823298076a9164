"""Memory of a text: names that share a tensor, and lines that write into it.

``a = b`` aliases, ``a += c`` changes both names, and a view changes with its tensor. A line for
which that cannot be followed is refused, with ``.clone()`` as the remedy.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from derive.claims.reading.broadcasting import placed
from derive.claims.reading.names import FORWARD, TextNames
from derive.claims.reading.operations.entries import same_shape
from derive.claims.reading.refusals import Misaligned, Mismatch, Refusal, printable
from derive.claims.reading.source import Source
from derive.claims.reading.unwritten import check_written
from derive.claims.reading.values import NUMBER, Space, TextValue
from derive.language.symbols import Axis, Tensor

Version = tuple[int, int]


@dataclass(eq=False)
class Cell:
    """A tensor in memory, which several names may share and lines write into.

    ``broken``: why its content could not be read; ``line``: the last write; ``loops``: those
    enclosing its creation.
    """

    serial: int
    value: Any
    node: ast.stmt
    broken: Misaligned | None = None
    loops: tuple[Axis, ...] = ()
    writes: int = 0

    @property
    def version(self) -> Version:
        return self.serial, self.writes


class Memory:
    """The cells that names are bound to; ``bound`` has the line that bound each name."""

    def __init__(self, source: Source, space: Space, names: TextNames):
        self.source, self.space, self.names = source, space, names
        self.cells: dict[str, Cell] = {}
        self.bound: dict[str, ast.stmt] = {}
        self.count = 0

    def new(self, value, node: ast.stmt, broken: Misaligned | None = None) -> Cell:
        self._check_written(value)
        self.count += 1
        return Cell(self.count, value, node, broken, tuple(self.space.looped))

    def misaligned(self, error: Mismatch) -> Misaligned:
        return Misaligned(error.problem, error.remedy, self.source.spot_of(error.node))

    def own_cell(self, target: ast.Name) -> Cell:
        """The tensor that a line may write into. Raises `Refusal` if the text did not create it."""
        own = self.names.ours(target.id)
        cell = self.cells.get(own)
        if cell is not None:
            return cell
        if own in self.names.upstreams and self.names.of_function:
            self.space.remark(f"writes into {target.id}, which the caller sees")
            value = self.names.value(target.id, self.space)
            self.cells[own] = self.new(replace(value, storage=None), target)
            return self.cells[own]
        if own in self.names.adjoints:
            raise Refusal(
                f"{target.id} is not defined yet",
                f"begin with {target.id} = ...",
                target,
            )
        if self.names.value(target.id, self.space) is not None:
            raise Refusal(
                f"{target.id} is a value of the forward, and this line writes into it",
                f"write into a copy: mine = {target.id}.clone()",
                target,
            )
        raise Refusal(f"there is no {printable(target.id)}", self.names.remedy(target.id), target)

    def write(
        self, cell: Cell, target: ast.AST, node: ast.stmt, change: Callable[[TextValue], TextValue]
    ) -> None:
        """Write ``change`` of its content into the tensor: all names that share it see it."""
        cell.node = node
        if cell.broken is None:
            self._check_writable(cell, target)
            self._changed(cell, target, change)
        cell.writes += 1

    def _changed(
        self, cell: Cell, target: ast.AST, change: Callable[[TextValue], TextValue]
    ) -> None:
        try:
            value = change(cell.value)
            if not value.by_name:
                same_shape(
                    self.space, cell.value, value, "an in-place write cannot change the shape"
                )
        except Mismatch as error:
            error.node = error.node or target
            cell.broken = self.misaligned(error)
            return
        self._check_written(value)
        held = {"kind": cell.value.kind, "whole": cell.value.whole}
        cell.value = replace(value, storage=None, **held)

    def _check_written(self, value) -> None:
        if self.space.unwritten and isinstance(value, TextValue) and not value.left:
            check_written(value.expression)

    def _check_writable(self, cell: Cell, target: ast.AST) -> None:
        if not isinstance(cell.value, TextValue):
            raise Refusal(
                "this is not a tensor, so it cannot be written into", "assign to it again", target
            )
        viewers = [
            name
            for name, other in self.cells.items()
            if isinstance(other.value, TextValue) and other.value.storage is cell
        ]
        if cell.value.storage is not None:
            what = "a value of the forward" if cell.value.storage == FORWARD else "another tensor"
            raise Refusal(f"this is a view of {what}", "make it a tensor with .clone()", target)
        if viewers:
            raise Refusal(
                f"{viewers[0]} is a view of this and would change with it",
                "make it a tensor of its own with .clone()",
                target,
            )


def stored_in(cell: Cell):
    """The content of a cell, marked with the tensor it is a view of."""
    x = cell.value
    if not isinstance(x, TextValue) or x.kind == NUMBER:
        return x
    return replace(x, storage=x.storage or cell, left=())


def as_if_right(names: TextNames, space: Space, of: Tensor, value: TextValue) -> TextValue:
    """The gradient of ``of`` in the layout of the text's own value, if that value has all its axes
    in compatible places.
    """
    true = names.gradient(of, space)
    own = [space.size(axis) for axis in value.axes]
    places = zip(reversed(value.dims), reversed(names.dims(of)), strict=False)
    sizes = [[axis and space.size(axis) for axis in pair] for pair in places]
    fits = value.by_name or all(one == other for one, other in sizes)
    if fits and own == [space.size(axis) for axis in true.axes]:
        axes = iter(value.axes)
        dims = tuple(None if axis is None else next(axes) for axis in value.dims)
        met = placed(space, true.expression, dict(zip(true.axes, value.axes, strict=True)))
        return TextValue(met, dims, by_name=value.by_name, storage=FORWARD)
    return true
