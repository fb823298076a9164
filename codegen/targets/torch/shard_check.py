"""Compares a module whose axes are split with the one that is whole: on one to four ranks, with
parts that differ and one that is empty, value for value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from math import prod
from types import ModuleType

import torch
from torch import Tensor

from codegen.program import Function, Program
from codegen.sharding import Sharded
from codegen.targets.torch.check import DRAWS, arguments_of, dims_tried
from codegen.targets.torch.functions import layouts_in
from codegen.targets.torch.loading import load
from codegen.targets.torch.oracle import NOTHING, Dims
from codegen.targets.torch.simulated import on_ranks, simulated
from derive.notation.definition import Definition
from derive.notation.layout import Layout

# How many parts, and of each the share of what is there, in sixths: one is empty.
SHARES = ((6,), (4, 2), (3, 0, 3), (1, 2, 0, 3))
FAR = float("inf")
CHUNKS = (1, 2, 3, 100)  # entries: those of a part differ in number, or are all


def largest_difference_of_parts(
    text: str, whole: str, definition: Definition, program: Program, sharded: Sharded
) -> float:
    """The largest difference of anything that a rank returns to its part of what the whole module
    returns, relative to the largest entry. Infinite where one is finite and the other is not.
    """
    module, found = load(text, sharded.program.name), [0.0]
    with simulated():
        for case in cases(whole, definition, program, sharded):
            counts = [len(case.cut.shares)] * len(sharded.groups.axes)
            found += on_ranks(counts, partial(case.difference, module))
    return max(found)


def largest_difference_of_chunks(
    text: str, whole: str, definition: Definition, program: Program, sharded: Sharded
) -> float:
    """The same of a module that computes in chunks, of 1, 2, 3 and of all entries."""
    module, found = load(text, sharded.program.name), [0.0]
    for case in cases(whole, definition, program, sharded, shares=((1,),)):
        for chunk in CHUNKS:
            given = case.arguments, case.upstream, {"chunk": chunk}
            results = _differentiated(module, sharded.program, *given)
            wanted = {key: case.expected[key] for key in results}
            found += [_distance(results[key], wanted[key], wanted[key]) for key in results]
    return max(found)


def cases(
    whole: str,
    definition: Definition,
    program: Program,
    sharded: Sharded,
    shares: Sequence[Sequence[int]] = SHARES,
) -> Iterator[Case]:
    """Every number of ranks, with every optional argument, and with none."""
    module = load(whole, program.name)
    every = replace(definition, ignoring=())
    for dims in dims_tried(definition):
        arguments, upstream = _drawn(module, definition, program, dims)
        bare = _drawn(module, every, program, dims)[0]
        for name in program.plain.absent if program.plain is not None else ():
            bare.pop(name, None)
        for given, compute in ((arguments, _all_of), (bare, _differentiated)):
            expected = compute(module, program, given, upstream, {})
            for each in shares:
                cut = Cut(sharded, dims, each)
                yield Case(program, sharded, cut, given, upstream, compute, expected)


@dataclass(frozen=True)
class Case:
    """Arguments, what the module of one process makes of them, and how both are cut."""

    program: Program
    sharded: Sharded
    cut: Cut
    arguments: Mapping[str, object]
    upstream: Tensor
    compute: Callable[..., Mapping]
    expected: Mapping[tuple[str, str], object]

    def difference(self, module: ModuleType, groups: Sequence, place: Sequence[int]) -> float:
        """How far what the rank at ``place`` computes by ``module`` is from its parts."""
        program, cut = self.program, self.cut
        parameters = [p for p in program.forward.parameters if p.name in self.arguments]
        own = {p.name: cut.part(self.arguments[p.name], p.layout, place) for p in parameters}
        mine = cut.part(self.upstream, program.backward.parameters[0].layout, place)
        keywords = _keywords(self.sharded, groups)
        found = self.compute(module, self.sharded.program, own, mine, keywords)
        layouts, apart = _layouts(program), [0.0]
        for key, value in found.items():
            wanted = self.expected.get(
                key
            )  # none for what is saved for the backward of ranks alone
            if isinstance(wanted, Tensor):
                apart.append(_distance(value, cut.part(wanted, layouts[key], place), wanted))
        return max(apart)


def _keywords(sharded: Sharded, groups: Sequence) -> dict[str, object]:
    axes = sharded.groups.axes
    names = ["group"] if len(axes) == 1 else [f"group_{axis.lower()}" for axis in axes]
    return dict(zip(names, groups, strict=True))


def _drawn(whole: ModuleType, definition: Definition, program: Program, dims: Dims):
    """Arguments at which everything is finite, where there are such."""
    for draw in DRAWS:
        generator = torch.Generator().manual_seed(0)
        arguments = arguments_of(definition, program, draw, generator, dims)
        forward = getattr(whole, program.forward.name)(**arguments)
        upstream = draw(forward[0].shape, generator=generator, dtype=torch.float64)
        if all(t.isfinite().all() for t in forward if isinstance(t, Tensor)):
            break
    return arguments, upstream


def _all_of(
    module: ModuleType, program: Program, arguments: Mapping, upstream: Tensor, groups: Mapping
) -> dict[tuple[str, str], object]:
    """What all functions of a module return."""
    found: dict[tuple[str, str], object] = {}

    def kept(kind: str, *given, **more) -> dict:
        results = getattr(module, getattr(program, kind).name)(*given, **more, **groups)._asdict()
        found.update({(kind, name): value for name, value in results.items()})
        return results

    forward, atoms = kept("forward", **arguments), kept("atoms", **arguments)
    kept("backward", upstream, **_given(program.backward, {**arguments, **forward}))
    kept("chain", upstream, **_given(program.chain, {**arguments, **atoms}))
    return found | _differentiated(module, program, arguments, upstream, groups)


def _differentiated(
    module: ModuleType, program: Program, arguments: Mapping, upstream: Tensor, groups: Mapping
) -> dict[tuple[str, str], object]:
    """The output of the differentiable function, and what autograd makes of it."""
    leaves = {
        p.name: arguments[p.name].clone().requires_grad_()
        for p in program.forward.parameters
        if p.role == "input" and p.name in arguments
    }
    output = getattr(module, program.name)(**{**arguments, **leaves}, **groups)
    gradients = torch.autograd.grad(output, [*leaves.values()], upstream)
    found = {("forward", program.forward.results[0]): output.detach()}
    pairs = zip(leaves, gradients, strict=True)
    return found | {("backward", f"d{name}"): gradient for name, gradient in pairs}


def _given(function: Function, values: Mapping) -> dict:
    return {p.name: values[p.name] for p in function.parameters[1:] if p.name in values}


def _layouts(program: Program) -> dict[tuple[str, str], Layout]:
    functions = {
        "forward": program.forward,
        "backward": program.backward,
        "atoms": program.atoms,
        "chain": program.chain,
    }
    return {
        (kind, name): layout
        for kind, function in functions.items()
        for name, layout in layouts_in(function).items()
    }


def _distance(value: Tensor, wanted: Tensor, all_of_it: Tensor) -> float:
    if value.shape != wanted.shape or value.dtype != wanted.dtype:
        return FAR
    if not value.numel():
        return 0.0
    apart = torch.where(value == wanted, 0.0, (value - wanted).abs().double())
    if not torch.equal(value.isnan(), wanted.isnan()):
        return FAR
    largest = all_of_it.abs().nan_to_num(0.0, 0.0, 0.0).amax().item()
    largest = 1.0 if largest < NOTHING else largest
    return float(apart.nan_to_num(0.0, FAR, FAR).amax()) / largest


class Cut:
    """Cuts what is whole into the parts of ranks."""

    def __init__(self, sharded: Sharded, dims: Dims, shares: Sequence[int]):
        self.groups, self.dims, self.shares = sharded.groups, dims, shares
        self.starts: dict[str, list[int]] = {}
        program = sharded.program
        of_code = {code: axis for axis, code in reversed(program.sizes)}
        parts = {of_code[c]: [of_code[part] for part in made] for c, made in program.flattened}
        lengths = {axis.name: size for axis, size in dims.items()}
        for axis in self.groups.axes:
            length = lengths[axis][0]
            times = prod(prod(lengths[part]) for part in parts.get(axis, ())[1:])
            units, total = length // times, sum(shares)
            ends = [units * sofar // total * times for sofar in accumulate(shares)]
            self.starts[axis] = [0, *ends]

    def part(self, value, layout: Layout, place: Sequence[int]):
        if not isinstance(value, Tensor):
            return value
        at = 0
        for dim, group in zip(layout, self.groups.split(layout), strict=True):
            if group:
                starts = self.starts[group]
                own = place[self.groups.axes.index(group)]
                times = value.shape[at] / max(starts[-1], 1)
                start, stop = (round(starts[i] * times) for i in (own, own + 1))
                value = value.narrow(at, start, stop - start).clone()
            at += len(self.dims[dim.axis]) if not dim.one or len(self.dims[dim.axis]) != 1 else 1
        return value
