"""The passes over the chunks of an axis that a function needs, and what each one computes.

The rules of ``codegen/sharding`` place the values: a chunk is a rank in time. An accumulated value
(their `Exchange`) is known behind its pass, so what reads it stands in a later one; what is
independent stands between them. Nothing that is mapped outlives its chunk: each pass computes what
it needs again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from codegen.chunking.exchanged import exchanged
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
from codegen.chunking.rules import RULES
from codegen.program import NUMBERS, Function, Program
from codegen.program.arrays import Pick, Reduce
from codegen.program.parts import is_number, with_replaced
from codegen.program.shards import Exchange
from codegen.program.steps import Assign, NotZero, Step
from codegen.program.values import Choose, Load, Plus, Value
from codegen.sharding.functions import RankWriter
from codegen.sharding.groups import Groups
from codegen.sharding.ordering import line
from codegen.sharding.rules import RULES as OF_RANKS
from derive.language.errors import QuestionError, UnprovedError
from derive.language.notation.layout import Layout

LARGE = 2  # dimensions of a value that is computed in memory of its own


@dataclass
class Pass:
    """One walk over the chunks: ``before`` it what is independent, in it the ``body``, which is
    mapped, the sums and the rows of results that are ``written``. ``again`` is what is independent
    but follows from a running maximum.
    """

    before: list[ChunkNode] = field(default_factory=list)
    body: list[ChunkNode] = field(default_factory=list)
    sums: list[ChunkNode] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    again: list[ChunkNode] = field(default_factory=list)


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
        return sum(bool(one.sums or one.written) for one in self.passes)

    @property
    def accumulated(self) -> list[ChunkNode]:
        return [node for one in self.passes for node in one.sums]


class _OneByOne(RankWriter):
    """Nothing is sent here, so nothing is gained by moments of parts: a mean is a sum of its own,
    and what is measured from it is measured from the whole one.
    """

    def steps(self) -> list[Step]:
        self.placing.rules = OF_RANKS if self.groups.axes[1:] else RULES
        self.numbers = {p.name for p in self.function.parameters if p.role in NUMBERS}
        for step in self.function.steps:
            for one in self._flat(step):
                self.write(one)
        return self.found

    def exchange(self, kind: str, group: str, value: Value, along: int, dims: Layout) -> Load:
        """What ranks tell each other is named first, so that sums may wait for others."""
        key = (kind, group, value, along)
        if group == self.groups.chunked or isinstance(value, Load) or key in self.told:
            return super().exchange(kind, group, value, along, dims)
        name = self.fresh(f"{self.now}_part")
        self.found.append(Assign(name, value))
        part = Load(name, dims=value.dims)
        self.told[key] = super().exchange(kind, group, part, along, dims)
        return self.told[key]

    @property
    def in_time(self) -> list[str]:
        """The chunked axis by all its names."""
        return [axis for axis, group in self.groups.of.items() if group == self.groups.chunked]

    def _flat(self, step: Step) -> list[Step]:
        """Sums and entries inside a statement become statements: what they read is free behind
        them.
        """
        if not isinstance(step, Assign):
            return [step]
        before: list[Step] = []

        def named(value: Value) -> Value | None:
            if isinstance(value, Choose) and is_number(value.condition, self.numbers):
                return value  # its branches may not be taken
            if isinstance(value, Pick) and value is not step.value and _is_of_row(value):
                name = self.fresh(f"{value.operand.name}_at_{value.index.name}")
                before.append(Assign(name, value))
                return Load(name, dims=value.dims)
            if not isinstance(value, Reduce) or value.kind != SUM:
                return None
            other = exchanged(value, self.placing.defined, self.in_time)
            if other is not None:
                self.placing.rewritten.add("exchanged")
                if value is step.value:
                    return other
                name = self.fresh(f"{step.name}_sum")
                before.append(Assign(name, other))
                return Load(name, dims=other.dims)
            if value is step.value:
                return None
            if sum(not d.one for d in value.operand.dims) < LARGE:
                return None
            name = self.fresh(f"{step.name}_sum")
            before.append(Assign(name, value))
            return Load(name, dims=value.dims)

        changed = with_replaced(step, named)
        return [*before, changed]


def _is_of_row(value: Pick) -> bool:
    """True for the entry of each row of a named value, which is large."""
    large = value.rowwise and sum(not d.one for d in value.operand.dims) >= LARGE
    return large and isinstance(value.operand, Load) and isinstance(value.index, Load)


def passes_of(
    program: Program,
    function: Function,
    groups: Groups,
    results: Sequence[str],
    known: Iterable[str] = (),
) -> Passes:
    """The passes for these results; ``known`` are accumulated values that come as arguments.

    Raises `QuestionError` for a value whose rows are needed all at once and that is larger than any
    argument.
    """
    axis = groups.chunked
    writer, nodes, named, asked = _placed(program, function, groups)
    results = tuple(named.get(name, name) for name in results)
    for name in known:
        nodes.pop(name, None)
    rewritten = {*writer.placing.rewritten}
    splits = {n: groups.in_time(split) for n, split in writer.placing.splits.items()}
    wanted = closure(results, nodes)
    nodes = {name: node for name, node in nodes.items() if node.name in wanted}
    if _join_sums(nodes, results):
        rewritten.add("joined sums")
    ordered = _each(nodes)
    for node in ordered:
        if node.kind == GATHERED:
            _check_may_be_collected(program, node, axis, function)
            rewritten.add("collected")
    _level(ordered, nodes)
    if _measure_from_running(ordered, nodes):
        rewritten.add("rescaled")
    _level(ordered, nodes)
    found = _scheduled(nodes, ordered, results)
    made = Passes(axis, nodes, *found, results, splits, writer, asked, frozenset(rewritten))
    check_order(made, known)
    return made


def _each(nodes: Mapping[str, ChunkNode]) -> list[ChunkNode]:
    return list({id(node): node for node in nodes.values()}.values())


# -- placing -------------------------------------------------------------------------


def _placed(program: Program, function: Function, groups: Groups):
    """The writer, every value as a node, the last names of those that had several, the checks."""
    writer = _OneByOne(program, function, groups)
    splits = writer.placing.splits
    steps = writer.steps()
    mapped = {n for n, split in splits.items() if any(groups.in_time(split))}
    nodes: dict[str, ChunkNode] = {}
    asked: list[Step] = []
    named: dict[str, str] = {}
    for step in _one_name_each(steps, splits, writer.fresh, named):
        mine = line(step)
        if isinstance(step, Exchange) and step.group == groups.chunked:
            for sent in step.sent:
                own = replace(step, name=sent.name, sent=(sent,))
                node = ChunkNode(sent.name, [own], {*line(own).reads}, step.kind, sent.dims)
                node.of, node.writes = step.name, {sent.name}
                nodes[sent.name] = node
        elif isinstance(step, NotZero) or not mine.writes:
            asked.append(step)
        elif step.name in nodes:
            nodes[step.name].steps.append(step)
            nodes[step.name].reads |= mine.reads - {step.name}
        else:
            split = groups.in_time(splits.get(step.name, ()))
            is_mapped = any(split)
            if step.name not in splits:  # of what ranks tell each other
                reads = (nodes[r].kind == MAPPED if r in nodes else r in mapped for r in mine.reads)
                is_mapped = any(reads)
            kind = MAPPED if is_mapped else INDEPENDENT
            dims = step.sent[0].dims if isinstance(step, Exchange) else ()
            dims = step.value.dims if isinstance(step, Assign) else dims
            node = ChunkNode(step.name, [step], {*mine.reads} - {step.name}, kind, dims, split)
            node.writes = {*mine.writes}
            nodes |= dict.fromkeys(mine.writes, node)
    return writer, nodes, named, tuple(asked)


def _one_name_each(steps, splits, fresh, now: dict[str, str]) -> Iterator[Step]:
    """A name given to a second value, or whose accumulated value is changed, becomes two. ``now``
    maps it to its last one.
    """
    made: dict[str, str] = {}  # the kind of its value

    def as_now(value: Value) -> Value | None:
        if isinstance(value, Load) and value.name in now:
            return replace(value, name=now[value.name])
        return None

    def renamed(name: str) -> str:
        now[name] = fresh(f"{name}_again")
        splits[now[name]] = splits.get(name, ())
        return now[name]

    for step in steps:
        step = with_replaced(step, as_now)
        if isinstance(step, Exchange):
            pairs = [(s, with_replaced(s.value, as_now) if s.value else None) for s in step.sent]
            sent = tuple(replace(s, value=value) for s, value in pairs)
            if any(s.name in made for s in sent):
                sent = tuple(replace(s, name=renamed(s.name)) for s in sent)
                step = replace(step, name=sent[0].name)
            made |= {s.name: step.kind for s in sent}
            yield replace(step, sent=sent)
        elif isinstance(step, Assign):
            name = step.name
            yield replace(step, name=renamed(name)) if name in made else step
            made[name] = MAPPED
        elif made.get(now.get(step.name, step.name), MAPPED) not in (MAPPED, INDEPENDENT):
            old = Load(now.get(step.name, step.name), dims=_dims_of(steps, step.name))
            yield Assign(renamed(step.name), old)
            made[now[step.name]] = MAPPED
            yield replace(step, name=now[step.name])
        else:
            yield replace(step, name=now[step.name]) if step.name in now else step


def _dims_of(steps: Sequence[Step], name: str):
    told = (s for step in steps if isinstance(step, Exchange) for s in step.sent)
    return next(s.dims for s in told if s.name == name)


def _check_may_be_collected(
    program: Program, node: ChunkNode, axis: str, function: Function
) -> None:
    """A value whose rows are all needed at once is kept whole where some argument is as large."""
    codes = dict(program.sizes)
    own = {codes[d.axis.name] for d in node.dims if not d.one}
    if not any(own <= {codes[d.axis.name] for d in p.layout} for p in function.parameters):
        shape = " x ".join(map(str, node.dims))
        raise QuestionError(
            f"{program.name} cannot be computed in chunks of {axis}: "
            f"{node.of.split('_gathered')[0]} needs all rows of a value of {shape} at once, and "
            "that is larger than any argument",
            "compute in chunks of another axis",
        )


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
            and p.name not in results
            for p in parts
        )
        distinct = len({id(p) for p in parts}) == len(parts)
        if alone and distinct and not any(minus for _, minus in value.terms):
            node.kind, node.reads = SUM, set().union(*(p.reads for p in parts))
            node.steps = [p.steps[0] for p in parts]
            for p in parts:
                del nodes[p.name]
            found = True
    return found


def _level(ordered: Sequence[ChunkNode], nodes: Mapping[str, ChunkNode]) -> None:
    """The first pass that may read each value."""
    for node in ordered:
        reads = [nodes[r] for r in node.reads if r in nodes and nodes[r] is not node]
        node.level = max((r.level for r in reads), default=0) + node.is_accumulated
        if node.online:
            node.level = nodes[node.online].level


def _measure_from_running(ordered: Sequence[ChunkNode], nodes: Mapping[str, ChunkNode]) -> bool:
    """Let sums measured from a maximum of the same rows be kept from the running one: they join its
    pass. Everything else that they read must be known before.
    """
    found = False
    largest = [node.name for node in ordered if node.kind == LARGEST]
    for node in ordered:
        if node.kind != SUM or len(node.steps) > 1:
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


# -- in time ---------------------------------------------------------------------------


def _scheduled(
    nodes: Mapping[str, ChunkNode], ordered: Sequence[ChunkNode], results: Sequence[str]
):
    """The passes, and what is independent behind the last one."""
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
        running = _follows({n.online for n in here.sums if n.online}, nodes)
        sinks = {r for n in here.sums for r in n.reads} | {*here.written}
        needed = closure(
            sinks, nodes, lambda n, run=running: n.kind != MAPPED and n.name not in run
        )
        here.again = [n for n in ordered if n.kind == INDEPENDENT and n.name in needed]
        here.body = [n for n in ordered if n.kind == MAPPED and n.name in needed]
        made |= {n.name for n in here.sums}
        if here.sums or here.written or here.before:
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
            if reader.kind == MAPPED and reader.name in results:
                found.append(reader.level)
            waiting += readers.get(reader.name, ())
        return min(found)

    before: dict[str, int] = {}
    while before != last:
        before = dict(last)
        for node in reversed(ordered):
            if node.is_accumulated:
                last[node.name] = max(min(last[node.name], needed_at(node) - 1), node.level - 1)
        for node in ordered:
            if node.online:
                both = min(last[node.name], last[node.online])
                last[node.name] = last[node.online] = both
    return last


def check_order(passes: Passes, known: Iterable[str]) -> None:
    """Raise `UnprovedError` where a line reads what is not known yet: each value is independent and
    made before, of the same chunk and made above, or a maximum that runs in the same pass.
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
        for node in one.again:
            check(node, made | inside | running)
        reach = [n.name for n in one.sums if not n.online]
        behind = closure(
            [r for n in one.sums if not n.online for r in n.reads] + one.written,
            nodes,
            lambda n, known=frozenset(made): n.name in known,
        )
        if late := sorted({*behind} & {n.name for n in one.sums}):
            raise UnprovedError(f"{', '.join(reach)} read {', '.join(late)} in its own pass")
        for node in one.sums:
            check(node, made | inside | running)
        made |= {n.name for n in one.sums}
        made |= {*one.written}
    for node in passes.after:
        check(node, made)
        made.add(node.name)
    if missing := [r for r in passes.results if r in nodes and nodes[r].name not in made]:
        raise UnprovedError(f"{', '.join(missing)} is in no pass")
