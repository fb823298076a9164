"""Which axes of a sweep are rows, which lie in a row, and which one the grid cuts.

Every array in a kernel has one dimension for the rows that a program computes at once, then one for
each axis inside of a row; what has no such axis is 1 long there. So broadcasting is the only rule.
A program that walks along a row has just that one: what has no other axis is a scalar.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from codegen.schedule.elements import Axes, Element, index, with_indices
from codegen.schedule.online import in_chunks
from codegen.schedule.ordering import ordered
from codegen.schedule.plan import Nest, Sweep
from codegen.targets.tables.names import short


@dataclass(frozen=True)
class Shape:
    """``tile`` is that of the ``inner`` axes which the grid cuts; ``looped`` says whether programs
    walk over rows, for sums that each has a part of; ``chunked`` whether they walk along a row.
    """

    rows: Axes
    inner: Axes
    tile: str
    looped: bool
    chunked: bool = False

    @property
    def several(self) -> bool:
        """Whether a program computes several rows at once."""
        return bool(self.rows) and not self.chunked

    @property
    def rank(self) -> int:
        return self.several + len(self.inner)

    def dim(self, axis: str) -> int:
        return 0 if axis in self.rows else self.several + self.inner.index(axis)

    def block(self, axis: str) -> str:
        """The name of how many entries along an inner axis are computed at once."""
        return "BLOCK" if len(self.inner) == 1 else f"BLOCK_{short(axis)}"


def shape_of(sweep: Sweep) -> Shape:
    nodes, rows = sweep.nodes, sweep.rows
    of = {node.name: node for node in nodes}
    sums = [of[name] for name in sweep.partial]
    inner = ordered({a for node in nodes for a in node.space} - {*rows}, nodes)
    reduced = {a for node in nodes if node not in sums for a in node.along}
    for e in (e for node in nodes for e in node.value.entries if e.name in of):
        if of[e.name].kind:  # read elsewhere than where it is computed
            reduced |= {a for a, i in zip(of[e.name].axes, e.args, strict=True) if i != index(a)}
    tile = inner[-1] if inner and inner[-1] not in reduced else ""
    moved = [a for a in inner if a not in reduced and a != tile]
    moved = [a for a in moved if not any(a in node.axes for node in sums)]
    rows = (*rows, *moved)
    looped = bool(sums) and not any({*node.axes} & {*rows} for node in sums)
    return Shape(rows, tuple(a for a in inner if a not in moved), tile, looped)


def walked(sweep: Sweep) -> Sweep | None:
    """The sweep as programs walk along its rows, which have one axis: what the grid cuts beside
    that are rows, too. None where rows have several, or none that has to be walked along.
    """
    shape = shape_of(sweep)
    if shape.tile:
        left = [node for node in sweep.nodes if node.name in {*sweep.stored, *sweep.partial}]
        if any(shape.tile not in node.space for node in left):
            return None  # several rows would leave it
        rows = (*(axis for axis in sweep.parallel if axis != shape.tile), shape.tile)
        sweep = replace(sweep, parallel=rows, tiles=False)
        shape = shape_of(sweep)
    return sweep if len(shape.inner) == 1 and not shape.tile else None


def parts_of(sweep: Sweep, shape: Shape) -> list[Sweep]:
    """A sweep over rows that are too long for registers: sums over the rows that have an entry for
    each entry of a row are one of their own, which the grid cuts along these.
    """
    of = {node.name: node for node in sweep.nodes}
    apart = [of[name] for name in sweep.partial if {*of[name].axes} & {*shape.inner}]
    if not apart:
        return [in_chunks(sweep)]
    needed: set[str] = set()

    def again(e: Element) -> Element | None:
        node = of.get(e.name) if e.kind == "entry" else None
        if node is None:
            return None
        if node.kind or node.name in sweep.stored or not node.axes:
            needed.add(node.name)
            return None
        return with_indices(node.value, dict(zip(node.axes, e.args, strict=True))).replaced(again)

    apart = [replace(node, value=node.value.replaced(again)) for node in apart]
    names = [node.name for node in apart]
    main = replace(
        sweep,
        nests=tuple(rest for nest in sweep.nests if (rest := _without(nest, names)).nodes),
        stored=tuple(
            name for name in of if name not in names and (name in sweep.stored or name in needed)
        ),
        partial=tuple(name for name in sweep.partial if name not in names),
    )
    nest = Nest(apart[0].axes, tuple(apart))
    columns = replace(sweep, nests=(nest,), stored=tuple(names), partial=tuple(names), kept=())
    return [in_chunks(main), columns] if main.nests else [columns]


def _without(nest: Nest, names: list[str]) -> Nest:
    return replace(nest, nodes=tuple(node for node in nest.nodes if node.name not in names))
