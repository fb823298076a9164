"""The statements of a function as nodes: placed along an axis, each with one name. What runs along
it becomes a statement of its own, which goes on from the state that the chunk before left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from codegen.chunking.exchanged import exchanged
from codegen.chunking.nodes import INDEPENDENT, MAPPED, SUM, ChunkNode
from codegen.chunking.rules import RULES
from codegen.program import NUMBERS, Function, Program
from codegen.program.arrays import Cumulate, Pick, Reduce, Scanned, Stepped
from codegen.program.loops import Looped
from codegen.program.parts import is_number, operands, with_replaced
from codegen.program.shards import Exchange, Running
from codegen.program.steps import AddAt, Assign, NotZero, Step
from codegen.program.values import Choose, Load, Value
from codegen.sharding.functions import RankWriter
from codegen.sharding.groups import Groups
from codegen.sharding.ordering import line
from codegen.sharding.rules import RULES as OF_RANKS
from codegen.sharding.values import with_operands
from derive.language.errors import QuestionError
from derive.language.notation.layout import Dim, Layout

LARGE = 2  # dimensions of a value that is computed in memory of its own
RUNNING = (Cumulate, Scanned, Stepped)


class PlacedWriter(RankWriter):
    """Nothing is sent here, so nothing is gained by moments of parts: a mean is a sum of its own,
    and what is measured from it is measured from the whole one.
    """

    def steps(self) -> list[Step]:
        self.placing.rules = OF_RANKS if self.groups.axes[1:] else RULES
        self.placing.arguments = {p.name for p in self.function.parameters}
        self.numbers = {p.name for p in self.function.parameters if p.role in NUMBERS}
        for step in self.function.steps:
            for one in self._flat(step):
                self.write(one)
        return self.found

    def send(self, kind: str, group: str, value: Value, along: int, dims: Layout) -> Load:
        """Name the part that ranks tell each other first, so that sums may wait for others."""
        at_once = group != self.groups.chunked and not self.groups.ring
        if at_once and not isinstance(value, Load):
            name = self.fresh_in_step("part")
            self.found.append(Assign(name, value))
            value = Load(name, dims=value.dims)
        return super().send(kind, group, value, along, dims)

    @property
    def in_time(self) -> list[str]:
        """The chunked axis by all its names."""
        return [axis for axis, group in self.groups.of.items() if group == self.groups.chunked]

    def _flat(self, step: Step) -> list[Step]:
        """Sums and entries inside a statement become statements: what they read is free behind
        them.
        """
        if not isinstance(step, (Assign, AddAt)):
            return [step]
        if isinstance(step.value, Looped) and step.value.axis in self.in_time:
            return [replace(step, value=self._running(step.name, step.value))]
        before: list[Step] = []

        def apart(name: str, value: Value) -> Load:
            name = self.fresh(name)
            before.append(Assign(name, value))
            return Load(name, dims=value.dims)

        def named(value: Value) -> Value | None:
            is_whole = isinstance(step, Assign) and value is step.value
            own = f"{step.name}_{'run' if isinstance(value, RUNNING) else SUM}"
            if isinstance(value, Choose) and is_number(value.condition, self.numbers):
                return value  # its branches may not be taken
            if isinstance(value, RUNNING) and value.dims[value.along].axis.name in self.in_time:
                run = with_operands(value, [with_replaced(v, named) for v in operands(value)])
                if isinstance(run, Stepped) and not isinstance(run.operand, Load):
                    run = replace(run, operand=apart(f"{step.name}_from", run.operand))
                found = self._running(step.name if is_whole else own, run)
                return found if is_whole or isinstance(found, Load) else apart(own, found)
            if isinstance(step, AddAt):
                return None
            if isinstance(value, Pick) and not is_whole and _is_of_row(value):
                return apart(f"{value.operand.name}_at_{value.index.name}", value)
            if not isinstance(value, Reduce) or value.kind != SUM:
                return None
            other = exchanged(value, self.placing.defined, self.in_time)
            if other is not None:
                self.placing.rewritten.add("exchanged")
                return other if is_whole else apart(own, other)
            if is_whole or sum(not d.one for d in value.operand.dims) < LARGE:
                return None
            return apart(own, value)

        changed = with_replaced(step, named)
        return [*before, changed]

    def _running(self, name: str, run: Cumulate | Scanned | Stepped | Looped) -> Value:
        for known, value in self.placing.defined.items():
            if isinstance(value, Running) and value.operation == run:
                return Load(known, dims=run.dims)
        if isinstance(run, Looped):
            names, dims = [p.before for p in run.passed], [p.initial.dims for p in run.passed]
        else:
            names = [name]
            dims = [tuple(Dim(d.axis, d.one or i == run.along) for i, d in enumerate(run.dims))]
        pairs = zip(names, dims, strict=True)
        before = tuple(Load(self.fresh(f"{own}_state"), dims=d) for own, d in pairs)
        source = self.placing.defined.get(run.operand.name) if isinstance(run, Stepped) else None
        if isinstance(source, Running) and _has_the_states_of(run, source.operation):
            return Running(run, before, source.states, dims=run.dims)
        states = tuple(self.fresh(f"{own}_states") for own in names)
        return Running(run, before, states, dims=run.dims)


def _has_the_states_of(step: Stepped, source: Cumulate | Scanned | Stepped) -> bool:
    """True if a step back in what runs has its states: the same before the first place, too."""
    if step.reverse != source.reverse:
        return False
    if isinstance(source, Cumulate):
        return source.kind == "sum" and step.initial is None
    return isinstance(source, Scanned) and step.initial == source.initial


def _is_of_row(value: Pick) -> bool:
    """True for the entry of each row of a named value, which is large."""
    large = value.rowwise and sum(not d.one for d in value.operand.dims) >= LARGE
    return large and isinstance(value.operand, Load) and isinstance(value.index, Load)


def placed(program: Program, function: Function, groups: Groups):
    """The writer, every value as a node, the last names of those that had several, the checks."""
    writer = PlacedWriter(program, function, groups)
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


def check_may_be_collected(
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
