"""Points at which a module is tried in every way (``every_use.py``), with autograd through the
statements there: the oracle of second derivatives.

A branch of a choice has no part where it is not taken (``taken.py``), so values that are finite in
the mathematics are finite here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from codegen.program import Program
from codegen.targets.torch.check import DRAWS, MOST_ADDED, arguments_of
from codegen.targets.torch.edges import Edge, edges_of, on_edge
from codegen.targets.torch.oracle import Dims, merged, stored
from codegen.targets.torch.several import of_statements
from codegen.targets.torch.taken import taken
from derive.language.notation.definition import Definition
from derive.language.symbols import Axes

NUDGE = 1e-15  # by which inputs differ in their last place
CLOSE, CLOSER = 1e-6, 3e-7  # to an edge; steep functions differ at the two
SIDES = 4  # ways in which entries are on them together, and as many the other way round
SMALL = (4, 3, 2, 5, 6, 7, 8, 9)  # lengths of the axes


@dataclass(frozen=True)
class UsePoint:
    """A use of a module: its sizes and numbers, the optional tensors left out, whether it is tried
    in all ways or only differentiated twice, and the edge on which some entries are.
    """

    dims: Dims
    draw: Callable[..., Tensor] = torch.randn
    absent: frozenset[str] = frozenset()
    thorough: bool = False
    edge: Edge | None = None

    def __str__(self) -> str:
        if self.edge is not None:
            return str(self.edge)
        sizes = (f"{axis} = {'x'.join(map(str, n)) or '()'}" for axis, n in self.dims.items())
        left_out = f", without {', '.join(sorted(self.absent))}" if self.absent else ""
        return f"where {', '.join(sizes) or 'there is no axis'}{left_out}"


def points_of(definition: Definition, program: Program) -> Iterator[UsePoint]:
    optional = [p.name for p in program.forward.tensors if p.default is not None]
    whole = next(dims_with(definition, {}))
    draw = _draw_for(definition, program, whole)
    yield UsePoint(whole, draw, thorough=True)
    absent = [frozenset([name]) for name in optional] if len(optional) > 1 else []
    for names in [*absent, *[frozenset(optional)] * bool(optional)]:
        yield UsePoint(whole, draw, absent=names, thorough=len(names) == len(optional))
    axes = definition.independent_axes
    ones = [{axis: () if isinstance(axis, Axes) else (1,)} for axis in axes]
    if len(axes) > 1:
        ones.append(dict.fromkeys(axes, (1,)))
    for own in ones:
        for dims in dims_with(definition, own):
            yield UsePoint(dims, _draw_for(definition, program, dims))
            break
    for edge in edges_of(definition):
        yield UsePoint(whole, draw, edge=edge)


def dims_with(definition: Definition, own: Mapping) -> Iterator[Dims]:
    """Small lengths, no two alike, that the mathematics allows; ``own`` lengths are given."""
    for more in range(MOST_ADDED):
        lengths = (n + more for n in SMALL)
        chosen = {
            a: own.get(a) or (n,)
            for a, n in zip(definition.independent_axes, lengths, strict=False)
        }
        chosen |= {a: n for a, n in own.items() if n == ()}
        counts = {a: torch.Size(n).numel() for a, n in chosen.items()}
        fitting = definition.fitting(counts, kept=own)
        chosen |= {a: (n,) for a, n in fitting.items() if n != counts[a]}
        sizes = definition.sizes_from(fitting)
        allowed = definition.fit(fitting)
        if allowed and definition.permits(definition.defaults_at(sizes), sizes):
            yield {axis: (size,) for axis, size in sizes.items()} | chosen


def _draw_for(definition: Definition, program: Program, dims: Dims) -> Callable[..., Tensor]:
    """The first way to draw numbers for which the mathematics is defined."""
    for draw in DRAWS:
        if statements_at(definition, program, UsePoint(dims, draw)).finite:
            return draw
    return DRAWS[0]


def statements_at(definition: Definition, program: Program, point: UsePoint) -> Statements:
    generator = torch.Generator().manual_seed(2)
    arguments = arguments_of(definition, program, point.draw, generator, point.dims)
    kept = {n: a for n, a in arguments.items() if n not in point.absent}
    inputs = [p.name for p in program.forward.parameters if p.role == "input" and p.name in kept]
    if point.edge is not None:
        kept |= on_edge(point.edge, {n: kept[n] for n in inputs})
    return Statements(definition, kept, tuple(inputs), point.dims)


class Statements:
    """Results of autograd through the statements, at one point."""

    def __init__(
        self, definition: Definition, arguments: Mapping, inputs: tuple[str, ...], dims: Dims
    ):
        self.definition, self.arguments, self.inputs = definition, arguments, inputs
        self.dims = dims

    @cached_property
    def output(self) -> Tensor:
        with torch.no_grad():
            return self._value(self.arguments)

    @cached_property
    def vectors(self) -> dict[str, Tensor]:
        generator = torch.Generator().manual_seed(3)
        return {n: _normal(self.arguments[n], generator) for n in self.inputs}

    @cached_property
    def upstream(self) -> Tensor:
        return _normal(self.output, torch.Generator().manual_seed(4))

    @property
    def finite(self) -> bool:
        found = [self.output, *self.derivatives[0].values()]
        found += [t for _, second in self.derivatives[1].values() for t in second.values()]
        return all(bool(t.isfinite().all()) for t in found)

    @cached_property
    def derivatives(self) -> tuple[dict[str, Tensor], dict[str, tuple[Tensor, dict[str, Tensor]]]]:
        return self._derivatives(self.arguments)

    @cached_property
    def nudged(self):
        """The derivatives with the inputs moved in their last place."""
        generator = torch.Generator().manual_seed(4)
        moved = {
            n: self.arguments[n] * (1 + NUDGE * _normal(self.arguments[n], generator))
            for n in self.inputs
        }
        return self._derivatives({**self.arguments, **moved})

    @cached_property
    def beside(self):
        """Derivatives close to this point, and closer: each entry is on both sides once."""
        return [
            [self._moved(side * step, seed) for step in (CLOSE, CLOSER)]
            for seed in range(SIDES)
            for side in (1, -1)
        ]

    def _moved(self, step: float, seed: int):
        generator = torch.Generator().manual_seed(seed)
        own = {n: self.arguments[n] for n in self.inputs}
        ways = {n: step * (1 + a.abs()) * _normal(a, generator) for n, a in own.items()}
        return self._derivatives({**self.arguments, **{n: a + ways[n] for n, a in own.items()}})

    def _value(self, arguments: Mapping[str, object]) -> Tensor:
        given = [t for t in self.definition.arguments if t.name in arguments]
        whole = {t.name: merged(arguments[t.name], t.home, self.dims) for t in given}
        found = taken(self.definition, {**arguments, **whole})
        names = [t.name for t in self.definition.results]
        return of_statements([stored(self.definition, n, found[n], self.dims) for n in names])

    def _derivatives(self, arguments: Mapping):
        """The gradients, and for each times its vector the gradients by the upstream one and by the
        inputs; zeros where nothing depends on an input.
        """
        leaves = {n: arguments[n].detach().clone().requires_grad_() for n in self.inputs}
        output = self._value({**arguments, **leaves})
        upstream = self.upstream.clone().requires_grad_()
        first = gradients_of([output], [upstream], [*leaves.values()])
        second = {}
        for name, gradient in zip(leaves, first, strict=True):
            found = gradients_of([gradient], [self.vectors[name]], [upstream, *leaves.values()])
            second[name] = (
                found[0].detach(),
                dict(zip(leaves, (g.detach() for g in found[1:]), strict=True)),
            )
        return {n: g.detach() for n, g in zip(leaves, first, strict=True)}, second


def _normal(like: Tensor, generator) -> Tensor:
    return torch.randn(like.shape, generator=generator, dtype=torch.float64)


def gradients_of(
    outputs: Sequence, vectors: Sequence, inputs: Sequence, **options: bool
) -> list[Tensor]:
    given = [
        (o, v) for o, v in zip(outputs, vectors, strict=True) if o is not None and o.requires_grad
    ]
    if not given:
        batch = vectors[0].shape[:1] if options.get("is_grads_batched") else ()
        return [t.new_zeros((*batch, *t.shape)) for t in inputs]
    outputs, vectors = zip(*given, strict=True)
    how = {"create_graph": True, "materialize_grads": True} | options
    return list(torch.autograd.grad(outputs, inputs, vectors, **how))
