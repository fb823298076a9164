"""One sweep: its passes over a row, and the buffers that a row keeps between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from codegen.schedule.elements import Axes, index
from codegen.schedule.nodes import Node
from codegen.schedule.ordering import ordered
from codegen.schedule.plan import Nest, Sweep

MOST = {"sum": 4, "max": 1}  # reductions of one pass


def sweep_of(
    nodes: Sequence[Node],
    rows: Axes,
    read_later: set[str],
    online: Mapping[str, str] | None = None,
) -> Sweep:
    """The sweep of ``nodes``. ``online`` maps sums to the maxima computed with them; None if rows
    are not in chunks. A row in chunks has no other row beside it.
    """
    order = ordered({axis for node in nodes for axis in node.space}, nodes)
    tiles = online is None and bool(rows) and order[-1] == rows[-1]
    inner = {axis for axis in order if axis not in rows[: len(rows) - tiles]}
    loops = {}
    for node in nodes:
        alike = [n for n in nodes if {*n.space} == {*node.space}]
        loops[node.name] = ordered(inner & {*node.space}, alike)
    levels = _levels(nodes, loops, read_later, online or {})
    nests = []
    for level in sorted({*levels.values()}):
        now = [node for node in nodes if levels[node.name] == level]
        met = dict.fromkeys(loops[node.name] for node in now)  # in order, whatever hashes are
        for axes in sorted(met, key=lambda axes: len(axes) > 0):
            most = MOST if online is None else {}
            nests += _nests(axes, [n for n in now if loops[n.name] == axes], most)
    nests = [_followed(nest, online or {}) for nest in _joined(nests)]
    return Sweep(
        rows,
        tiles,
        tuple(nests),
        tuple(node.name for node in nodes if node.name in read_later),
        tuple(node.name for node in nodes if not is_of_rows(node, rows)),
        tuple(_kept(nests, rows, read_later)),
    )


def _followed(nest: Nest, online: Mapping[str, str]) -> Nest:
    names = [node.name for node in nest.nodes if node.name in online]
    return replace(nest, online=tuple((online[name], name) for name in names))


def _nests(axes: Axes, nodes: Sequence[Node], most: Mapping[str, int]) -> Iterator[Nest]:
    """One nest, or several if it would have more reductions than a pass can accumulate."""
    counts, now = Counter(), []
    for node in nodes:
        if axes and counts[node.kind] == most.get(node.kind):
            yield Nest(axes, tuple(now))
            counts, now = Counter(), []
        counts[node.kind] += 1
        now.append(node)
    yield Nest(axes, tuple(now))


def _kept(nests: Sequence[Nest], rows: Axes, read_later: set[str]) -> Iterator[str]:
    """Nodes that need a buffer as long as the row: they have many values in a row and are read by
    another of its passes, or are added up over several passes.
    """
    for nest in nests:
        others = [n for other in nests if other is not nest for n in other.nodes]
        for node in nest.nodes if nest.axes else ():
            if node.name in read_later or not is_of_rows(node, rows):
                continue
            many = bool({*node.axes} & {*nest.axes})
            read = any(node.name in n.reads for n in others)
            if many if node.kind else read:
                yield node.name


def _joined(nests: Sequence[Nest]) -> list[Nest]:
    """Merge adjacent nests without loops."""
    joined: list[Nest] = []
    for nest in nests:
        if joined and not nest.axes and not joined[-1].axes:
            joined[-1] = Nest((), joined[-1].nodes + nest.nodes)
        else:
            joined.append(nest)
    return joined


def _levels(
    nodes: Sequence[Node],
    loops: Mapping[str, Axes],
    read_later: set[str],
    online: Mapping[str, str],
) -> dict[str, int]:
    """The number of passes over the row before each node: as late as its readers allow."""
    of = {node.name: node for node in nodes}
    earliest: dict[str, int] = {}

    def is_later(node: Node, before: Node) -> bool:
        return online.get(node.name) != before.name and _is_later(node, before, loops)

    for node in nodes:
        before = [of[name] for name in node.reads if name in earliest]
        earliest[node.name] = max((earliest[b.name] + is_later(node, b) for b in before), default=0)
    latest = dict(earliest)
    for node in reversed(nodes):
        users = [n for n in nodes if node.name in n.reads]
        if node.kind or node.name in read_later or not users:
            continue
        latest[node.name] = min(latest[user.name] - is_later(user, node) for user in users)
    return latest


def _is_later(node: Node, before: Node, loops: Mapping[str, Axes]) -> bool:
    """True if a node can be computed only after the loops of another one."""
    if not loops[before.name]:
        return False
    if before.kind or loops[before.name] != loops[node.name]:
        return True
    return any(
        e.args != tuple(map(index, before.axes))
        for e in node.value.entries
        if e.name == before.name
    )


def is_of_rows(node: Node, rows: Axes) -> bool:
    """True if it has one value in each row; else it is complete after the last."""
    return {*rows} <= {*node.axes}
