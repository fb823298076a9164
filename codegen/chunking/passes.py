"""The passes over the chunks of an axis that a function needs, and what each one computes.

The rules of ``codegen/sharding`` place the values: a chunk is a rank in time. An accumulated value
(their `Exchange`) is known behind its pass, so what reads it stands in a later one; what is
independent stands between them. Nothing that is mapped outlives its chunk: each pass computes what
it needs again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from codegen.chunking.nodes import (
    GATHERED,
    INDEPENDENT,
    LARGEST,
    MAPPED,
    SUM,
    ChunkNode,
    closure,
)
from codegen.chunking.online import degree
from codegen.chunking.placed import check_may_be_collected, placed
from codegen.chunking.ring import in_ring
from codegen.program import Function, Program
from codegen.program.steps import Step
from codegen.program.values import Load, Plus
from codegen.sharding.functions import RankWriter
from codegen.sharding.groups import Groups
from derive.language.errors import UnprovedError


@dataclass
class Pass:
    """One walk over the chunks: ``before`` it what is independent, in it the ``body``, which is
    mapped, the sums and the rows of results that are ``written``. ``again`` is what is independent
    but follows from a running maximum. A walk in ``reverse`` begins at the last chunk. The states
    of what runs in it are kept for later passes where it is among ``bordered``.
    """

    before: list[ChunkNode] = field(default_factory=list)
    body: list[ChunkNode] = field(default_factory=list)
    sums: list[ChunkNode] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    again: list[ChunkNode] = field(default_factory=list)
    bordered: list[ChunkNode] = field(default_factory=list)
    reverse: bool = False

    @property
    def walks(self) -> bool:
        return bool(self.sums or self.written or self.bordered)

    def starts_anywhere(self, node: ChunkNode) -> bool:
        """True for what runs elsewhere: here it starts from the states kept there."""
        return node.running is not None and node.way != self.reverse


@dataclass
class Passes:
    """``nodes`` by name; ``results`` are named as they are known at the end. ``asked`` are checks
    of divisors, ``rewritten`` the identities by which sums were joined or moved.
    """

    axis: str
    nodes: Mapping[str, ChunkNode]
    passes: list[Pass]
    after: list[ChunkNode]
    results: tuple[str, ...]
    splits: Mapping[str, tuple[str, ...]]
    writer: RankWriter
    asked: tuple[Step, ...]
    rewritten: frozenset[str]

    @property
    def count(self) -> int:
        return sum(one.walks for one in self.passes)

    @property
    def accumulated(self) -> list[ChunkNode]:
        return [node for one in self.passes for node in one.sums]

    @property
    def bordered(self) -> list[str]:
        """The names of states that are kept for later passes."""
        return [name for one in self.passes for n in one.bordered for name in n.running.states]


def passes_of(
    program: Program,
    function: Function,
    groups: Groups,
    results: Sequence[str],
    known: Iterable[str] = (),
    bordered: Iterable[str] = (),
    kept: Iterable[str] = (),
) -> Passes:
    """The passes for these results; ``known`` are accumulated values that come as arguments, and
    states, as are kept of those called ``bordered``. Values that are ``kept`` are accumulated too.

    Raises `QuestionError` for a value whose rows are needed all at once and that is larger than any
    argument.

    Long: the function, what is wanted of it, and what is there before and after.
    """
    axis = groups.chunked
    writer, nodes, named, asked = placed(program, function, groups)
    if groups.ring:
        nodes = in_ring(writer, nodes)
        writer.placing.rewritten.add("round")
    results = tuple(named.get(name, name) for name in results)
    for name in known:
        nodes.pop(name, None)
    for node in _each(nodes):
        node.known = node.running is not None and {*node.running.states} <= {*known}
    rewritten = {*writer.placing.rewritten}
    splits = {n: groups.in_time(split) for n, split in writer.placing.splits.items()}
    wanted = closure((*results, *kept), nodes)
    nodes = {name: node for name, node in nodes.items() if node.name in wanted}
    if _join_sums(nodes, results):
        rewritten.add("joined sums")
    ordered = _each(nodes)
    for node in ordered:
        if node.kind == GATHERED:
            check_may_be_collected(program, node, axis, function)
            rewritten.add("collected")
    _level(ordered, nodes)
    if _measure_from_running(ordered, nodes):
        rewritten.add("rescaled")
    ways = _level(ordered, nodes)
    found = _scheduled(nodes, ordered, results, ways, {*bordered})
    if any(node.running for one in found[0] for node in one.body):
        rewritten.add("carried")
    made = Passes(axis, nodes, *found, results, splits, writer, asked, frozenset(rewritten))
    check_order(made, known)
    return made


def _each(nodes: Mapping[str, ChunkNode]) -> list[ChunkNode]:
    """The nodes, each behind what it reads: a later step of one may read what follows its first."""
    found: dict[str, ChunkNode] = {}
    seen: set[str] = set()
    waiting = [(node, False) for node in reversed(nodes.values())]
    while waiting:
        node, is_ready = waiting.pop()
        if is_ready:
            found.setdefault(node.name, node)
        elif node.name not in seen:
            seen.add(node.name)
            waiting.append((node, True))
            names = [name for name in nodes if name in node.reads]
            waiting += [(nodes[name], False) for name in reversed(names)]
    return [*found.values()]


# -- sums ------------------------------------------------------------------------------


def _join_sums(nodes: dict[str, ChunkNode], results: Sequence[str]) -> bool:
    """A sum of sums over the chunks is one sum over them: both are added to one buffer."""
    readers: dict[str, int] = {}
    for node in _each(nodes):
        for name in node.reads:
            readers[name] = readers.get(name, 0) + 1
    found = False
    for node in _each(nodes):
        value = getattr(node.steps[0], "value", None)
        if node.kind != INDEPENDENT or len(node.steps) != 1 or not isinstance(value, Plus):
            continue
        parts = [nodes.get(v.name) if isinstance(v, Load) else None for v, _ in value.terms]
        alone = all(
            p is not None
            and p.kind == SUM
            and len(p.steps) == 1
            and readers[p.name] == 1
            and p.dims == node.dims
            and p.travels == parts[0].travels
            and p.name not in results
            for p in parts
        )
        distinct = len({id(p) for p in parts}) == len(parts)
        if alone and distinct and not any(minus for _, minus in value.terms):
            node.kind, node.reads = SUM, set().union(*(p.reads for p in parts))
            node.split, node.travels = parts[0].split, parts[0].travels
            node.steps = [p.steps[0] for p in parts]
            for p in parts:
                del nodes[p.name]
            found = True
    return found


def _level(ordered: Sequence[ChunkNode], nodes: Mapping[str, ChunkNode]) -> dict[int, bool]:
    """The first pass that may read each value; and the passes that have to walk one way, since a
    value runs in them: from the last chunk to the first where True.
    """
    ways: dict[int, bool] = {}
    for node in ordered:
        reads = [nodes[r] for r in node.reads if r in nodes and nodes[r] is not node]
        level = max((r.level for r in reads), default=0)
        if node.way is not None:
            while ways.setdefault(level, node.way) != node.way:
                level += 1
        node.level = level + node.is_accumulated
        if node.online:
            node.level = nodes[node.online].level
    return ways


def _measure_from_running(ordered: Sequence[ChunkNode], nodes: Mapping[str, ChunkNode]) -> bool:
    """Let sums measured from a maximum of the same rows be kept from the running one: they join its
    pass. Everything else that they read must be known before.
    """
    found = False
    largest = [node.name for node in ordered if node.kind == LARGEST and not node.travels]
    for node in ordered:
        if node.kind != SUM or len(node.steps) > 1 or node.travels:
            continue
        (step,) = node.steps
        for name in largest:
            of_largest = nodes[name].level
            if of_largest != node.level - 1:
                continue
            own = degree(step.sent[0].value, name, nodes)
            behind = _accumulated_behind(node, nodes)
            if (
                own is not None
                and own < 0
                and all(other.name == name or other.level < of_largest for other in behind)
                and not _runs_later(node, nodes, of_largest)
            ):
                node.online, node.degree, found = name, own, True
    return found


def _accumulated_behind(node: ChunkNode, nodes: Mapping[str, ChunkNode]) -> list[ChunkNode]:
    """The accumulated values that a node reads through others that are not."""
    found: dict[str, ChunkNode] = {}
    waiting, seen = [*node.reads], set()
    while waiting:
        other = nodes.get(waiting.pop())
        if other is None or other.name in seen or other is node:
            continue
        seen.add(other.name)
        if other.is_accumulated:
            found[other.name] = other
        else:
            waiting += other.reads
    return [*found.values()]


def _runs_later(node: ChunkNode, nodes: Mapping[str, ChunkNode], level: int) -> bool:
    """True if a node reads what runs in the pass ``level``, or in a later one."""
    behind = (nodes[name] for name in closure([node.name], nodes))
    return any(other.way is not None and other.level >= level for other in behind)


# -- in time ---------------------------------------------------------------------------


def _scheduled(nodes, ordered, results: Sequence[str], ways: Mapping[int, bool], kept: set[str]):
    """The passes, with all states that they need, ``kept`` among them, and what is independent
    behind the last one.
    """
    while True:
        found = _walked(nodes, ordered, results, ways, kept)
        other = (n for one in found[0] for n in one.body if one.starts_anywhere(n) and not n.known)
        needed = {name for n in other for name in n.running.states}
        if needed <= kept:
            return found
        kept = kept | needed


def _walked(nodes, ordered, results: Sequence[str], ways: Mapping[int, bool], kept: set[str]):
    """The passes, of which some keep the states of what runs in them."""
    top = max((node.level for node in ordered), default=0)
    rows = [nodes[r].level for r in results if r in nodes and nodes[r].kind == MAPPED]
    at = _latest(ordered, nodes, max([top, *(level + 1 for level in rows)]), results)
    made: set[str] = set()  # independent and accumulated values that are known
    passes = []
    for level in range(top + 1):
        here = Pass(before=_ready(ordered, nodes, made))
        here.sums = [n for n in ordered if n.is_accumulated and at[n.name] == level]
        here.written = [
            r
            for r in dict.fromkeys(results)
            if r in nodes and nodes[r].kind == MAPPED and nodes[r].level == level
        ]
        by = {n.running.states: n for n in reversed(ordered) if n.running}
        here.bordered = [n for own, n in by.items() if {*own} & kept and n.level == level]
        running = _follows({n.online for n in here.sums if n.online}, nodes)
        sinks = {r for n in here.sums for r in n.reads} | {*here.written}
        sinks |= {n.name for n in here.bordered}
        needed = closure(
            sinks, nodes, lambda n, run=running: n.kind != MAPPED and n.name not in run
        )
        here.again = [n for n in ordered if n.kind == INDEPENDENT and n.name in needed]
        here.body = [n for n in ordered if n.kind == MAPPED and n.name in needed]
        here.reverse = ways.get(level, any(n.way for n in here.body))
        made |= {n.name for n in here.sums}
        if here.walks or here.before:
            passes.append(here)
    return passes, _ready(ordered, nodes, made)


def _ready(
    ordered: Sequence[ChunkNode], nodes: Mapping[str, ChunkNode], made: set[str]
) -> list[ChunkNode]:
    """The independent steps that can be computed from ``made``, to which they are added."""
    ready: list[ChunkNode] = []
    count = -1
    while count != len(ready):  # a later step of a node may read what comes after the first one
        count = len(ready)
        for node in ordered:
            if node.kind != INDEPENDENT or node.name in made:
                continue
            if all(nodes[r].name in made for r in node.reads if r in nodes):
                ready.append(node)
                made.add(node.name)
    return ready


def _follows(names: set[str], nodes: Mapping[str, ChunkNode]) -> set[str]:
    """The names of independent steps that read the names alone."""
    found = {*names}
    for node in _each(nodes):
        if node.kind == INDEPENDENT and node.reads and node.reads <= found:
            found |= node.writes
    return found - names


def _latest(ordered, nodes, end: int, results: Sequence[str]) -> dict[str, int]:
    """The pass, of as many as ``end``, in which each value is accumulated: the last one that is
    still in time, so that a pass whose values only later ones need is not computed twice. An online
    sum goes with its maximum.
    """
    last = {n.name: max(end, n.level) - 1 for n in ordered if n.is_accumulated}
    readers: dict[str, list[ChunkNode]] = {}
    for node in ordered:
        for name in {nodes[r].name for r in node.reads if r in nodes} - {node.name}:
            readers.setdefault(name, []).append(node)

    def needed_at(node: ChunkNode) -> int:
        """The first pass in which something reads it."""
        found, waiting, seen = [end], [*readers.get(node.name, ())], {node.name}
        while waiting:
            reader = waiting.pop()
            if reader.name in seen or reader.online == node.name:
                continue
            seen.add(reader.name)
            if reader.is_accumulated:
                found.append(last[reader.name])
                continue
            if reader.kind == MAPPED and (reader.name in results or reader.way is not None):
                found.append(reader.level)
            waiting += readers.get(reader.name, ())
        return min(found)

    before: dict[str, int] = {}
    while before != last:
        before = dict(last)
        for node in reversed(ordered):
            if node.is_accumulated:
                latest = node.level - 1 if node.way is not None else needed_at(node) - 1
                last[node.name] = max(min(last[node.name], latest), node.level - 1)
        for node in ordered:
            if node.online:
                both = min(last[node.name], last[node.online])
                last[node.name] = last[node.online] = both
    return last


def check_order(passes: Passes, known: Iterable[str]) -> None:
    """Raise `UnprovedError` where a line reads what is not known yet: each value is independent and
    made before, of the same chunk and made above, or a maximum that runs in the same pass. What
    runs goes the way of its pass, or starts from states that are known.
    """
    nodes, made = passes.nodes, {*known}

    def check(node: ChunkNode, there: set[str]) -> None:
        missing = {nodes[r].name for r in node.reads if r in nodes} - there - {node.name}
        if missing:
            raise UnprovedError(f"{node.name} reads {', '.join(sorted(missing))} too early")

    for one in passes.passes:
        for node in one.before:
            check(node, made)
            made.add(node.name)
        running = {n.online for n in one.sums if n.online}
        inside = {n.name for n in (*one.body, *one.again)}
        for node in one.body:
            check(node, made | inside | running)
            if one.starts_anywhere(node) and not {*node.running.states} <= made:
                raise UnprovedError(f"{node.name} runs the other way")
        for node in one.again:
            check(node, made | inside | running)
        reach = [n.name for n in one.sums if not n.online]
        behind = closure(
            [r for n in one.sums if not n.online for r in n.reads] + one.written,
            nodes,
            lambda n, known=frozenset(made): n.name in known,
        )
        made |= {name for n in one.bordered for name in n.running.states}
        if late := sorted({*behind} & {n.name for n in one.sums}):
            raise UnprovedError(f"{', '.join(reach)} read {', '.join(late)} in its own pass")
        for node in one.sums:
            check(node, made | inside | running)
            if node.way not in (None, one.reverse):
                raise UnprovedError(f"{node.name} is found the other way")
        made |= {n.name for n in one.sums}
        made |= {*one.written}
    for node in passes.after:
        check(node, made)
        made.add(node.name)
    if missing := [r for r in passes.results if r in nodes and nodes[r].name not in made]:
        raise UnprovedError(f"{', '.join(missing)} is in no pass")
