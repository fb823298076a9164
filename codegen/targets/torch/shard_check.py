"""Compares a module whose axes are split with the one that is whole: on one to four ranks, with
parts that differ and one that is empty, value for value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from math import prod
from types import ModuleType

import torch
from torch import Tensor

from codegen.program import NUMBERS, Function, Program
from codegen.sharding import Sharded
from codegen.targets.torch.check import DRAWS, arguments_of, dims_tried, load
from codegen.targets.torch.oracle import NOTHING, Dims
from codegen.targets.torch.simulated import Group, Simulated, on_ranks
from derive.notation.definition import Definition
from derive.notation.layout import Layout

# How many parts, and of each the share of what is there, in sixths: one is empty.
SHARES = ((6,), (4, 2), (3, 0, 3), (1, 2, 0, 3))
FAR = float("inf")


def largest_difference_of_parts(
    text: str, whole_text: str, definition: Definition, program: Program, sharded: Sharded
) -> float:
    """The largest difference of anything that a rank returns to its part of what the whole module
    returns, relative to the largest entry. Infinite where one is finite and the other is not.
    """
    whole, module = load(whole_text, program.name), load(text, sharded.program.name)
    module.dist = Simulated()
    found = [0.0]
    for dims in dims_tried(definition):
        for shares in SHARES:
            found += _differences(module, whole, definition, program, sharded, dims, shares)
    return max(found)


def _differences(
    module: ModuleType,
    whole: ModuleType,
    definition: Definition,
    program: Program,
    sharded: Sharded,
    dims: Dims,
    shares: Sequence[int],
) -> Iterator[float]:
    arguments, upstream = _drawn(whole, definition, program, dims)
    cut = _Cut(sharded, dims, shares)
    expected = _all_of(whole, program, arguments, upstream, ())
    counts = [len(shares)] * len(sharded.groups.axes)

    def of_rank(groups: Sequence[Group], place: Sequence[int]) -> dict:
        own = {
            p.name: cut.part(arguments[p.name], p.layout, place)
            for p in program.forward.parameters
            if p.name in arguments
        }
        mine = cut.part(upstream, program.backward.parameters[0].layout, place)
        return _all_of(module, sharded.program, own, mine, groups)

    layouts = _layouts(program)
    for place, found in zip(_in_order(counts), on_ranks(counts, of_rank), strict=True):
        for (kind, name), value in found.items():
            wanted = expected[kind, name]
            if isinstance(wanted, Tensor):
                wanted = cut.part(wanted, layouts[kind, name], place)
                d = _distance(value, wanted, expected[kind, name])
                if d > 1e-12: print(kind, name, place, d, value, wanted)
                yield d


def _in_order(counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    from codegen.targets.torch.simulated import _places

    return _places(counts)


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
    module: ModuleType, program: Program, arguments: Mapping, upstream: Tensor, groups: Sequence
) -> dict[tuple[str, str], object]:
    """What all functions of a module return."""
    names = ("group",) if len(groups) == 1 else ()
    names = names or tuple(n for n in _keywords(module, program) if n.startswith("group_"))
    more = dict(zip(names, groups, strict=True))
    found: dict[tuple[str, str], object] = {}

    def kept(kind: str, results: tuple) -> dict:
        found.update({(kind, name): value for name, value in results._asdict().items()})
        return results._asdict()

    forward = kept("forward", getattr(module, program.forward.name)(**arguments, **more))
    atoms = kept("atoms", getattr(module, program.atoms.name)(**arguments, **more))
    given = _given(program.backward, {**arguments, **forward})
    kept("backward", getattr(module, program.backward.name)(upstream, **given, **more))
    given = _given(program.chain, arguments | atoms)
    kept("chain", getattr(module, program.chain.name)(upstream, **given, **more))
    leaves = {
        p.name: arguments[p.name].clone().requires_grad_()
        for p in program.forward.parameters
        if p.role == "input" and p.name in arguments
    }
    output = getattr(module, program.name)(**{**arguments, **leaves}, **more)
    found["forward", program.forward.results[0]] = output.detach()
    gradients = torch.autograd.grad(output, [*leaves.values()], upstream)
    for name, gradient in zip(leaves, gradients, strict=True):
        found["backward", f"d{name}"] = gradient
    return found


def _keywords(module: ModuleType, program: Program) -> tuple[str, ...]:
    code = getattr(module, program.name).__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _given(function: Function, values: Mapping) -> dict:
    return {p.name: values[p.name] for p in function.parameters[1:] if p.name in values}


def _layouts(program: Program) -> dict[tuple[str, str], Layout]:
    from codegen.targets.torch.functions import layouts_in

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


class _Cut:
    """Cuts what is whole into the parts of ranks."""

    def __init__(self, sharded: Sharded, dims: Dims, shares: Sequence[int]):
        self.groups, self.dims = sharded.groups, dims
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


__all__ = ["NUMBERS", "largest_difference_of_parts"]
