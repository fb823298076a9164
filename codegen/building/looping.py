"""The steps of a loop from place to place (``recurrences.py``), and its results."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from codegen.building.outlines import Line, Link, Outline
from codegen.building.recurrences import Loop, apart, without
from codegen.lowering import Lowering
from codegen.lowering.frames import fitted
from codegen.lowering.repeated import better
from codegen.program.arrays import Expand, Zeros
from codegen.program.loops import Body, Collected, Looped, LoopInput, Passed
from codegen.program.parts import is_number, values_in
from codegen.program.steps import Assign, Step
from codegen.program.values import Load, Value
from derive.gradient.chain.chain import Chain
from derive.language.names import unused
from derive.language.notation.definition import Definition
from derive.language.notation.layout import Layout, plain
from derive.language.symbols import Axis, tensors_in


class Looping:
    """Makes the steps of the loops of one function; ``lowering`` lowers its other lines.
    ``numbers`` are its arguments that are Python numbers, ``taken`` all names in it.
    """

    def __init__(
        self,
        definition: Definition,
        chain: Chain,
        outline: Outline,
        lowering: Lowering,
        numbers: Collection[str],
    ):
        self.definition, self.chain, self.outline = definition, chain, outline
        self.lowering, self.numbers = lowering, numbers
        self.known: dict[str, Layout] = lowering.layouts
        for link in outline.links:
            self.known |= {t.name: plain(t.home) for t in link.tensors}
        self.taken = {*self.known, *definition.position}

    def steps(self, loop: Loop, others: Sequence[Line | Loop]) -> list[Step]:
        """The steps of ``loop``, with the values that the ``others`` or the caller read."""
        found: list[Step] = []
        read = {*self.outline.results}.union(*(other.read for other in others))
        loop = replace(loop, lines=tuple(map(self._written_out, loop.lines)))
        outer, loop = apart(loop, self.definition.axes, self.taken)
        for line in outer:
            self.known[line.tensor.name] = line.layout
            found += self._lowered(self.lowering, line)
        axis, reverse = loop.links[0].axis, loop.links[0].reverse
        inside = self._inside(loop, axis)
        last = {k.last.name: k for k in loop.links if k.last is not None and k.last.name in read}
        wanted = read | {link.after for link in last.values()}
        collected = tuple(n for n in dict.fromkeys(loop.ordered) if n in wanted)
        inside, names = _under_one_name(inside, collected)
        passed = tuple(self._passed(link, names) for link in loop.links)
        record, place = self._named("steps"), self._named("t")
        given = self._given(inside, loop, axis)
        looped = Looped(axis.name, reverse, place, passed, given, Body(tuple(inside)), collected)
        found.append(Assign(record, looped))
        for number, name in enumerate(collected):
            layout = self.known[name]
            along = [dim.axis for dim in layout].index(axis)
            value = Collected(Load(record), number, along, reverse, dims=layout)
            found += [Assign(name, value)] * (name in read)
        for name, link in last.items():
            number, dims = collected.index(link.after), plain(link.last.home)
            value = Collected(Load(record), number, None, reverse, dims=dims)
            found.append(Assign(name, value))
        return found

    def _written_out(self, line: Line) -> Line:
        """The line with open derivatives written out: each is one of whole tensors."""
        if any(t.role == "pullback" for e in line.terms for t in tensors_in(e)):
            contributions = self.chain.by_name[line.tensor.name].contributions
            return replace(line, terms=tuple(c.expression for c in contributions))
        return line

    def _inside(self, loop: Loop, axis: Axis) -> list[Step]:
        """The steps at one place."""
        layouts = {name: _without(layout, axis) for name, layout in self.known.items()}
        layouts |= {line.tensor.name: _without(line.layout, axis) for line in loop.lines}
        of = self.definition.axes, self.outline.statements, self.outline.saved
        lowering, steps = Lowering(layouts, *of), list[Step]()
        for line in loop.lines:
            steps += self._lowered(lowering, without(line, axis))
        self.lowering.scalars |= lowering.scalars
        if lowering.rounds_as_autograd:
            return steps
        return better(steps, self.numbers, self.taken)

    def _lowered(self, lowering: Lowering, line: Line) -> list[Step]:
        return lowering.accumulated(line.tensor.name, line.terms, line.layout, self.outline.like)

    def _passed(self, link: Link, names: Mapping[str, str]) -> Passed:
        after = names.get(link.after, link.after)
        home = tuple(axis for axis in link.before.home if axis != link.axis)
        dims = plain(home)
        if link.initial == 0:
            return Passed(link.before.name, after, Zeros(self.outline.like, dims=dims))
        value: Value = self.lowering.value(link.initial, home)
        if is_number(value, self.lowering.scalars):
            return Passed(link.before.name, after, Expand(value, dims=dims))
        return Passed(link.before.name, after, fitted(value, dims))

    def _given(self, steps: Sequence[Step], loop: Loop, axis: Axis) -> tuple[LoopInput, ...]:
        own = {*loop.ordered} | {step.name for step in steps}
        loads = {v.name for step in steps for v in values_in(step) if isinstance(v, Load)}
        found = []
        for name in sorted(loads - own):
            layout = self.known[name]
            along = [i for i, dim in enumerate(layout) if dim.axis == axis and not dim.one]
            found.append(LoopInput(name, Load(name, dims=layout), *(along or [None])))
        return tuple(found)

    def _named(self, name: str) -> str:
        name = unused(name, self.taken.__contains__)
        self.taken.add(name)
        return name


def _under_one_name(
    steps: Sequence[Step], collected: Collection[str]
) -> tuple[list[Step], dict[str, str]]:
    """The steps without mere renamings of values that are not collected; and the renamings."""
    names: dict[str, str] = {}
    for step in steps:
        other = isinstance(step, Assign) and isinstance(step.value, Load)
        if other and step.name not in collected:
            names[step.name] = step.value.name
    read = {v.name for step in steps for v in values_in(step) if isinstance(v, Load)}
    names = {new: old for new, old in names.items() if new not in read}
    return [step for step in steps if step.name not in names], names


def _without(layout: Layout, axis: Axis) -> Layout:
    return tuple(dim for dim in layout if dim.axis != axis or dim.one)
