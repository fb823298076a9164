"""Compares a module whose axes are split with autograd through the statements: on one to four
ranks, with parts that differ and one that is empty, value for value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from math import prod
from types import ModuleType

import torch
from torch import Tensor

from codegen.files.loading import loaded
from codegen.program import Function, Program
from codegen.sharding import Sharded
from codegen.targets.torch.check import DRAWS, arguments_of, dims_tried
from codegen.targets.torch.functions import layouts_in
from codegen.targets.torch.oracle import MOST_ROUNDING, NOTHING, TRIFLE, Dims, Oracle
from codegen.targets.torch.simulated import on_ranks, simulated
from derive.language.notation.definition import Definition
from derive.language.notation.layout import Layout

# How many parts, and the share of each, in sixths: one is empty.
SHARES = ((6,), (4, 2), (3, 0, 3), (1, 2, 0, 3))
FAR = float("inf")

Key = tuple[str, str]  # the kind of a function, and the name of a result


def largest_difference_of_parts(
    text: str, definition: Definition, program: Program, sharded: Sharded
) -> float:
    """The largest difference of any result of a rank from its part of autograd's and of the
    statements', relative to the largest entry and beyond autograd's rounding.
    """
    module, found = load(text, sharded.program.name), [0.0]
    with simulated():
        for case in cases(definition, program, sharded):
            counts = [len(case.cut.shares)] * len(sharded.groups.axes)
            found += on_ranks(counts, partial(case.difference, module))
    return max(found)


def largest_difference_of_chunks(
    text: str, definition: Definition, program: Program, sharded: Sharded
) -> float:
    """The same for a module that computes the parts in chunks, of two entries and of all."""
    module, found = load(text, sharded.program.name), [0.0]
    with simulated():
        for case in cases(definition, program, sharded):
            counts = [len(case.cut.shares)]
            for chunk in (2, None):
                compute = partial(in_chunks, chunk=chunk)
                own = replace(case, compute=compute)
                found += on_ranks(counts, partial(own.difference, module))
    return max(found)


def load(text: str, name: str) -> ModuleType:
    """The module with this text, beside the files that it imports."""
    return loaded(text, name, package=__package__)


def cases(
    definition: Definition,
    program: Program,
    sharded: Sharded,
    shares: Sequence[Sequence[int]] = SHARES,
) -> Iterator[ShardCase]:
    """Cases for every number of ranks, with every optional argument, and with none."""
    every = replace(definition, ignoring=())
    for dims in dims_tried(definition):
        for drawn, absent, compute in (
            (definition, (), _all_of),
            (every, sharded.absent, _differentiated),
        ):
            arguments, expected = _drawn(drawn, definition, program, dims, absent)
            for each in shares:
                cut = Cut(sharded, dims, each)
                yield ShardCase(program, sharded, cut, arguments, expected, compute)


class Expected:
    """Expected results at one point: those of autograd and of the statements."""

    def __init__(self, oracle: Oracle, program: Program):
        self.oracle, self.layouts = oracle, _layouts(program)
        self.output = ("forward", program.forward.results[0])
        self.finite = all(
            value.isfinite().all()
            for name, value in oracle.expected.items()
            if name == self.output[1] or ("backward", name.removeprefix("0 ")) in self.layouts
        )

    def distance(
        self, key: Key, value: object, part: Callable[[Tensor, Layout], Tensor] | None = None
    ) -> float:
        """Distance of a value from the expected one; 0 for values that only the backward of ranks
        computes, which have none. Inside a module, branches that are not taken need not be finite.
        """
        kind, name = key
        what = name if kind in ("forward", "atoms") else f"0 {name}"
        whole = self.oracle.expected.get(what)
        if whole is None or not isinstance(value, Tensor):
            return 0.0
        wanted = whole if part is None else part(whole, self.layouts[key])
        if value.shape != wanted.shape or value.dtype != wanted.dtype:
            return FAR
        if key != self.output:
            value, wanted = (torch.where(wanted.isfinite(), v, 0) for v in (value, wanted))
        largest = whole.abs().nan_to_num(0.0, 0.0, 0.0).amax().item() if whole.numel() else 0.0
        scale = largest if largest > NOTHING else 1.0
        found = _apart(value, wanted) / scale
        if not TRIFLE < found < FAR:
            return found
        rounding = self.oracle.rounding[what] / scale
        return max(found - rounding, 0.0) if rounding <= MOST_ROUNDING else found


def _apart(value: Tensor, wanted: Tensor) -> float:
    if not torch.equal(value.isnan(), wanted.isnan()):
        return FAR
    gap = torch.where(value == wanted, 0.0, (value - wanted).abs().double())
    return float(gap.nan_to_num(0.0, FAR, FAR).amax()) if gap.numel() else 0.0


@dataclass(frozen=True)
class ShardCase:
    """Arguments, their expected results, and the cut of both."""

    program: Program
    sharded: Sharded
    cut: Cut
    arguments: Mapping[str, object]
    expected: Expected
    compute: Callable[..., Mapping]

    @property
    def upstream(self) -> Tensor:
        return self.expected.oracle.upstreams[0][0]

    def difference(self, module: ModuleType, groups: Sequence, place: Sequence[int]) -> float:
        """Distance of the results of the rank at ``place`` by ``module`` from its parts."""
        program, cut = self.program, self.cut
        parameters = [p for p in program.forward.parameters if p.name in self.arguments]
        own = {p.name: cut.part(self.arguments[p.name], p.layout, place) for p in parameters}
        mine = cut.part(self.upstream, program.backward.parameters[0].layout, place)
        keywords = _keywords(self.sharded, groups)
        found = self.compute(module, self.sharded.program, own, mine, keywords)
        part = partial(cut.part, place=place)
        return max([0.0, *(self.expected.distance(*each, part) for each in found.items())])


def _keywords(sharded: Sharded, groups: Sequence) -> dict[str, object]:
    axes = sharded.groups.axes
    names = ["group"] if len(groups) == 1 else [f"group_{axis.lower()}" for axis in axes]
    return dict(zip(names, groups, strict=True))


def _drawn(
    drawn: Definition, definition: Definition, program: Program, dims: Dims, absent: Collection[str]
) -> tuple[dict[str, object], Expected]:
    """Arguments for ``drawn`` at which everything is finite, if there are any."""
    (output,), inputs = definition.results, {t.name for t in definition.wanted}
    shape = tuple(length for axis in output.home for length in dims[axis])
    for draw in DRAWS:
        generator = torch.Generator().manual_seed(0)
        arguments = arguments_of(drawn, program, draw, generator, dims)
        arguments = {name: value for name, value in arguments.items() if name not in absent}
        upstream = draw(shape, generator=generator, dtype=torch.float64)
        leaves = {
            name: value.clone().requires_grad_() if name in inputs else value
            for name, value in arguments.items()
        }
        expected = Expected(Oracle(definition, leaves, leaves, ([upstream],), dims), program)
        if expected.finite:
            break
    return arguments, expected


def _all_of(
    module: ModuleType, program: Program, arguments: Mapping, upstream: Tensor, groups: Mapping
) -> dict[Key, object]:
    """The results of all functions of a module."""
    found: dict[Key, object] = {}

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
) -> dict[Key, object]:
    """The output of the differentiable function, and its gradients by autograd."""
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


def in_chunks(module, program, arguments, upstream, groups, chunk: int | None):
    return _differentiated(module, program, arguments, upstream, {**groups, "chunk": chunk})


def _given(function: Function, values: Mapping) -> dict:
    return {p.name: values[p.name] for p in function.parameters[1:] if p.name in values}


def _layouts(program: Program) -> dict[Key, Layout]:
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


class Cut:
    """Cuts whole tensors into the parts of ranks."""

    def __init__(self, sharded: Sharded, dims: Dims, shares: Sequence[int]):
        self.groups, self.dims, self.shares = sharded.groups, dims, shares
        self.starts: dict[str, list[int]] = {}
        program = sharded.program
        of_code = {code: axis for axis, code in reversed(program.sizes)}
        parts = {of_code[c]: [of_code[part] for part in made] for c, made in program.flattened}
        lengths = {axis.name: size for axis, size in dims.items()}
        for axis in self.groups.axes:
            goes_round = self.groups.ring and axis == self.groups.chunked
            own = shares[::-1] if goes_round else shares
            length = lengths[axis][0]
            times = prod(prod(lengths[part]) for part in parts.get(axis, ())[1:])
            units, total = length // times, sum(shares)
            ends = [units * sofar // total * times for sofar in accumulate(own)]
            self.starts[axis] = [0, *ends]

    def part(self, value, layout: Layout, place: Sequence[int]):
        if not isinstance(value, Tensor):
            return value
        at = 0
        for dim, group in zip(layout, self.groups.at_home(layout), strict=True):
            if group:
                starts = self.starts[group]
                own = place[0 if self.groups.ring else self.groups.axes.index(group)]
                times = value.shape[at] / max(starts[-1], 1)
                start, stop = (round(starts[i] * times) for i in (own, own + 1))
                value = value.narrow(at, start, stop - start).clone()
            at += len(self.dims[dim.axis]) if not dim.one or len(self.dims[dim.axis]) != 1 else 1
        return value
