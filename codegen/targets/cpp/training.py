"""One step of gradient descent as one function in C++: it picks a batch, computes the loss and its
gradients, and updates the parameters in place. All sizes are known to the compiler, and it runs in
one thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codegen.program import NUMBERS, Parameter, Program
from codegen.program.steps import Default, Fill, SplitLabel
from codegen.schedule.at_once import with_gradients
from codegen.schedule.nodes import Flat, LibraryNode
from codegen.schedule.plan import Sweep
from codegen.schedule.planning import planned
from codegen.targets.cpp.folding import folded
from codegen.targets.cpp.loops import Loops
from codegen.targets.cpp.names import CppNames, named
from codegen.targets.cpp.products import Products, has_lines
from codegen.targets.tables.names import with_joined
from codegen.targets.torch.wrapping import in_tuple, wrapped

INSIDE = 8  # columns of indent inside a call


@dataclass(frozen=True)
class Training:
    """A step in the form of its template. ``batch`` is the size of the axis of examples; ``data``
    and ``parameters`` are arguments, ``scalars`` those that are numbers, and ``numbers`` the same
    in C++; ``sizes`` are (name, formula), ``size`` is the name of the batch's, and ``given`` those
    that the compiler is given: (name, its source in Python).
    """

    batch: str
    size: str
    data: tuple[str, ...]
    parameters: tuple[str, ...]
    scalars: tuple[str, ...]
    numbers: tuple[str, ...]
    sizes: tuple[tuple[str, str], ...]
    given: tuple[tuple[str, str], ...]
    memory: tuple[tuple[str, str, str], ...]  # (type, name, how many entries)
    picked: tuple[tuple[str, str, str], ...]  # (type, name, entries of one example)
    checked: tuple[tuple[str, str, str], ...]  # (label, count, upper bound)
    lines: tuple[str, ...]
    loss: str
    updated: tuple[tuple[str, str, str], ...]  # (parameter, its gradient, how many entries)


def training_of(program: Program) -> Training | None:
    """The step of a network: a loss with products of matrices in it, and parameters that all
    examples share. None for other functions.
    """
    axis = batch_axis(program.forward.parameters)
    wanted = [p for p in _inputs(program) if axis and axis not in _axes(p)]
    results = [f"d{p.name}" for p in wanted]
    if not wanted or not {*results} <= {*program.backward.results}:
        return None
    if program.several or any(
        isinstance(step, Fill | Default | SplitLabel) for step in program.forward.steps
    ):
        return None  # defaults and any number of dimensions are left to a module
    found = with_gradients(program, results)
    wholes = (
        [node.value for node in found[1].nodes if isinstance(node, LibraryNode)] if found else []
    )
    if not wholes or not all(map(has_lines, wholes)):
        return None
    writer = _StepWriter(program, found[1], axis, [p.name for p in wanted])
    return writer.training() if {*writer.plain} <= writer.places.keys() else None


def batch_axis(parameters: Sequence[Parameter]) -> str | None:
    """The axis of the examples: the first one of an argument, and of all labels; every argument has
    it first or not at all, and some inputs lack it.
    """
    tensors = [p for p in parameters if p.role in ("input", "label")]
    for first in (_axes(p)[0] for p in tensors if p.layout):
        lacking = [p for p in tensors if first not in _axes(p)]
        elsewhere = [p for p in tensors if first in _axes(p)[1:]]
        if not elsewhere and lacking and all(p.role == "input" for p in lacking):
            return first
    return None


def _inputs(program: Program) -> list[Parameter]:
    return [p for p in program.forward.parameters if p.role == "input"]


def _axes(p: Parameter) -> list[str]:
    return [dim.axis.name for dim in p.layout]


class _StepWriter:
    def __init__(self, program: Program, flat: Flat, batch: str, parameters: list[str]):
        self.program, self.flat, self.batch, self.parameters = program, flat, batch, parameters
        self.plan = planned(flat)
        self.codes = with_joined(dict(program.sizes), self.plan.flat)
        parts = {**flat.parts, **self.plan.flat.joined}
        self.whole = {axis: parts[axis] for axis in parts if axis in self.codes}
        codes = [self.codes[axis] for axis in self.codes if axis not in self.whole]
        self.plain = dict.fromkeys(codes)  # axes of one length share a name
        self.places = places_of(program)
        self.arrays = {array.name: array for array in flat.arrays}
        self.stored = [
            name
            for stage in self.plan.stages
            for name in ((stage.name,) if isinstance(stage, LibraryNode) else stage.stored)
        ]
        self.memory = {array.name: array.axes for array in self.plan.flat.arrays}
        self.memory |= {name: self.plan.nodes[name].axes for name in self.stored}

    def training(self) -> Training:
        memory = self.memory
        names = CppNames([*self.arrays, *self.plan.nodes], self.flat.scalars, self.codes)
        loops, size = Loops(names, memory), names.size
        products = Products(size, self.flat.parts)
        self.write(loops, products)
        made, count = dict(self.flat.results), products.count
        data = [name for name in self.arrays if name not in self.parameters]
        loss = self.program.forward.results[0]
        arguments = [p.name for p in self.program.forward.parameters]
        scalars = [name for name in arguments if name in self.flat.scalars]
        return Training(
            self.codes[self.batch],
            size(self.batch),
            tuple(data),
            tuple(self.parameters),
            tuple(scalars),
            tuple(map(named, scalars)),
            tuple(self.sizes(names)),
            tuple((code, self.places[code]) for code in self.plain),
            tuple(
                [(self.kind(n), named(n), count(self.arrays[n].axes)) for n in data]
                + [("Real", named(name), count(memory[name])) for name in self.stored]
            ),
            tuple((self.kind(n), named(n), count(self.arrays[n].axes[1:])) for n in data),
            tuple(
                (
                    named(label),
                    count(self.arrays[label].axes),
                    loops.print.length(axis, self.flat.parts),
                )
                for label, axis in self.flat.picks
            ),
            tuple(part for line in loops.lines for part in folded(line)),
            named(made[loss]),
            tuple(
                (named(p), named(made[f"d{p}"]), count(self.arrays[p].axes))
                for p in self.parameters
            ),
        )

    def write(self, loops: Loops, products: Products) -> None:
        for stage in self.plan.stages:
            if isinstance(stage, Sweep):
                loops.sweep(stage)
            else:
                loops.lines += products.lines(stage)

    def kind(self, name: str) -> str:
        return "int64_t" if self.arrays[name].entries == "whole" else "Real"

    def sizes(self, names: CppNames) -> list[tuple[str, str]]:
        """The sizes in order; those computed from others come last."""
        found = [(names.of_codes[code], f"SIZE_{code}") for code in self.plain]
        return found + [
            (names.size(axis), names.product(parts)) for axis, parts in self.whole.items()
        ]


def places_of(program: Program) -> dict[str, str]:
    """Sources of the sizes of axes: the shape of an argument, an argument, or a constant."""
    codes = dict(program.sizes)
    found = {size: str(length) for size, length in program.fixed}
    for p in program.forward.parameters:
        if p.role in NUMBERS:
            found[p.name] = p.name
        for i, dim in enumerate(p.layout):
            if not dim.one:
                found.setdefault(codes[dim.axis.name], f"{p.name}.shape[{i}]")
    return {size: place for size, place in found.items() if size in codes.values()}


@dataclass(frozen=True)
class StepCall:
    """The Python function that makes a step, in the form of its template."""

    signature: str
    batch: str
    data: str
    parameters: str
    first: str
    sizes: str
    examples: str
    shared: str
    numbers: str


def call_of(program: Program, step: Training, module: str) -> StepCall:
    """The call of a step; ``module`` is the name of the lean module."""
    forward = program.forward.parameters
    tensors = [p for p in forward if p.role in ("input", "label")]
    numbers = [p for p in forward if p.name in step.scalars]
    batch = "batch"
    while any(p.name == batch for p in forward):
        batch += "_"
    sizes = [f'"{step.batch}": {batch}']
    sizes += [f'"{size}": {place}' for size, place in step.given if size != step.batch]
    first = [f"{n}[:{batch}]" if n in step.data else n for n in (p.name for p in tensors)]
    options = [p.name if p.default is None else f"{p.name}={p.default!r}" for p in numbers]
    given = [*(p.name for p in tensors), *options]
    return StepCall(
        wrapped("def training_step", [*given, "*", batch], " -> TrainingStep:"),
        batch,
        ", ".join(step.data),
        ", ".join(step.parameters),
        wrapped(
            f"{module}.{program.name}",
            [*first, *(f"{p.name}={p.name}" for p in numbers)],
            indent=4,
        ),
        _dictionary(sizes),
        _dictionary([f'"{name}": {name}' for name in step.data]),
        _dictionary([f'"{name}": {name}' for name in step.parameters]),
        in_tuple([p.name for p in numbers]),
    )


def _dictionary(items: Sequence[str]) -> str:
    return wrapped("", items, indent=INSIDE).replace("(", "{", 1)[::-1].replace(")", "}", 1)[::-1]
