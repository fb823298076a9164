"""Compares a generated module with torch's autograd, on random data in double precision.

The oracle is autograd through the statements themselves (``interpret.py``), not through anything
that was printed. Data hides nothing: inputs and upstream gradients are random, and all axes have
different lengths. An `Axes` is tried as one dimension and as two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.abc import InspectLoader
from importlib.util import module_from_spec, spec_from_loader
from math import prod
from types import ModuleType

import torch
from sympy.core.relational import Relational
from torch import Tensor

from codegen.program import Function, Program
from codegen.targets.torch.interpret import interpreted
from derive.definition import Definition
from derive.layout import layouts_of
from derive.symbols import Axes, Axis, size_divisors

LENGTHS = (5, 3, 4, 6, 2, 7, 8, 9)
MOST_ADDED = 20
MASKED_SHARE = 0.2  # of a mask; where all of a row is masked out autograd often has no number

Dims = Mapping[Axis, tuple[int, ...]]  # the dimensions of every axis, by their lengths

# Normal numbers first; where the mathematics is not defined for those (a logarithm, a root),
# positive ones, then ones between 0 and 1. Small ones last, where hardly anything saturates.
DRAWS: tuple[Callable[..., Tensor], ...] = (
    torch.randn,
    lambda shape, **how: torch.rand(shape, **how) + 0.5,
    lambda shape, **how: torch.rand(shape, **how) * 0.8 + 0.1,
    lambda shape, **how: torch.randn(shape, **how) * 0.2,
)
# Between these a difference may be the rounding of a gradient that cancels, such as 1 - tanh(9)**2:
# autograd's as well as ours. Then the next draw decides.
ROUNDED = (1e-11, 1e-6)


class _OfText(InspectLoader):
    """Imports a module from its text: nothing is written for it that could be left behind."""

    def __init__(self, text: str):
        self.text = text

    def get_source(self, fullname: str) -> str:
        return self.text


def load(text: str, name: str) -> ModuleType:
    """The generated module with this text, under a name of its own."""
    loader = _OfText(text)
    module = module_from_spec(spec_from_loader(f"gradform_check_{name}", loader))
    loader.exec_module(module)
    return module


def largest_difference(text: str, definition: Definition, program: Program) -> float:
    """The largest difference of any gradient to autograd's, relative to autograd's largest entry.

    Forward, closed form and chain are compared. A result of another shape, or one that is not
    finite where autograd's is, counts as infinitely far.
    """
    module = load(text, program.name)
    largest, finite_ones = 0.0, []
    for draw in DRAWS:
        differences = [
            difference
            for dims in dims_tried(definition)
            for difference in _differences(module, definition, program, draw, dims)
        ]
        largest = max((difference for difference, _ in differences), default=0.0)
        if all(finite for _, finite in differences):
            finite_ones.append(largest)
            if not ROUNDED[0] < largest < ROUNDED[1]:
                break
    return min(finite_ones, default=largest)


def _differences(
    module: ModuleType, definition: Definition, program: Program, draw, dims: Dims
) -> Iterator[tuple[float, bool]]:
    generator = torch.Generator().manual_seed(0)
    arguments = arguments_of(definition, program, draw, generator, dims)
    differentiable = {p.name for p in program.forward.parameters if p.role == "input"}
    leaves = {
        name: value.requires_grad_() if name in differentiable else value
        for name, value in arguments.items()
    }
    merged = leaves | {t.name: _merged(leaves[t.name], t.home, dims) for t in definition.arguments}
    expected = interpreted(definition, merged)

    def stored(name: str, value: Tensor) -> Tensor:
        return _stored(definition, name, value, dims) if name in expected else value

    output = stored(definition.output.name, expected[definition.output.name])
    yield _difference(getattr(module, program.name)(**leaves).detach(), output.detach())
    required = {name: v for name, v in leaves.items() if name not in _optional(program)}
    if len(required) < len(leaves):
        bare = interpreted(definition, {name: merged[name] for name in required})
        bare = bare[program.forward.results[0]].reshape(output.shape)
        yield _difference(getattr(module, program.name)(**required).detach(), bare.detach())
    with torch.no_grad():
        atoms = getattr(module, program.atoms.name)(**leaves)
        for name, value in expected.items():
            yield _difference(getattr(atoms, name), stored(name, value.detach()))
    for upstream in (
        draw(tuple(output.shape), generator=generator, dtype=torch.float64),
        torch.ones((), dtype=torch.float64).expand(output.shape),  # as sum() passes it
    ):
        met = {n: v for n, v in (leaves | expected).items() if n in differentiable or n in expected}
        gradients = {
            name: stored(name, gradient)
            for name, gradient in _gradients(output, met, upstream).items()
        }
        yield from _gradients_compared(module, program, leaves, output, atoms, upstream, gradients)


def _gradients(output: Tensor, met: Mapping[str, Tensor], upstream: Tensor) -> dict[str, Tensor]:
    """Autograd's gradients of what was met on the way to the output; of what does not reach it,
    zero.
    """
    met = {name: value for name, value in met.items() if value.requires_grad}
    found: tuple[Tensor | None, ...] = (None,) * len(met)
    if output.requires_grad:
        found = torch.autograd.grad(
            output, list(met.values()), upstream, allow_unused=True, retain_graph=True
        )
    return {
        name: torch.zeros_like(value) if gradient is None else gradient
        for (name, value), gradient in zip(met.items(), found, strict=True)
    }


def _gradients_compared(
    module: ModuleType,
    program: Program,
    leaves: Mapping[str, object],
    output: Tensor,
    atoms,
    upstream: Tensor,
    expected: Mapping[str, Tensor],
) -> Iterator[tuple[float, bool]]:
    """The closed form and the chain beside autograd, the chain at every statement too."""
    forward, backward, chain_function = (
        getattr(module, f.name) for f in (program.forward, program.backward, program.chain)
    )
    with torch.no_grad():
        result = forward(**leaves)
        values = leaves | atoms._asdict() | result._asdict() | {"": upstream}
        before = {n: v.clone() for n, v in values.items() if isinstance(v, Tensor)}
        closed = backward(upstream, **_named(program.backward, result._asdict()))
        chained = chain_function(upstream, **_named(program.chain, leaves | atoms._asdict()))
        yield _difference(result[0], output)
        for name, value in before.items():  # nothing that was passed may be written to
            yield _difference(values[name], value)
        for name, gradient in expected.items():
            step = getattr(chained, f"d{name}")
            if name in leaves:
                yield _difference(getattr(closed, f"d{name}"), gradient)
            elif step.shape == gradient.shape:  # what a choice leaves out need not be finite
                step, gradient = (torch.where(gradient.isfinite(), v, 0) for v in (step, gradient))
            yield _difference(step, gradient)


def _optional(program: Program) -> set[str]:
    return {p.name for p in program.forward.tensors if p.default is not None}


def _named(function: Function, values: dict) -> dict:
    return {p.name: values[p.name] for p in function.parameters[1:] if p.name in values}


def dims_tried(definition: Definition) -> Iterator[Dims]:
    """Sizes at which nothing that the mathematics divides by is zero, and which permit the defaults
    of the scalars; with an `Axes` also those where it is two dimensions.
    """
    divisors = [d for s in definition.statements for d in size_divisors(s.expression)]
    several = any(isinstance(axis, Axes) for axis in definition.axes)
    for lead in ((), (2,)) if several else ((),):
        for more in range(MOST_ADDED):
            chosen = {
                axis: (*(lead if isinstance(axis, Axes) else ()), LENGTHS[i % len(LENGTHS)] + more)
                for i, axis in enumerate(definition.independent_axes)
            }
            sizes = definition.sizes_from({axis: prod(dims) for axis, dims in chosen.items()})
            defaults = definition.defaults_at(sizes)
            if all(d.subs(sizes) > 0 for d in divisors) and definition.permits(defaults, sizes):
                break
        yield {axis: (size,) for axis, size in sizes.items()} | chosen


def _shape(axes: Iterable[Axis], dims: Dims) -> tuple[int, ...]:
    return tuple(size for axis in axes for size in dims[axis])


def _stored(definition: Definition, name: str, value: Tensor, dims: Dims) -> Tensor:
    """What the oracle found for a statement, in the dimensions in which the code has it."""
    home, layout = definition.by_name[name].tensor.home, layouts_of(definition)[name]
    value = value.permute([home.index(dim.axis) for dim in layout if not dim.one])
    sizes = ((1 if dim.one else size) for dim in layout for size in dims[dim.axis])
    return value.reshape(tuple(sizes))


def _merged(tensor: Tensor, axes: Iterable[Axis], dims: Dims) -> Tensor:
    """``tensor`` with one dimension for each of its axes, as the oracle has them."""
    return tensor.reshape([prod(dims[axis]) for axis in axes])


def arguments_of(
    definition: Definition, program: Program, draw, generator, dims: Dims
) -> dict[str, object]:
    sizes = {axis.name: prod(lengths) for axis, lengths in dims.items()}
    indexed: dict[str, list[str]] = {}
    for label, axis in program.labels:
        indexed.setdefault(label, []).append(axis)
    ignored = {ignoring.label.name: ignoring.default for ignoring in definition.ignoring}
    arguments: dict[str, object] = {}
    for p in program.forward.parameters:
        shape = _shape((dim.axis for dim in p.layout), dims)
        if p.role == "label":
            high = min((sizes[axis] for axis in indexed.get(p.name, ())), default=1)
            arguments[p.name] = _indices(high, shape, generator)
            if p.name in ignored:
                kept = torch.rand(shape, generator=generator) > MASKED_SHARE
                arguments[p.name] = torch.where(kept, arguments[p.name], ignored[p.name])
        elif p.role == "given":
            arguments[p.name] = _drawn_without_gradient(definition, p.name, shape, draw, generator)
        elif p.role == "size":
            arguments[p.name] = next(sizes[axis] for axis, n in program.sizes if n == p.name)
        elif p.role == "input":
            arguments[p.name] = draw(shape, generator=generator, dtype=torch.float64)
    return arguments


def _indices(high: int, shape: tuple[int, ...], generator) -> Tensor:
    """Indices below ``high``: as many different ones as there are, but one of them twice, so that
    it shows where entries are mixed up, and where what meets in one entry is not added up.
    """
    count = prod(shape)
    entries = torch.randperm(high, generator=generator)[: max(2, count - 1)]
    return entries[torch.randperm(count, generator=generator) % len(entries)].reshape(shape)


def _drawn_without_gradient(
    definition: Definition, name: str, shape: list[int], draw, generator
) -> Tensor:
    """Numbers as for any tensor; where it is compared with numbers, as a mask is, those and the
    next.
    """
    compared = [
        test
        for s in definition.statements
        for test in s.expression.atoms(Relational)
        if isinstance(test.lhs, Tensor) and test.lhs.name == name and test.rhs.is_number
    ]
    if not compared:
        return draw(tuple(shape), generator=generator, dtype=torch.float64)
    limits = sorted({float(test.rhs) for test in compared})
    values = limits if len(limits) > 1 else [limits[0], limits[0] + 1]
    shares = torch.rand(tuple(shape), generator=generator)
    chosen = (shares > MASKED_SHARE) * (1 + shares * (len(values) - 1)).long()
    return torch.tensor(values, dtype=torch.float64)[chosen.clamp(max=len(values) - 1)]


def _difference(actual: Tensor, expected: Tensor) -> tuple[float, bool]:
    """(relative difference, whether what was expected is finite, or -oo as in a masked score)."""
    if actual.shape != expected.shape:
        return float("inf"), True
    finite = bool((expected.isfinite() | (expected == -torch.inf)).all())
    if not expected.numel():
        return 0.0, True
    gap = torch.where(actual == expected, 0, actual - expected).abs().max().item()
    scale = expected.abs().nan_to_num(posinf=0).max().item()
    return (gap / scale if scale > 1e-12 else gap) if finite and gap == gap else float(
        "inf"
    ), finite
