"""One function of a Program, for one rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from codegen.program import Function, Program
from codegen.program.parts import values_in
from codegen.program.shards import Exchange, OwnAddAt, OwnMean, Ratio, Sent
from codegen.program.steps import (
    AddAt,
    Assign,
    Default,
    Fill,
    InRange,
    NotZero,
    Refuse,
    SplitLabel,
    Step,
)
from codegen.program.values import Load, Number, Plus, Power, SizeOf, Times, Value
from codegen.sharding.groups import Groups
from codegen.sharding.lengths import ABOUT_NUMBERS, Lengths
from codegen.sharding.meanwhile import meanwhile
from codegen.sharding.moments import Centred, centred
from codegen.sharding.ordering import needed, ordered
from codegen.sharding.overwriting import overwriting
from codegen.sharding.placing import Placing
from codegen.sharding.rules import RULES
from codegen.sharding.values import rewritten
from derive.language.notation.layout import Layout


@dataclass(frozen=True)
class SplitFunction:
    """A function for one rank; ``exchanges`` are its collectives in order, ``rewritten`` the
    identities that reduced their number.
    """

    function: Function
    exchanges: tuple[Exchange, ...]
    rewritten: frozenset[str]


def split(program: Program, function: Function, groups: Groups) -> SplitFunction:
    """Split a function. Raises `QuestionError` for what crosses the parts without a collective."""
    writer = RankWriter(program, function, groups)
    found = writer.steps()
    sizes = writer.lengths.read(found)
    steps = tuple(needed(ordered(found), function.results))
    steps = tuple(overwriting(meanwhile(steps, writer.taken), function))
    changed = replace(function, checks=writer.checks_left, sizes=tuple(sizes), steps=steps)
    ratios = [Exchange(n, "ratio", v.group, ()) for n, v in changed.sizes if isinstance(v, Ratio)]
    exchanges = (*ratios, *(step for step in steps if isinstance(step, Exchange)))
    return SplitFunction(changed, exchanges, frozenset(writer.placing.rewritten))


class RankWriter:
    def __init__(self, program: Program, function: Function, groups: Groups):
        self.program, self.function, self.groups = program, function, groups
        self.lengths = Lengths(program, function, groups)
        self.placing = Placing(program.name, groups, self.lengths, RULES, self.exchange)
        self.placing.splits = {p.name: groups.split(p.layout) for p in function.parameters}
        self.found: list[Step] = []
        self.taken = {p.name for p in function.parameters} | {s.name for s in function.steps}
        self.taken |= {*self.lengths.sizes.values()}
        self.told: dict[tuple, Load] = {}
        self.replaced: dict[Value, Value] = {}  # values known otherwise
        self.made: set[str] = set()  # names of collectives inside of a statement
        self.now = ""
        self.checks_left: tuple[Step, ...] = ()

    def steps(self) -> list[Step]:
        self.checks_left = tuple(self.lengths.of_part(self.checks()))
        steps = self.function.steps
        met = {found.lines[-1]: found for found in centred(steps, self.groups)}
        skipped = {i for found in met.values() for i in found.lines}
        for i, step in enumerate(steps):
            if i in met:
                self.centre(met[i])
            elif i not in skipped:
                self.write(step)
        return self.found

    def checks(self) -> Iterator[Step]:
        """Checks of the rank's own arguments; those that need the length of an axis on all ranks
        move to the steps: it is known later.
        """
        forward, checks, asked = self.program.forward, [*self.function.checks], self.lengths
        if self.function is not self.program.backward:  # all three look at the same arguments
            checks += self.program.ranges
        if self.function not in (forward, self.program.backward):
            checks += forward.checks
        late = {s.name for s in checks if isinstance(s, Default) and asked.asks_for_all(s)}
        for step in checks:
            if asked.asks_for_all(step) or (step.name in late and isinstance(step, ABOUT_NUMBERS)):
                step = asked.with_all(step)
                if not (isinstance(step, Refuse) and step.equal and step.left == step.right):
                    self.found.append(step)
            elif step in self.function.checks or self.function is forward:
                yield step

    def centre(self, found: Centred) -> None:
        """Values measured from a mean: centred on this rank's own mean, then shifted."""
        name, dims, along = found.name, found.operand.dims, found.total.along
        keep = found.total.dims
        operand = self.placing.placed(found.operand).value
        mean, shift = self.fresh(f"{name}_own_mean"), self.fresh(f"{name}_shift")
        own, result = Load(name, dims=dims), found.mean or self.fresh(f"{name}_mean")
        self.found.append(Assign(mean, OwnMean(operand, along, dims=keep)))
        moved = Plus(((operand, False), (Load(mean, dims=keep), True)), dims=dims)
        self.found.append(Assign(name, moved))
        for _ in range(found.again):
            again = Plus(((own, False), (OwnMean(own, along, dims=keep), True)), dims=dims)
            self.found.append(Assign(name, again))
        sent = [Sent(result, Load(mean, dims=keep), dims=keep), Sent(shift, None, dims=keep)]
        others = [d for i, d in enumerate(dims) if i in along and not self.groups.split((d,))[0]]
        times = Times(tuple((SizeOf(d.axis.name), False) for d in others))
        more: tuple[Value, ...] = ()
        if found.squares is not None:
            total = self.fresh(f"{name}_squares")
            squared = Power(own, Number(Fraction(2)), dims=dims)
            sent.append(Sent(total, replace(found.squares, operand=squared), dims=keep))
            self.replaced[found.squares] = Load(total, dims=found.squares.dims)
            more = (times,) if others else ()
        self.found.append(Exchange(result, "moments", found.group, tuple(sent), more))
        self.found.append(
            Assign(name, Plus(((own, False), (Load(shift, dims=keep), False)), dims=dims))
        )
        self.placing.splits[name] = self.groups.split(dims)
        self.placing.splits[result] = ("",) * len(keep)

    def write(self, step: Step) -> None:
        self.now = step.name
        if isinstance(step, Assign):
            self.assign(step)
        elif isinstance(step, AddAt):
            self.add_at(step)
        elif isinstance(step, SplitLabel):
            self.split_label(step)
        elif isinstance(step, NotZero):
            self.found.append(self.lengths.with_all(step))
        else:
            if isinstance(step, Fill):
                self.placing.splits[step.name] = self.groups.split(step.value.dims)
            self.found.append(step)

    def assign(self, step: Assign) -> None:
        value = rewritten(step.value, self.replaced.get) if self.replaced else step.value
        placed = self.placing.canonical(self.placing.placed(value))
        self.forget(step.name)
        again = step.name in self.placing.splits
        self.placing.splits[step.name] = placed.split
        last = self.found[-1] if self.found else None
        if (
            isinstance(last, Exchange)
            and isinstance(placed.value, Load)
            and placed.value.name in self.made
            and last.sent[0].name == placed.value.name
        ):
            sent = replace(last.sent[0], name=step.name)
            self.told = {key: load for key, load in self.told.items() if load != placed.value}
            self.found[-1] = replace(last, name=step.name, sent=(sent,))
        else:
            self.found.append(Assign(step.name, placed.value))
        if not again:
            self.placing.defined[step.name] = step.value
        else:
            self.placing.defined.pop(step.name, None)

    def forget(self, name: str) -> None:
        """Forget what was exchanged for a value that is assigned again."""
        self.told = {
            key: load
            for key, load in self.told.items()
            if not any(isinstance(v, Load) and v.name == name for v in _all(key[2]))
        }
        defined = self.placing.defined
        for other in [n for n, v in defined.items() if any(_is(v, name) for v in _all(v))]:
            del defined[other]

    def add_at(self, step: AddAt) -> None:
        placing = self.placing
        target = placing.splits[step.name]
        dims = self.dims_of(step.name)
        rest = target[: step.along] + target[step.along + 1 :]
        others = dims[: step.along] + dims[step.along + 1 :]
        wanted = {d.axis.name: s for d, s in zip(others, rest, strict=True) if s}
        index, value = (self.beside(v, wanted) for v in (step.index, step.value))
        self.forget(step.name)
        placing.defined.pop(step.name, None)
        group = placing.counted(dims[step.along].axis.name, target[step.along])
        if group:
            self.found.append(OwnAddAt(step.name, index, step.along, value, group))
        else:
            self.found.append(replace(step, index=index, value=value))

    def beside(self, value: Value, wanted: Mapping[str, str]) -> Value:
        placed = self.placing.placed(value)
        split = tuple("" if d.one else wanted.get(d.axis.name, "") for d in placed.value.dims)
        return self.placing.fitted(placed, split).value

    def dims_of(self, name: str) -> Layout:
        layouts = {p.name: p.layout for p in self.function.parameters}
        layouts |= {s.name: s.value.dims for s in self.function.steps if isinstance(s, Assign)}
        return layouts[name]

    def split_label(self, step: SplitLabel) -> None:
        """Along a split axis, the check of the label's range comes later: when the length of all
        parts is known.
        """
        own = tuple(s for s in step.sizes if s.name not in self.groups.of)
        self.placing.splits[step.name] = self.groups.split(step.dims)
        self.placing.splits[step.kept] = self.groups.split(step.dims)
        self.found.append(replace(step, sizes=own))
        lengths = [self.lengths.of_axis(s.name) for s in step.sizes if s not in own]
        if lengths:
            self.found.append(InRange(step.name, tuple(lengths)))

    def exchange(self, kind: str, group: str, value: Value, along: int, dims: Layout) -> Load:
        """Add a collective for a value; the name of its result."""
        key = (kind, group, value, along)
        if key not in self.told:
            self.told[key] = self.send(kind, group, value, along, dims)
        return self.told[key]

    def send(self, kind: str, group: str, value: Value, along: int, dims: Layout) -> Load:
        name = self.fresh_in_step(kind)
        self.found.append(Exchange(name, kind, group, (Sent(name, value, along, dims),)))
        return Load(name, dims=dims)

    def fresh_in_step(self, kind: str) -> str:
        """A fresh name that begins with that of the step being written."""
        return self.fresh(f"{self.now}_{kind}")

    def fresh(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        self.made.add(name)
        return name


def _all(value: Value):
    return [value, *values_in(value)]


def _is(value: Value, name: str) -> bool:
    return isinstance(value, Load) and value.name == name
