"""Values that a forward saves for its backward: inputs, labels and statistics of rows.

A value of full size is recomputed where that takes neither a reduction nor a product: the lines of
the forward that make it stand before those of the backward. So the saved values are small, or alive
anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from codegen.lowering import sizes_used
from codegen.program import NUMBERS, Function, Parameter, Program
from codegen.program.arrays import (
    ArgMaxOf,
    Arrange,
    Contract,
    ContractAdd,
    Cumulate,
    Gathered,
    OfMatrix,
    Reduce,
    Scanned,
    Scattered,
    SegmentArgMax,
    SegmentMax,
    Solved,
)
from codegen.program.loops import Collected, Looped
from codegen.program.parts import values_in, with_replaced
from codegen.program.reads import Convolve, Overlapped, Placed
from codegen.program.steps import AddAt, Assign, Step
from codegen.program.values import LengthOf, Load, SizeOf, Value
from codegen.targets.torch.functions import layouts_in
from codegen.targets.torch.wrapping import free
from derive.language.notation.layout import Layout

# Values that a backward does not recompute: a reduction, a product, a solution, a loop.
COSTLY = (
    *(ArgMaxOf, Collected, Contract, ContractAdd, Convolve, Cumulate, Gathered, Looped, OfMatrix),
    *(Overlapped, Placed, Reduce, Scanned, Scattered, SegmentArgMax, SegmentMax, Solved),
)


def with_little_kept(program: Program) -> Program:
    """``program`` with a backward that recomputes values of full size."""
    kept = _Kept(_with_outputs_read(program)).program_with_little_kept()
    return _without_views_kept(kept)


def _without_views_kept(program: Program) -> Program:
    """``program`` with a backward that reads no output which is a view of another saved value: that
    one is not rounded to the dtype of the output.
    """
    saved = {p.name for p in program.needs}
    read_off = {size.tensor for _, size in program.backward.sizes if isinstance(size, LengthOf)}
    views = [
        step
        for step in program.forward.steps
        if isinstance(step, Assign) and isinstance(step.value, Arrange)
        if step.name in saved & {*program.outputs} - read_off and loads_of(step) <= saved
    ]
    names = {step.name for step in views}
    backward = program.backward
    parameters = tuple(p for p in backward.parameters if p.name not in names)
    backward = replace(backward, parameters=parameters, steps=(*views, *backward.steps))
    return replace(program, backward=backward)


def _with_outputs_read(program: Program) -> Program:
    """``program`` with a backward that reads an output instead of an alias of it: one tensor cannot
    be returned both with a gradient and without.
    """
    outputs = {
        step.value.name: step.name
        for step in program.forward.steps
        if isinstance(step, Assign) and isinstance(step.value, Load)
        if step.name in program.outputs and step.value.name not in program.outputs
    }
    passed = {p.name for p in program.forward.parameters}
    named = {p.name: p for p in program.needs if p.name in outputs and p.name not in passed}
    if not named:
        return program
    again = [Assign(name, Load(outputs[name], dims=p.layout)) for name, p in named.items()]
    own = [replace(p, name=outputs[p.name]) if p.name in named else p for p in program.needs]
    needs = tuple({p.name: p for p in own}.values())
    sizes = tuple(
        (name, replace(size, tensor=outputs[size.tensor]))
        if isinstance(size, LengthOf) and size.tensor in named
        else (name, size)
        for name, size in program.backward.sizes
    )
    backward = replace(
        program.backward,
        parameters=(*program.upstreams, *needs),
        steps=(*again, *program.backward.steps),
        sizes=sizes,
    )
    results = tuple(name for name in program.forward.results if name not in named)
    return replace(program, backward=backward, forward=replace(program.forward, results=results))


def is_small(layout: Layout, program: Program) -> bool:
    """True if an input has all the axes of a value, and more."""
    own = _axes(layout, program)
    return any(own < _axes(p.layout, program) for p in program.forward.parameters)


@dataclass(frozen=True)
class _Plan:
    """Values to recompute ``again``, and the names that they are made of."""

    again: frozenset[str]
    reads: frozenset[str]


class _Kept:
    """The forward of a program, with plans to recompute its values."""

    def __init__(self, program: Program):
        self.program = program
        self.steps = list(program.forward.steps)
        self.arguments = {p.name: p for p in program.forward.parameters}
        self.layouts = layouts_in(program.forward)
        self.made = _places(self.steps)

    def program_with_little_kept(self) -> Program:
        again: set[str] = set()
        reads: set[str] = set()
        for p in self.program.needs:
            kept_anyway = p.name in self.arguments or p.name in self.program.outputs
            if p.role in NUMBERS or kept_anyway or is_small(p.layout, self.program):
                continue
            before = list(self.steps), dict(self.layouts), dict(self.made)
            plan = self._plan(p.name)
            if plan is None:
                self.steps, self.layouts, self.made = before
            else:
                again |= plan.again
                reads |= plan.reads
        if not again:
            return self.program
        try:
            return self._with([step for step in self.steps if step.name in again], reads - again)
        except KeyError:  # a size that only recomputed values have
            return self.program

    def _with(self, again: list[Step], reads: set[str]) -> Program:
        """The program with a backward that begins with the lines ``again``, which read these."""
        forward, backward = self.program.forward, self.program.backward
        computed = {step.name for step in again}
        needs = [p for p in self.program.needs if p.name not in computed]
        more = [self._parameter(name) for name in reads - {p.name for p in needs}]
        needs = sorted([*more, *needs], key=self._place_of)
        steps = (*again, *backward.steps)
        parameters = (*self.program.upstreams, *needs)
        backward = replace(
            backward, parameters=parameters, steps=steps, sizes=self._sizes(steps, parameters)
        )
        outputs = self.program.outputs
        results = (*outputs, *(p.name for p in needs if p.name not in outputs))
        forward = of_results(replace(forward, steps=tuple(self.steps)), results)
        return replace(self.program, forward=forward, backward=backward)

    def _sizes(self, steps: Iterable[Step], parameters: Iterable[Parameter]):
        """The sizes in the lines of the backward, read off its arguments, each after those that it
        follows from.
        """
        names, own = dict(self.program.sizes), {p.name for p in parameters}
        known, derived = dict(self.program.backward.sizes), dict(self.program.forward.sizes)
        layouts = self.layouts | {p.name: p.layout for p in self.arguments.values()}
        found: dict[str, Value] = {}

        def shown(value: Value) -> Value | None:
            """The length of a former argument, by the name of that size."""
            if not isinstance(value, LengthOf) or value.tensor in own:
                return None
            return SizeOf(layouts[value.tensor][value.along].axis.name)

        def find(name: str) -> None:
            if name in found or name in own:
                return
            length = self._length(name, parameters)
            if length is None:
                length = known.get(name)
                if length is None or (isinstance(length, LengthOf) and length.tensor not in own):
                    length = derived[name]
                length = with_replaced(length, shown)
                for value in (length, *values_in(length)):
                    if isinstance(value, SizeOf):
                        find(names[value.name])
            found[name] = length

        wanted = {names[axis] for axis in sizes_used(steps)}
        for name in [*derived, *known]:  # those that others follow from come first
            if name in {*wanted, *known}:
                find(name)
        return tuple(found.items())

    def _length(self, name: str, parameters: Iterable[Parameter]) -> LengthOf | None:
        sizes = dict(self.program.sizes)
        for p in parameters:
            for i, dim in enumerate(p.layout):
                if sizes[dim.axis.name] == name and not dim.one:
                    return LengthOf(p.name, i)
        return None

    # -- values to recompute -------------------------------------------------------

    def _plan(self, name: str) -> _Plan | None:
        """The plan for recomputing a value; None if that is not cheap."""
        made = self.made.get(name)
        if name in self.arguments or (made and is_small(self.layouts[name], self.program)):
            return _Plan(frozenset(), frozenset([name]))
        if not made or name in self.program.outputs or self._is_read_in_between(name):
            return None
        if not all(isinstance(self.steps[i], (Assign, AddAt)) for i in made):
            return None
        if not all(self._without_costly(step) for step in [self.steps[i] for i in made]):
            return None
        again, reads = {name}, set()
        read_by = set().union(*(loads_of(self.steps[i]) for i in self.made[name]))
        for other in sorted(read_by - {name}):
            plan = self._plan(other)
            if plan is None:
                return None
            again |= plan.again
            reads |= plan.reads
        return _Plan(frozenset(again), frozenset(reads))

    def _is_read_in_between(self, name: str) -> bool:
        """True if another value reads it before its last line."""
        first, last = min(self.made[name]), max(self.made[name])
        between = range(first + 1, last)
        return any(name in loads_of(self.steps[i]) for i in between if i not in self.made[name])

    def _without_costly(self, step: Step) -> bool:
        """Give every costly small part of a line a line of its own before it; False if a part of
        full size is costly.
        """
        named: dict[Value, str] = {}

        def change(value: Value) -> Value | None:
            if not isinstance(value, COSTLY) or not is_small(value.dims, self.program):
                return None
            if value not in named:
                named[value] = free(_named(value, step.name), {*self.layouts, *self.arguments})
            return Load(named[value], dims=value.dims)

        changed = with_replaced(step, change)
        if any(isinstance(value, COSTLY) for value in values_in(changed)):
            return False
        if not named:
            return True
        own = [Assign(name, value) for value, name in named.items()]
        place = self.steps.index(step)
        self.steps[place : place + 1] = [*own, changed]
        self.layouts |= {name: value.dims for value, name in named.items()}
        self.made = _places(self.steps)
        return True

    # -- arguments --------------------------------------------------------------------

    def _parameter(self, name: str) -> Parameter:
        own = self.arguments.get(name)
        return own if own is not None else Parameter(name, self.layouts[name], "statement")

    def _place_of(self, p: Parameter) -> tuple[bool, int]:
        order = [*self.arguments, *(step.name for step in self.steps)]
        return p.role in NUMBERS, order.index(p.name) if p.name in order else len(order)


def _named(value: Value, line: str) -> str:
    """The name of a part of a line: the sum or maximum of a named value, or of the line."""
    if not isinstance(value, Reduce):
        return f"{line}_part"
    kind = "sum" if value.kind == "sum" else "max"
    own = isinstance(value.operand, Load)
    return f"{kind}_{value.operand.name}" if own else f"{kind}_in_{line}"


def of_results(function: Function, results: Sequence[str]) -> Function:
    """The function reduced to these results, with all of its checks."""
    wanted, steps = {*results}, []
    for step in function.steps[::-1]:
        if step.name in wanted or not isinstance(step, (Assign, AddAt)):
            steps.append(step)
            wanted |= {v.name for v in values_in(step) if isinstance(v, Load)}
    return replace(function, steps=tuple(steps[::-1]), results=tuple(results))


def _places(steps: Iterable[Step]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for i, step in enumerate(steps):
        found.setdefault(step.name, []).append(i)
    return found


def loads_of(step: Step) -> set[str]:
    """The names that a line reads."""
    return {value.name for value in values_in(step) if isinstance(value, Load)}


def _axes(layout: Layout, program: Program) -> set[str]:
    """The axes of a layout, with flattened ones as their parts."""
    of_code = {code: axis for axis, code in program.sizes}
    parts = {of_code.get(whole, whole): lengths for whole, lengths in program.flattened}
    found = {dim.axis.name for dim in layout if not dim.one}
    while flat := found & parts.keys():
        found -= flat
        found |= {of_code.get(length, length) for axis in flat for length in parts[axis]}
    return found
