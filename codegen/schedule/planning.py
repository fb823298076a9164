"""Which loops there are: sweeps over memory, the passes over a row in each, what is parallel.

A sweep walks once through memory. Its loop over the axes P is parallel; all that has one value for
each index of P is computed row by row. A reduction over P itself is complete when the sweep has
ended, so that what reads it stands in a later one. Inside a row a *level* is how many reductions
along it lie before a value: what is of one level, and of the same axes, shares one pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from itertools import combinations, pairwise

from codegen.schedule.elements import Axes, Element, cost, index, with_indices
from codegen.schedule.flattening import Flat, Node, Whole

CHEAP = 8  # operations: what is read from memory or a row again in the place of being kept
SWEEP = 0.25  # what a sweep costs beside what it moves, in arrays of full size
LAST_AXIS = 3.0  # how much dearer a sweep is whose rows are pieces of lines of memory
LONG_ROW = 0.3  # what each axis more in a row costs, which may then be too long for a cache
UNSHARED = 4.0  # how much dearer a sweep is that nothing is parallel in


@dataclass(frozen=True)
class Nest:
    """Loops over ``axes``, the last one innermost, that compute ``nodes`` at once; with no axes,
    values that the row has one of.
    """

    axes: Axes
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Sweep:
    """One walk through memory: ``parallel`` are its rows, of which the last axis is cut into
    ``tiles`` where that is the one along which memory lies.

    ``stored`` are the values that it leaves in memory, ``partial`` those of them that each thread
    has a part of; ``kept`` are those that a row keeps for a later nest of its own.
    """

    parallel: Axes
    tiles: bool
    nests: tuple[Nest, ...]
    stored: tuple[str, ...]
    partial: tuple[str, ...]
    kept: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """The stages of a function, in their order, and the ``nodes`` by their names."""

    stages: tuple[Sweep | Whole, ...]
    nodes: Mapping[str, Node | Whole]


def planned(flat: Flat) -> Plan:
    """The loops of a function that compute all of its results."""
    results = {made for _, made in flat.results}
    nodes = _inlined(_needed(flat.nodes, results), results)
    stages = _stages(nodes, results)
    return Plan(tuple(stages), {node.name: node for node in nodes})


# -- which nodes there are ----------------------------------------------------


def _needed(nodes: Sequence[Node | Whole], results: set[str]) -> list[Node | Whole]:
    """Those that a result is made of."""
    needed, found = set(results), []
    for node in reversed(nodes):
        if node.name in needed:
            needed |= node.reads
            found.append(node)
    return found[::-1]


def _inlined(nodes: Sequence[Node | Whole], results: set[str]) -> list[Node | Whole]:
    """Without the nodes that are cheaper to compute where they are read than to keep, or that are
    read at one place in the loops that would compute them.
    """
    inlined: dict[str, Node] = {}
    users = _users(nodes)
    whole = {name for node in nodes if isinstance(node, Whole) for name in node.reads}
    kept = []
    for node in nodes:
        if isinstance(node, Whole):
            kept.append(node)
            continue
        node = replace(node, value=node.value.replaced(lambda e: _again(e, inlined)))
        once = len(users[node.name]) == 1 and _same_loops(node, users[node.name][0])
        cheap = cost(node.value, frozenset(node.axes)) <= CHEAP
        if not node.kind and node.name not in results | whole and (cheap or once):
            inlined[node.name] = node
        else:
            kept.append(node)
    return kept


def _again(e: Element, inlined: Mapping[str, Node]) -> Element | None:
    if e.kind != "entry" or e.name not in inlined:
        return None
    node = inlined[e.name]
    args = [arg.replaced(lambda part: _again(part, inlined)) for arg in e.args]
    return with_indices(node.value, dict(zip(node.axes, args, strict=True)))


def _users(nodes: Iterable[Node | Whole]) -> dict[str, list[Node | Whole]]:
    """Who reads a node: once for every place."""
    nodes = list(nodes)
    users: dict[str, list[Node | Whole]] = {node.name: [] for node in nodes}
    for node in nodes:
        names = node.reads if isinstance(node, Whole) else [e.name for e in node.value.entries]
        for name in names:
            if name in users:
                users[name].append(node)
    return users


def _same_loops(node: Node, user: Node | Whole) -> bool:
    if isinstance(user, Whole) or {*node.axes} != {*user.space}:
        return False
    entry = next(e for e in user.value.entries if e.name == node.name)
    return entry.args == tuple(map(index, node.axes))


# -- sweeps -------------------------------------------------------------------


def _stages(nodes: Sequence[Node | Whole], results: set[str]) -> list[Sweep | Whole]:
    """The sweeps of ``nodes``, with what libraries do between them."""
    if not nodes:
        return []
    if all(isinstance(node, Whole) for node in nodes):
        return list(nodes)
    rows = _best_rows(nodes, results)
    times = _times(nodes, rows)
    outside_of_rows = {node.name for node in nodes if not _is_swept(node, rows)}
    read_later = results | {
        name
        for node in nodes
        for name in node.reads
        if name in times
        and (times[name] != times[node.name] or node.name in outside_of_rows or name in outside_of_rows)
    }
    stages: list[Sweep | Whole] = []
    for time in sorted({*times.values()}):
        now = [node for node in nodes if times[node.name] == time]
        group: list[Node] = []
        for node in [n for n in now if n.name in outside_of_rows]:
            if isinstance(node, Whole):
                stages += [*_stages(group, read_later), node]
                group = []
            else:
                group.append(node)
        stages += _stages(group, read_later)
        swept = [node for node in now if node.name not in outside_of_rows]
        if swept:
            stages.append(_sweep(swept, rows, read_later))
    return stages


def _is_swept(node: Node | Whole, rows: Axes) -> bool:
    return isinstance(node, Node) and {*rows} <= {*node.space}


def _is_of_rows(node: Node, rows: Axes) -> bool:
    """Whether it has one value in each row; else it is complete after the last."""
    return {*rows} <= {*node.axes}


def _times(nodes: Sequence[Node | Whole], rows: Axes) -> dict[str, int]:
    """In which sweep a node can be computed, or before which."""
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


def _is_at_hand(node: Node, before: Node, rows: Axes) -> bool:
    """Whether a node reads another one in its own row, and so in the same sweep."""
    if not _is_of_rows(before, rows):
        return False
    places = [before.axes.index(axis) for axis in rows]
    return all(
        e.args[place] == index(axis)
        for e in node.value.entries
        if e.name == before.name
        for place, axis in zip(places, rows, strict=True)
    )


def _best_rows(nodes: Sequence[Node | Whole], results: set[str]) -> Axes:
    """The axes to walk along in parallel, with the fewest passes over memory."""
    loops = [node for node in nodes if isinstance(node, Node)]
    largest = max(loops, key=lambda node: len(node.space))
    order = ordered(largest.space, loops)
    if not order:
        return ()
    candidates = [
        rows for n in range(1, len(order) + 1) for rows in combinations(order, n)
    ]
    return min(
        [(), *candidates], key=lambda rows: (_passes(nodes, results, rows, order), len(rows), rows)
    )


def ordered(axes: Iterable[str], nodes: Sequence[Node]) -> Axes:
    """Axes in the order in which memory lies, where arrays agree on one: that of those met first."""
    wanted = {*axes}
    seen = [
        [arg.name for arg in e.args if arg.kind == "index" and arg.name in wanted]
        for node in nodes
        for e in node.value.entries
    ]
    seen += [[axis for axis in node.axes if axis in wanted] for node in nodes]
    after: dict[str, set[str]] = {axis: set() for axis in sorted(wanted)}
    for line in sorted(seen, key=len, reverse=True):
        for before, axis in pairwise(line):
            if before not in _reached(axis, after):
                after[before].add(axis)
    sorter = TopologicalSorter()
    for axis, later in after.items():
        sorter.add(axis)
        for other in sorted(later):
            sorter.add(other, axis)
    return tuple(sorter.static_order())


def _reached(axis: str, after: Mapping[str, set[str]]) -> set[str]:
    """What lies after an axis, with itself."""
    return {axis}.union(*(_reached(later, after) for later in after[axis]))


def _passes(nodes, results: set[str], rows: Axes, order: Axes) -> float:
    """What the sweeps move, in arrays of full size."""
    full, times = len(order), _times(nodes, rows)
    moved: set[tuple[int, str]] = set()
    of = {node.name: node for node in nodes}
    for node in nodes:
        if isinstance(node, Whole):
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
    tiled, inner = order[-1] in rows, [axis for axis in order if axis not in rows]
    total = len(moved) + SWEEP * len({*times.values()})
    if not rows:
        return total * UNSHARED
    return total * (LAST_AXIS if tiled else 1.0) + LONG_ROW * max(0, len(inner) - 1)


# -- the passes over a row ----------------------------------------------------


def _sweep(nodes: Sequence[Node], rows: Axes, read_later: set[str]) -> Sweep:
    order = ordered({axis for node in nodes for axis in node.space}, nodes)
    tiles = bool(rows) and order[-1] == rows[-1]
    inner = {axis for axis in order if axis not in rows[: len(rows) - tiles]}
    loops = {}
    for node in nodes:
        alike = [n for n in nodes if {*n.space} == {*node.space}]
        loops[node.name] = ordered(inner & {*node.space}, alike)
    levels = _levels(nodes, loops, rows, read_later)
    nests = []
    for level in sorted({*levels.values()}):
        now = [node for node in nodes if levels[node.name] == level]
        for axes in sorted({loops[node.name] for node in now}, key=lambda axes: len(axes) > 0):
            nests.append(Nest(axes, tuple(n for n in now if loops[n.name] == axes)))
    nests = _joined(nests)
    kept = [
        node.name
        for nest in nests
        for node in nest.nodes
        if nest.axes
        and _is_of_rows(node, rows)
        and node.name not in read_later
        and (
            (node.kind and {*node.axes} & {*nest.axes})
            or any(node.name in n.reads for other in nests if other is not nest for n in other.nodes)
            and not (node.kind and not {*node.axes} & {*nest.axes})
        )
    ]
    return Sweep(
        rows,
        tiles,
        tuple(nests),
        tuple(node.name for node in nodes if node.name in read_later),
        tuple(node.name for node in nodes if not _is_of_rows(node, rows)),
        tuple(kept),
    )


def _joined(nests: Sequence[Nest]) -> list[Nest]:
    """Neighbours without loops are one."""
    joined: list[Nest] = []
    for nest in nests:
        if joined and not nest.axes and not joined[-1].axes:
            joined[-1] = Nest((), joined[-1].nodes + nest.nodes)
        else:
            joined.append(nest)
    return joined


def _levels(
    nodes: Sequence[Node], loops: Mapping[str, Axes], rows: Axes, read_later: set[str]
) -> dict[str, int]:
    """After how many passes over the row a node is computed: as late as those who read it."""
    of = {node.name: node for node in nodes}
    earliest: dict[str, int] = {}
    for node in nodes:
        before = [of[name] for name in node.reads if name in earliest]
        earliest[node.name] = max(
            (earliest[b.name] + _is_later(node, b, loops) for b in before), default=0
        )
    latest = dict(earliest)
    for node in reversed(nodes):
        users = [n for n in nodes if node.name in n.reads]
        if node.kind or node.name in read_later or not users:
            continue
        latest[node.name] = min(
            latest[user.name] - _is_later(user, node, loops) for user in users
        )
    return latest


def _is_later(node: Node, before: Node, loops: Mapping[str, Axes]) -> bool:
    """Whether a node can be computed only when the loops of another one have ended."""
    if not loops[before.name]:
        return False
    if before.kind or loops[before.name] != loops[node.name]:
        return True
    return any(
        e.args != tuple(map(index, before.axes))
        for e in node.value.entries
        if e.name == before.name
    )
