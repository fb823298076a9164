"""Compares statements and chain of a lean module with autograd over the statements."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from types import ModuleType

import torch
from torch import Tensor

from codegen.program import Program
from codegen.targets.torch.check import arguments_of, largest_of
from codegen.targets.torch.functions import layouts_in
from codegen.targets.torch.oracle import Difference, Dims, Oracle, difference_of, merged
from derive.language.notation.definition import Definition


def chain_difference(module: ModuleType, definition: Definition, program: Program) -> float:
    """The largest difference of a statement, or of the gradient of one or of an input, from
    autograd's, relative to autograd's largest entry.
    """
    return largest_of(_ChainFunctions(module, definition, program), definition)


def plain_arguments(definition: Definition, values: dict, dims: Dims) -> dict[str, object]:
    """Arguments of a lean module's plain functions, from those of its public one: a dimension for
    each axis, defaults for the scalars, and masks of the labels that count.
    """
    sizes = {axis: prod(lengths) for axis, lengths in dims.items()}
    found = dict(values)
    for t in definition.arguments:
        if isinstance(values.get(t.name), Tensor):
            found[t.name] = merged(values[t.name], t.home, dims)
    for ignoring in definition.ignoring:
        label = found[ignoring.label.name]
        kept = label != ignoring.default
        found |= {ignoring.label.name: label.where(kept, 0), ignoring.kept.name: kept.double()}
    return found | {n: float(v) for n, v in definition.defaults_at(sizes).items() if n not in found}


class _ChainFunctions:
    """Compares both functions with the statements."""

    def __init__(self, module: ModuleType, definition: Definition, program: Program):
        self.atoms, self.chain = (getattr(module, f.name) for f in (program.atoms, program.chain))
        self.definition, self.program = definition, program
        self.layouts = layouts_in(program.atoms) | layouts_in(program.chain)

    def __call__(self, draw, dims: Dims) -> Iterator[Difference]:
        generator = torch.Generator().manual_seed(0)
        definition, program = self.definition, self.program
        leaves = arguments_of(definition, program, draw, generator, dims)
        for p in program.forward.parameters:
            if p.role == "input":
                leaves[p.name].requires_grad_()
        homes = [output.home for output in definition.results]
        shapes = [tuple(n for axis in home for n in dims[axis]) for home in homes]
        upstreams = (
            [draw(shape, generator=generator, dtype=torch.float64) for shape in shapes],
            [torch.ones((), dtype=torch.float64).expand(shape) for shape in shapes],  # as of sum()
        )
        oracle = Oracle(definition, leaves, leaves, upstreams, dims)
        arguments = plain_arguments(definition, leaves, dims)
        with torch.no_grad():
            atoms = self.atoms(**arguments)
            for name in (s.name for s in definition.statements):
                inner = name not in program.outputs  # branches not taken may be NaN
                found = self._in_dims(atoms, name, dims)
                yield oracle.difference(name, found, where_finite=inner)
            for i, arriving in enumerate(upstreams):
                own = [merged(t, home, dims) for t, home in zip(arriving, homes, strict=True)]
                given = {p.name: t for p, t in zip(program.upstreams, own, strict=True)}
                values = {**arguments, **atoms._asdict(), **given}
                before = {n: v.clone() for n, v in values.items() if isinstance(v, Tensor)}
                chained = self.chain(**given, **arguments, atoms=atoms)
                for name, value in before.items():  # nothing that was passed may be written to
                    yield difference_of(name, values[name], value)
                for name in (*leaves, *atoms._fields):
                    what = f"{i} d{name}"
                    if what not in oracle.expected:
                        continue
                    found = self._in_dims(chained, f"d{name}", dims)
                    how = "as_written" if name in leaves else "where_finite"
                    yield oracle.difference(what, found, **{how: True})

    def _in_dims(self, found: tuple, name: str, dims: Dims) -> Tensor:
        """A result with all dimensions of each `Axes`, where it has one for them."""
        tensor, layout = getattr(found, name), self.layouts[name]
        whole = [
            n for dim in layout for n in ([1] * len(dims[dim.axis]) if dim.one else dims[dim.axis])
        ]
        one = [1 if dim.one else prod(dims[dim.axis]) for dim in layout]
        return tensor.reshape(whole) if [*tensor.shape] == one else tensor
