"""The graph of a forward as inline SVG: rows from the inputs down to the output.

In: a `TensorGraph`. Out: a `GraphDrawing`, boxes and paths with their places, which a template
prints. The layout is the usual one in four moves: a row for every tensor, points where a long edge
passes a row, an order within the rows with few crossings, and places that keep edges straight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from zlib import crc32

from derive.language.formulas.mathml_elements import sign_of
from derive.show.document import TensorGraph

CHARACTER, SMALL_CHARACTER = 7.9, 6.7  # widths in the monospaced fonts of the style sheet
# In the units of the page, at which its letters are as wide as `CHARACTER` says.
BOX_HEIGHT, ROW_GAP, COLUMN_GAP, MARGIN = 42.0, 46.0, 30.0, 12.0
ABOVE, BELOW, PADDING = 3, 13, 26  # lines from the middle of a box, and what is beside them
PASSING_WIDTH = 10.0  # of an edge that passes a row
BESIDE = 3.5  # forward and gradient run this far left and right of the middle
PORT_DISTANCE = 20.0  # between two paths that reach one box
SWEEPS = 12  # over the rows; each lets paths cross less

Point = tuple[float, float]
Row = list[str]


@dataclass(frozen=True)
class Box:
    """A tensor: ``x``, ``y`` is the middle of the box."""

    name: str
    shape: str
    role: str
    x: float
    y: float
    width: float
    height: float = BOX_HEIGHT

    @property
    def sign(self) -> tuple[str, str]:
        """The name as formulas write it, and its subscript."""
        return sign_of(self.name)

    @property
    def left(self) -> float:
        return round(self.x - self.width / 2, 1)

    @property
    def top(self) -> float:
        return round(self.y - self.height / 2, 1)

    @property
    def name_line(self) -> float:
        """The y coordinate of the name; the shape stands below it."""
        return round(self.y - ABOVE, 1)

    @property
    def shape_line(self) -> float:
        return round(self.y + BELOW, 1)


@dataclass(frozen=True)
class GraphDrawing:
    """A drawing for a template; paths are in the language of SVG's ``d``."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    forward: tuple[str, ...]
    backward: tuple[str, ...]
    description: str

    @property
    def key(self) -> int:
        """A key for the names of its parts, as several drawings may stand on one page."""
        return crc32(self.description.encode("utf-8", "replace"))


@dataclass(frozen=True)
class _Layers:
    """Rows of names; an edge is the chain of names it runs through, points included."""

    rows: list[Row]
    chains: dict[tuple[str, str], list[str]]

    def segments(self) -> list[tuple[str, str]]:
        return [pair for chain in self.chains.values() for pair in pairwise(chain)]


def drawing(graph: TensorGraph) -> GraphDrawing:
    """The graph with a place for everything."""
    layers = _layers(graph)
    _reorder(layers)
    widths = {n.name: _width(n.name, n.shape) for n in graph.nodes}
    places = _places(layers, widths)
    left = min(x - widths.get(name, PASSING_WIDTH) / 2 for name, x in places.items())
    places = {name: x - left + MARGIN for name, x in places.items()}
    middles = {name: _middle(i) for i, row in enumerate(layers.rows) for name in row}
    lines = {edge: _points(graph, layers, edge, places, middles, widths) for edge in layers.chains}
    right = max(x + widths.get(name, PASSING_WIDTH) / 2 for name, x in places.items())
    return GraphDrawing(
        width=round(right + MARGIN),
        height=round(_middle(len(layers.rows) - 1) + BOX_HEIGHT / 2 + MARGIN),
        boxes=tuple(
            Box(
                n.name,
                n.shape,
                n.role,
                round(places[n.name], 1),
                middles[n.name],
                round(widths[n.name], 1),
            )
            for n in graph.nodes
        ),
        forward=tuple(
            _path(_shifted(points, -BESIDE if edge in graph.passes else 0.0))
            for edge, points in lines.items()
        ),
        backward=tuple(
            _path(_shifted(points, BESIDE)[::-1])
            for edge, points in lines.items()
            if edge in graph.passes
        ),
        description=_description(graph),
    )


def _width(name: str, shape: str) -> float:
    return max(len(name) * CHARACTER, len(shape) * SMALL_CHARACTER) + PADDING


def _middle(row: int) -> float:
    return MARGIN + BOX_HEIGHT / 2 + row * (BOX_HEIGHT + ROW_GAP)


def _description(graph: TensorGraph) -> str:
    made: dict[str, list[str]] = {}
    for source, target in graph.edges:
        made.setdefault(target, []).append(source)
    return "; ".join(f"{name} from {', '.join(sources)}" for name, sources in made.items())


def _layers(graph: TensorGraph) -> _Layers:
    """A statement stands below all that it reads; what is given stands just above its first use."""
    level = {node.name: 0 for node in graph.nodes}
    for source, target in graph.edges:  # in the order of the statements
        level[target] = max(level[target], level[source] + 1)
    made = {target for _, target in graph.edges}
    for node in graph.nodes:
        users = [level[target] for source, target in graph.edges if source == node.name]
        if node.name not in made and users:
            level[node.name] = min(users) - 1
    rows: list[Row] = [[] for _ in range(max(level.values(), default=0) + 1)]
    for name, row in level.items():
        rows[row].append(name)
    chains = {}
    for source, target in dict.fromkeys(graph.edges):
        passed = range(level[source] + 1, level[target])
        points = [f"{source} {target} {row}" for row in passed]  # no tensor has a space in its name
        for row, point in zip(passed, points, strict=True):
            rows[row].append(point)
        chains[source, target] = [source, *points, target]
    return _Layers(rows, chains)


def _neighbours(segments, upwards: bool) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for above, below in segments:
        here, there = (below, above) if upwards else (above, below)
        found.setdefault(here, []).append(there)
    return found


def _reorder(layers: _Layers) -> None:
    """Sort every row by the mean place of its neighbours, down and up in turn; keep the best."""
    segments = layers.segments()
    best, fewest = [list(row) for row in layers.rows], _crossings(layers.rows, segments)
    for sweep in range(SWEEPS):
        upwards = sweep % 2 == 0  # a row is sorted by the one above it on the way down
        neighbours = _neighbours(segments, upwards)
        for row in layers.rows if upwards else layers.rows[::-1]:
            _sort(row, neighbours, layers.rows)
        crossings = _crossings(layers.rows, segments)
        if crossings < fewest:
            best, fewest = [list(row) for row in layers.rows], crossings
    layers.rows[:] = best


def _sort(row: Row, neighbours: Mapping[str, list[str]], rows: Sequence[Row]) -> None:
    place = {name: i for other in rows for i, name in enumerate(other)}
    row.sort(key=lambda name: _mean(neighbours.get(name, [name]), place))


def _mean(names: Sequence[str], place: Mapping[str, float]) -> float:
    return sum(place[name] for name in names) / len(names)


def _crossings(rows: Sequence[Row], segments) -> int:
    place = {name: i for row in rows for i, name in enumerate(row)}
    level = {name: i for i, row in enumerate(rows) for name in row}
    between: dict[int, list[tuple[int, int]]] = {}
    for above, below in segments:
        between.setdefault(level[above], []).append((place[above], place[below]))
    return sum(
        (a - c) * (b - d) < 0
        for pairs in between.values()
        for i, (a, b) in enumerate(pairs)
        for c, d in pairs[:i]
    )


def _places(layers: _Layers, widths: Mapping[str, float]) -> dict[str, float]:
    """Horizontal places: every name as near to the mean of its neighbours as its row allows."""
    segments = layers.segments()
    places = {name: 0.0 for row in layers.rows for name in row}
    up, down = (_neighbours(segments, upwards) for upwards in (True, False))
    both = {name: [*up.get(name, []), *down.get(name, [])] or [name] for name in places}
    for sweep in range(3 * SWEEPS):
        neighbours = both if sweep >= 2 * SWEEPS else up if sweep % 2 == 0 else down
        rows = layers.rows if sweep % 2 == 0 else layers.rows[::-1]
        for row in rows:
            wanted = [_mean(neighbours.get(name, [name]), places) for name in row]
            places.update(zip(row, _apart(row, wanted, widths), strict=True))
    return places


def _apart(row: Row, wanted: Sequence[float], widths: Mapping[str, float]) -> list[float]:
    """The places nearest to those wanted that keep the order and the gaps of a row.

    Least squares under ``p[i+1] - p[i] >= gap``: neighbours that would overlap are pooled and
    share the mean of their displacements.
    """
    offsets = [0.0]
    for one, next_one in pairwise(row):
        half = (widths.get(one, PASSING_WIDTH) + widths.get(next_one, PASSING_WIDTH)) / 2
        offsets.append(offsets[-1] + half + COLUMN_GAP)
    pools: list[tuple[float, int]] = []
    for place, offset in zip(wanted, offsets, strict=True):
        pools.append((place - offset, 1))
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            (b, m), (a, n) = pools.pop(), pools.pop()
            pools.append(((a * n + b * m) / (n + m), n + m))
    shifts = [shift for shift, count in pools for _ in range(count)]
    return [shift + offset for shift, offset in zip(shifts, offsets, strict=True)]


def _points(graph, layers: _Layers, edge, places, middles, widths) -> list[Point]:
    """The way of an edge: out of its source at the bottom, into its target at the top."""
    chain = layers.chains[edge]
    source, target = edge
    out = _port(source, edge, [e for e in layers.chains if e[0] == source], layers, places, 1)
    into = _port(target, edge, [e for e in layers.chains if e[1] == target], layers, places, -2)
    points = [(places[source] + out, middles[source] + BOX_HEIGHT / 2)]
    for point in chain[1:-1]:
        points += [(places[point], middles[point] - BOX_HEIGHT / 2)]
        points += [(places[point], middles[point] + BOX_HEIGHT / 2)]
    return [*points, (places[target] + into, middles[target] - BOX_HEIGHT / 2)]


def _port(name: str, edge, edges, layers: _Layers, places, towards: int) -> float:
    """The offset from the middle of a box at which an edge ends, in the order of the edges."""
    in_order = sorted(edges, key=lambda e: places[layers.chains[e][towards]])
    return (in_order.index(edge) - (len(edges) - 1) / 2) * PORT_DISTANCE


def _shifted(points: Sequence[Point], by: float) -> list[Point]:
    return [(x + by, y) for x, y in points]


def _path(points: Sequence[Point]) -> str:
    """A curve that leaves and arrives upright at every point."""
    x, y = points[0]
    parts = [f"M{x:.1f} {y:.1f}"]
    for to_x, to_y in points[1:]:
        middle = (y + to_y) / 2
        parts.append(f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}")
        x, y = to_x, to_y
    return "".join(parts)
