"""Plans the sweeps, and the parallel axes of each, for the least memory traffic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from codegen.schedule.costs import CPU, Costs, WalkCost
from codegen.schedule.elements import Axes, index
from codegen.schedule.inlining import inlined, needed, without_copies
from codegen.schedule.merging import merged
from codegen.schedule.nodes import Flat, LibraryNode, Node
from codegen.schedule.ordering import ordered
from codegen.schedule.plan import Plan, Sweep
from codegen.schedule.rows import is_of_rows, sweep_of


def planned(flat: Flat, costs: Costs = CPU) -> Plan:
    """The loops that compute all results of a function, over as few axes as possible."""
    flat = merged(flat)
    results = {made for _, made in flat.results}
    nodes = inlined(without_copies(needed(flat.nodes, results), results), results)
    stages = _stages(nodes, results, costs)
    return Plan(flat, tuple(stages), {node.name: node for node in nodes})


def _stages(
    nodes: Sequence[Node | LibraryNode], results: set[str], costs: Costs
) -> list[Sweep | LibraryNode]:
    """The sweeps of ``nodes``, with library operations between them."""
    if not nodes:
        return []
    if all(isinstance(node, LibraryNode) for node in nodes):
        return list(nodes)
    rows, times = _best_rows(nodes, results, costs)
    outside_of_rows = {node.name for node in nodes if not _is_swept(node, rows)}
    read_later = results | {
        name
        for node in nodes
        for name in node.reads
        if name in times
        and (
            times[name] != times[node.name]
            or node.name in outside_of_rows
            or name in outside_of_rows
        )
    }
    stages: list[Sweep | LibraryNode] = []
    for time in sorted({*times.values()}):
        now = [node for node in nodes if times[node.name] == time]
        group: list[Node] = []
        for node in [n for n in now if n.name in outside_of_rows]:
            if isinstance(node, LibraryNode):
                stages += [*_stages(group, read_later, costs), node]
                group = []
            else:
                group.append(node)
        stages += _stages(group, read_later, costs)
        swept = [node for node in now if node.name not in outside_of_rows]
        if swept:
            stages.append(sweep_of(swept, rows, read_later))
    return stages


def _is_swept(node: Node | LibraryNode, rows: Axes) -> bool:
    return isinstance(node, Node) and {*rows} <= {*node.space}


def _times(nodes: Sequence[Node | LibraryNode], rows: Axes) -> dict[str, int]:
    """The earliest sweep in which each node can be computed, or before which."""
    times: dict[str, int] = {}
    of = {node.name: node for node in nodes}
    for node in nodes:
        swept, earliest = _is_swept(node, rows), 0
        for name in node.reads & times.keys():
            before = of[name]
            at_hand = not _is_swept(before, rows) or (swept and _is_at_hand(node, before, rows))
            earliest = max(earliest, times[name] + (not at_hand))
        times[node.name] = earliest
    return times


def _late(
    nodes: Sequence[Node | LibraryNode], rows: Axes, earliest: dict[str, int]
) -> dict[str, int] | None:
    """The same, as late as the readers allow, so that less is stored for them; None if that is the
    same time, or a library operation is between.
    """
    if not earliest or any(isinstance(node, LibraryNode) for node in nodes):
        return None
    last = max((earliest[n.name] for n in nodes if _is_swept(n, rows)), default=0)
    times: dict[str, int] = {}
    for node in reversed(nodes):
        swept = _is_swept(node, rows)
        latest = last + (not swept)
        for user in (user for user in nodes if node.name in user.reads):
            at_hand = not swept or (_is_swept(user, rows) and _is_at_hand(user, node, rows))
            latest = min(latest, times[user.name] - (not at_hand))
        times[node.name] = latest
    return times if times != earliest else None


def _is_at_hand(node: Node, before: Node, rows: Axes) -> bool:
    """True if a node reads another one only in its own row, and so in the same sweep."""
    if not is_of_rows(before, rows):
        return False
    places = [before.axes.index(axis) for axis in rows]
    return all(
        e.args[place] == index(axis)
        for e in node.value.entries
        if e.name == before.name
        for place, axis in zip(places, rows, strict=True)
    )


def _best_rows(
    nodes: Sequence[Node | LibraryNode], results: set[str], costs: Costs
) -> tuple[Axes, dict[str, int]]:
    """The parallel axes, and the sweep of each node, with the fewest passes over memory."""
    loops = [node for node in nodes if isinstance(node, Node)]
    largest = max(loops, key=lambda node: len(node.space))
    order = ordered(largest.space, loops)
    if not order:
        return (), _times(nodes, ())
    found = []
    for rows in (rows for n in range(len(order) + 1) for rows in combinations(order, n)):
        early = _times(nodes, rows)
        for times in filter(None, (early, _late(nodes, rows, early))):
            walk = _walk(nodes, results, Walked(rows, order, times))
            found.append(((costs.of(walk), len(rows), rows), times))
    (_, _, rows), times = min(found, key=lambda each: each[0])
    return rows, times


@dataclass(frozen=True)
class Walked:
    """The axes walked along, of those in their ``order`` in memory, and the sweep of each node."""

    rows: Axes
    order: Axes
    times: dict[str, int]


def _walk(nodes, results: set[str], walked: Walked) -> WalkCost:
    """Memory traffic of the sweeps, in arrays of full size."""
    rows, order, times = walked.rows, walked.order, walked.times
    full = len(order)
    moved: set[tuple[int, str]] = set()
    of = {node.name: node for node in nodes}
    for node in nodes:
        if isinstance(node, LibraryNode):
            continue
        time = times[node.name]
        moved |= {
            (time, e.name)
            for e in node.value.entries
            if len(e.args) == full and (e.name not in of or times.get(e.name) != time)
        }
        read_later = any(node.name in n.reads and times[n.name] != time for n in nodes)
        if len(node.axes) == full and (node.name in results or read_later):
            moved.add((time, f"{node.name} written"))
    own = [node for node in nodes if _is_swept(node, rows) and is_of_rows(node, rows)]
    axes = {axis for node in own for axis in node.along}
    reduced = max((len(axes & {*node.space}) for node in own), default=0)
    return WalkCost(rows, order, len({*times.values()}), len(moved), reduced)
