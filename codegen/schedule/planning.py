"""Plans the sweeps, and the parallel axes of each, for the least memory traffic."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from codegen.schedule.costs import CPU, Costs, WalkCost
from codegen.schedule.elements import Axes, Element, index
from codegen.schedule.inlining import inlined, needed, without_copies
from codegen.schedule.merging import merged
from codegen.schedule.nodes import Flat, LibraryNode, Node
from codegen.schedule.ordering import ordered
from codegen.schedule.plan import Plan, Sweep
from codegen.schedule.rows import is_of_rows, sweep_of
from derive.gradient.closing.sweeps import ReadTensor, SweptLoops, SweptValue


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


def _loops(nodes: Sequence[Node | LibraryNode], results: set[str], full: int) -> SweptLoops:
    """The nodes as loops whose traffic is counted in arrays of full size, of so many axes."""
    of = {node.name: node for node in nodes}

    def read(e: Element) -> ReadTensor:
        axes = of[e.name].axes if e.name in of else ()
        met = (a for a, arg in zip(axes, e.args, strict=False) if arg == index(a))
        return ReadTensor(e.name, frozenset(met), int(len(e.args) == full))

    def loop(node: Node | LibraryNode) -> SweptValue:
        axes, count = frozenset(node.axes), int(len(node.axes) == full)
        if isinstance(node, LibraryNode):
            reads = (ReadTensor(n, frozenset(), 0) for n in sorted(node.reads))
            return SweptValue(node.name, axes, axes, tuple(reads), count, whole=True)
        reads = tuple(map(read, node.value.entries))
        return SweptValue(node.name, axes, frozenset(node.space), reads, count)

    return SweptLoops([loop(node) for node in nodes], results)


def _best_rows(
    nodes: Sequence[Node | LibraryNode], results: set[str], costs: Costs
) -> tuple[Axes, dict[str, int]]:
    """The parallel axes, and the sweep of each node, with the fewest passes over memory."""
    swept = [node for node in nodes if isinstance(node, Node)]
    largest = max(swept, key=lambda node: len(node.space))
    order = ordered(largest.space, swept)
    loops, found = _loops(nodes, results, len(order)), []
    for rows in (rows for n in range(len(order) + 1) for rows in combinations(order, n)):
        walked = loops.along(rows)
        ways = [walked.earliest()]
        if order and len(swept) == len(nodes):
            ways.append(walked.latest(ways[0]))
        for times in ways:
            walk = WalkCost(rows, order, len({*times}), walked.moved(times), _reduced(swept, rows))
            found.append((costs.of(walk), len(rows), rows, times))
    *_, rows, times = min(found, key=lambda each: each[:3])
    return rows, dict(zip((node.name for node in nodes), times, strict=True))


def _reduced(nodes: Sequence[Node], rows: Axes) -> int:
    """The number of axes along which a row is reduced to a number."""
    own = [node for node in nodes if _is_swept(node, rows) and is_of_rows(node, rows)]
    axes = {axis for node in own for axis in node.along}
    return max((len(axes & {*node.space}) for node in own), default=0)
