"""Divides a pass into kernels of tiles, and lines on whole arrays between them.

A value along both axes of the tiles is never stored: it is computed in each tile. A sum of it over
one axis belongs to the kernel whose programs own tiles of the other one, so a pass has at most two
kernels. Everything else is as small as an argument, and is computed before or behind them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from codegen.chunking import Chunked
from codegen.chunking.nodes import LARGEST, SUM, ChunkNode
from codegen.chunking.passes import Pass, Passes
from codegen.program import NUMBERS
from codegen.program.arrays import Arrange, Contract, Pick, Reduce
from codegen.program.parts import values_in, with_replaced
from codegen.program.shards import Exchange, OwnLargest
from codegen.program.steps import Assign, Step
from codegen.program.values import Load, Value
from codegen.tiles.bounds import bounds_of
from codegen.tiles.records import Piece, Stored, TileKernel, TileSum, WholeLine
from codegen.tiles.rows import within_rows
from codegen.tiles.whole import whole
from derive.language.errors import QuestionError
from derive.language.notation.layout import Dim, Layout

REMEDY = "leave --target triton out: torch code computes in chunks"


def axes_of(dims: Iterable[Dim]) -> tuple[str, ...]:
    return tuple(d.axis.name for d in dims if not d.one)


class Dividing:
    """The pieces of some passes, in order; ``layouts`` are the dimensions of what has a name."""

    def __init__(self, chunked: Chunked, passes: Passes):
        self.name, self.passes, self.nodes = passes.writer.program.name, passes, passes.nodes
        function = chunked.function
        self.loop = passes.axis
        self.numbers = {p.name for p in function.parameters if p.role in NUMBERS}
        self.arguments = {p.name for p in function.parameters if p.role not in NUMBERS}
        self.layouts: dict[str, Layout] = {p.name: p.layout for p in function.parameters}
        for node in self.nodes.values():
            self.layouts[node.name] = self._dims(node)
        known = self._known_dims()
        self.layouts |= {name: dims for name, dims in known.items() if name not in self.layouts}
        self.kept = {*passes.results, *chunked.kept}
        self.of: dict[str, str] = {}  # the nodes of names that are new here
        self.own = self._own_axis()
        outputs = {axis for up in chunked.program.upstreams for axis in axes_of(up.layout)}
        self.long = () if outputs & {*self._features} else self._features
        self.found: list[Piece] = []
        self.done: set[str] = set()

    def pieces(self) -> tuple[Piece, ...]:
        for one in self.passes.passes:
            self._lines(one.before)
            if one.body or one.sums or one.written:
                self._divided(one)
        self._lines(self.passes.after)
        return within_rows(self.found, self.layouts, self.kept)

    # -- axes --------------------------------------------------------------------------

    def _dims(self, node: ChunkNode) -> Layout:
        if node.is_accumulated:
            return node.dims
        first = next((s for s in node.steps if isinstance(s, Assign)), None)
        return first.value.dims if first else node.dims

    def _known_dims(self) -> dict[str, Layout]:
        """Those of values that the forward kept: as they are read."""
        steps = [step for node in self.nodes.values() for step in node.steps]
        values = (v for step in steps for v in _values(step))
        return {v.name: v.dims for v in values if isinstance(v, Load)}

    def _own_axis(self) -> str:
        """The other axis of the tiles: a product has it of the operand without the chunked axis,
        and a sum over the chunks leaves it.
        """
        sums = [n for one in self.passes.passes for n in one.sums]
        left = {axis for n in sums for axis in axes_of(n.dims)}
        for node in dict.fromkeys(self.nodes.values()):
            for value in (v for step in node.steps for v in _values(step)):
                axes = axes_of(value.dims)
                if not isinstance(value, Contract) or self.loop not in axes:
                    continue
                other = value.right if self.loop in axes_of(value.left.dims) else value.left
                mine = value.left if other is value.right else value.right
                apart = [a for a in axes_of(other.dims) if a in axes and a in left]
                apart = [a for a in apart if a not in axes_of(mine.dims)]
                if apart and self.loop not in axes_of(other.dims):
                    return apart[-1]
        raise QuestionError(
            f"{self.name} has no tiles: no sum over {self.loop} follows from a matrix product",
            REMEDY,
        )

    @property
    def _features(self) -> tuple[str, ...]:
        """The axes that products of tiles have beside those of the tiles: as many entries as a head
        has, where an output has them too, and any number otherwise.
        """
        found: dict[str, None] = {}
        for node in dict.fromkeys(self.nodes.values()):
            for value in (v for step in node.steps for v in _values(step)):
                if isinstance(value, Contract) and self.has_tile(value):
                    both = (*axes_of(value.left.dims), *axes_of(value.right.dims))
                    found |= dict.fromkeys(a for a in both if not self._is_outside(a))
        return tuple(found)

    def is_tile(self, dims: Iterable[Dim]) -> bool:
        return {self.own, self.loop} <= {*axes_of(dims)}

    def has_tile(self, value: Value) -> bool:
        return any(self.is_tile(v.dims) for v in (value, *values_in(value)))

    # -- lines -------------------------------------------------------------------------

    def fresh(self, name: str, of: str, dims: Layout) -> str:
        name = self.passes.writer.fresh(name)
        self.of[name], self.layouts[name] = of, dims
        return name

    def _lines(self, nodes: Sequence[ChunkNode]) -> None:
        for node in nodes:
            if node.name not in self.done:
                self.done.add(node.name)
                self.found += [WholeLine(node.name, whole(s, self.layouts)) for s in node.steps]

    def _small(self, node: ChunkNode) -> list[WholeLine]:
        """A node without tiles, of all entries of the axis: what is accumulated is at hand."""
        if node.name in self.done:
            return []
        self.done.add(node.name)
        found = []
        for step in node.steps:
            if isinstance(step, Exchange):
                (sent,) = step.sent
                if step.kind not in (SUM, LARGEST):
                    raise self.refused(node.name)
                step = Assign(sent.name, sent.value)
            found.append(WholeLine(node.name, whole(step, self.layouts)))
        return found

    def refused(self, name: str, why: str = "") -> QuestionError:
        why = why or f"{name} is no sum of them, and meets several"
        return QuestionError(
            f"{self.name} cannot be computed in tiles of {self.own} x {self.loop}: {why}", REMEDY
        )

    # -- a pass ------------------------------------------------------------------------

    def _divided(self, one: Pass) -> None:
        """Which value is in which kernel, before it, or behind it."""
        before: list[WholeLine] = []
        behind: list[WholeLine] = []
        tiles: list[Step | TileSum] = []  # in order, with the sums over the loop
        across: list[TileSum] = []  # the sums over the axis owned
        late: set[str] = set()
        written: list[Stored] = []
        again = {n.name for n in one.again}
        for node in self._in_order(one):
            reads = {*node.reads} - {node.name}
            values = [v for step in node.steps for v in _roots(step)]
            if node.name in again:
                tiles += [whole(s, self.layouts) for s in node.steps]
            elif reads & late:
                if any(self.has_tile(v) for v in values):
                    if self.is_tile(self._dims(node)) or node.is_accumulated:
                        raise self.refused(node.name, f"{node.name} reads a sum over all tiles")
                    self._crossing(node, tiles, across, before, behind, late)
                else:
                    behind += self._small(node)
                late |= {node.name, *node.writes}
            elif not any(self.has_tile(v) for v in values) and not self.is_tile(self._dims(node)):
                before += self._small(node)
            elif node.is_accumulated:
                tiles += self._accumulated(node, before)
                late |= set() if self._runs(node, one) else {node.name}
            elif self.is_tile(self._dims(node)):
                tiles += self._tile(node, one, before, written)
                late |= {n.name for n in written if n.more}
            else:
                self._crossing(node, tiles, across, before, behind)
                late |= {node.name, *node.writes}
        self.found += before
        self._kernels(tiles, across, written)
        self.found += behind
        self.done |= {each.name for each in (*tiles, *across) if isinstance(each, TileSum)}

    def _runs(self, node: ChunkNode, one: Pass) -> bool:
        return node.kind == LARGEST and any(n.online == node.name for n in one.sums)

    def _in_order(self, one: Pass) -> Iterator[ChunkNode]:
        """Dependencies first, as near to the order of the lines as can be."""
        waiting = [*one.body, *one.again, *one.sums]
        inside = {id(n) for n in waiting}
        names: set[str] = set()
        while waiting:
            ready = next(
                n
                for n in waiting
                if all(
                    r in names or r == n.name or id(self.nodes[r]) not in inside
                    for r in n.reads
                    if r in self.nodes
                )
            )
            yield ready
            names |= {ready.name, *ready.writes}
            waiting.remove(ready)

    def _apart(self, step: Step, before: list[WholeLine]) -> list[Step]:
        """A line of a tile, with its products as lines of their own."""
        found: list[Step] = []

        def product(value: Value) -> Value | None:
            if not isinstance(value, Contract):
                return None
            made = self._product(value, step.name, found, before)
            if isinstance(step, Assign) and value is step.value:
                return made
            name = self.fresh(f"{step.name}_product", step.name, value.dims)
            found.append(Assign(name, made))
            return Load(name, dims=value.dims)

        last = with_replaced(step, product)
        return [*found, last]

    def _product(
        self, value: Contract, of: str, tiles: list[Step], before: list[WholeLine]
    ) -> Contract:
        """A product of named values: tiles, or rows that are loaded."""
        sides = []
        for side in (value.left, value.right):
            inner = side
            while isinstance(inner, Arrange):
                inner = inner.operand
            if not isinstance(inner, Load):
                inner = self._named(inner)
            if not isinstance(inner, Load):
                name = self.fresh(f"{of}_factor", of, inner.dims)
                if self.is_tile(inner.dims):
                    tiles += self._apart(Assign(name, inner), before)
                else:
                    before.append(WholeLine(of, Assign(name, inner)))
                inner = Load(name, dims=inner.dims)
            if {*axes_of(inner.dims)} != {*axes_of(side.dims)}:
                raise self.refused(of, f"{of} renames an axis inside of a product")
            sides.append(inner)
        return replace(value, left=sides[0], right=sides[1])

    def _tile(
        self, node: ChunkNode, one: Pass, before: list[WholeLine], written: list[Stored]
    ) -> list[Step]:
        """The lines of a tile; a sum of whole tiles is stored for each place of the grid."""
        steps = [whole(step, self.layouts) for step in node.steps]
        value = getattr(steps[0], "value", None)
        if isinstance(value, Reduce) and self.is_tile(value.operand.dims):
            lost = {*axes_of(value.operand.dims)} - {*axes_of(value.dims)}
            if value.kind != SUM or len(steps) > 1:
                raise self.refused(node.name)
            terms = self.fresh(f"{node.name}_terms", node.name, value.operand.dims)
            steps = [Assign(terms, value.operand)]
            written.append(Stored(node.name, value.dims, tuple(sorted(lost)), terms))
        elif node.name in one.written:
            written.append(Stored(node.name, self.layouts[node.name], (), node.name))
        return [each for step in steps for each in self._apart(step, before)]

    def _named(self, value: Value) -> Value:
        """A value under the name of the node that has it."""
        for node in self.nodes.values():
            step = node.steps[0]
            if len(node.steps) == 1 and isinstance(step, Assign) and step.value == value:
                return Load(node.name, dims=value.dims)
        return value

    # -- sums --------------------------------------------------------------------------

    def _accumulated(self, node: ChunkNode, before: list[WholeLine]) -> list[Step | TileSum]:
        """A sum or maximum over the tiles of the loop, behind what it is made of."""
        (step,) = node.steps
        (sent,) = step.sent
        if node.kind not in (SUM, LARGEST):
            raise self.refused(node.name)
        value = whole(sent.value, self.layouts)
        made, tiles = self._sum(node.name, node.kind, value, self.own, before)
        return [*tiles, replace(made, online=node.online, degree=node.degree)]

    def _sum(
        self, name: str, kind: str, value: Value, own: str, before: list[WholeLine]
    ) -> tuple[TileSum, list[Step]]:
        tiles: list[Step] = []
        loop = self.loop if own == self.own else self.own
        self.layouts[name] = value.dims
        if isinstance(value, Contract):
            value = self._product(value, name, tiles, before)
            if loop not in value.summed:
                raise self.refused(name)
            inner = tuple(a for a in axes_of(value.dims) if not self._is_outside(a))
            if inner[1:] or own not in axes_of(value.dims):
                raise self.refused(name, f"{name} has more than one axis of its own")
            return TileSum(name, kind, value, (own, *inner)), tiles
        if not isinstance(value, (Reduce, OwnLargest, Pick)) or value.dims == value.operand.dims:
            raise self.refused(name)
        operand = value.operand
        if not self.is_tile(operand.dims):
            raise self.refused(name)
        if not isinstance(operand, Load):
            terms = self.fresh(f"{name}_terms", name, operand.dims)
            tiles += self._apart(Assign(terms, operand), before)
            operand = Load(terms, dims=operand.dims)
        return TileSum(name, kind, replace(value, operand=operand), (own,)), tiles

    def _is_outside(self, axis: str) -> bool:
        return axis in (self.own, self.loop) or axis in self._grid_axes

    def _crossing(
        self,
        node: ChunkNode,
        tiles: list[Step | TileSum],
        across: list[TileSum],
        before: list[WholeLine],
        behind: list[WholeLine],
        late: Collection[str] = (),
    ) -> None:
        """A value that is a sum over the owned axis, or made of one. No such sum may read what is
        ``late``.
        """

        def summed(value: Value) -> Value | None:
            if isinstance(value, Contract):
                crosses = any(self.is_tile(v.dims) for v in (value.left, value.right))
            else:
                crosses = isinstance(value, Reduce) and self.is_tile(value.operand.dims)
            if not crosses or (isinstance(value, Reduce) and value.kind != SUM):
                return None
            if _names([value]) & {*late}:
                raise self.refused(node.name, f"{node.name} reads a sum over all tiles")
            name = node.name
            if value is not root:
                name = self.fresh(f"{name}_sum", name, value.dims)
            made, more = self._sum(name, SUM, value, self.loop, before)
            tiles.extend(more)
            across.append(made)
            return Load(name, dims=value.dims)

        for step in node.steps:
            step = whole(step, self.layouts)
            root = getattr(step, "value", None)
            rest = with_replaced(step, summed)
            if any(self.has_tile(v) for v in _values(rest) if not isinstance(v, Load)):
                raise self.refused(node.name)
            if not (isinstance(rest, Assign) and rest.value == Load(rest.name, dims=root.dims)):
                behind.append(WholeLine(node.name, rest))
        self.done.add(node.name)

    # -- kernels -----------------------------------------------------------------------

    @property
    def _grid_axes(self) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for dims in self.layouts.values():
            if self.is_tile(dims):
                found |= dict.fromkeys(axes_of(dims))
        return tuple(a for a in found if a not in (self.own, self.loop))

    def _kernels(
        self, tiles: list[Step | TileSum], across: list[TileSum], written: list[Stored]
    ) -> None:
        sums = [each for each in tiles if isinstance(each, TileSum)]
        steps = [each for each in tiles if not isinstance(each, TileSum)]
        if sums or (written and not across):
            self.found.append(self._kernel(tiles, written, self.own, self.loop))
            written = []
        if across:
            self.found.append(self._kernel([*steps, *across], written, self.loop, self.own))

    def _kernel(
        self, lines: list[Step | TileSum], written: list[Stored], own: str, loop: str
    ) -> TileKernel:
        variables = [each.of for each in written]
        wanted = {*variables}
        kept: list[Step | TileSum] = []
        for step in reversed(lines):
            if isinstance(step, TileSum) or step.name in wanted:
                kept.append(step)
                of = [step.value] if isinstance(step, TileSum) else values_in(step)
                wanted |= _names(of)
        body = kept[::-1]
        grid = self._grid_axes
        sums = [each for each in body if isinstance(each, TileSum)]
        stored = tuple(self._stored(each, own, grid) for each in sums)
        return TileKernel(
            own=own,
            loop=loop,
            grid=grid,
            before=(),
            body=tuple(body),
            after=(),
            stored=stored,
            written=tuple(written),
            bounds=bounds_of(body, variables, own, loop, self.numbers),
            long=self.long,
        )

    def _stored(self, each: TileSum, own: str, grid: Sequence[str]) -> Stored:
        """Of an axis that the sum has lost each program stores its part."""
        dims = self.layouts[each.name]
        value = each.value
        operands = (value.left, value.right) if isinstance(value, Contract) else (value.operand,)
        there = {axis for v in operands for axis in axes_of(v.dims)}
        lost = there - {*axes_of(dims)}
        if {*axes_of(dims)} & {*self.long} and (more := [a for a in grid if a in lost]):
            raise self.refused(each.name, f"{each.name} is a sum over {' and '.join(more)} as well")
        return Stored(each.name, dims, tuple(a for a in (*grid, own) if a in lost), each.name)


def _values(step: Step) -> Iterator[Value]:
    for value in _roots(step):
        yield value
        yield from values_in(value)


def _roots(step: Step) -> list[Value]:
    if isinstance(step, Exchange):
        return [sent.value for sent in step.sent if sent.value is not None]
    return [v for v in vars(step).values() if isinstance(v, Value)]


def _names(values: Iterable[Value]) -> set[str]:
    every = [v for value in values for v in (value, *values_in(value))]
    return {v.name for v in every if isinstance(v, Load)}
