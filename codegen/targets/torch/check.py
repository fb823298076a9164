"""Compares a generated module with torch's autograd, on random data in double precision.

The oracle is autograd through the statements themselves (``interpret.py``), not through anything
that was printed. Data hides nothing: inputs and upstream gradients are random, and all axes have
different lengths.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor

from codegen.program import Function, Program
from codegen.targets.torch.interpret import interpreted
from derive.definition import Definition
from derive.symbols import size_divisors

LENGTHS = (5, 3, 4, 6, 2, 7)
MOST_ADDED = 20

# Normal numbers first; where the mathematics is not defined for those (a logarithm, a root),
# positive ones, then ones between 0 and 1.
DRAWS: tuple[Callable[..., Tensor], ...] = (
    torch.randn,
    lambda shape, **how: torch.rand(shape, **how) + 0.5,
    lambda shape, **how: torch.rand(shape, **how) * 0.8 + 0.1,
)


def load(file: Path) -> ModuleType:
    """The generated module in ``file``, under a name of its own."""
    spec = importlib.util.spec_from_file_location(f"gradform_check_{file.stem}", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def largest_difference(file: Path, definition: Definition, program: Program) -> float:
    """The largest difference of any gradient to autograd's, relative to autograd's largest entry.

    Forward, closed form and chain are compared. A result of another shape, or one that is not
    finite where autograd's is, counts as infinitely far.
    """
    module = load(file)
    for draw in DRAWS:
        differences = list(_differences(module, definition, program, draw))
        if all(finite for _, finite in differences):
            break
    return max((difference for difference, _ in differences), default=0.0)


def _differences(
    module: ModuleType, definition: Definition, program: Program, draw
) -> Iterator[tuple[float, bool]]:
    generator = torch.Generator().manual_seed(0)
    arguments = _arguments(definition, program, draw, generator)
    atoms_function = getattr(module, program.atoms.name)
    leaves = {
        name: value.requires_grad_()
        if isinstance(value, Tensor) and value.is_floating_point()
        else value
        for name, value in arguments.items()
    }
    expected = interpreted(definition, leaves)
    output = expected[program.forward.results[0]]
    yield _difference(getattr(module, program.name)(**leaves).detach(), output.detach())
    with torch.no_grad():
        atoms = atoms_function(**leaves)
        for name, value in expected.items():
            yield _difference(getattr(atoms, name).reshape(value.shape), value.detach())
    for upstream in (
        draw(tuple(output.shape), generator=generator, dtype=torch.float64),
        torch.ones((), dtype=torch.float64).expand(output.shape),  # as sum() passes it
    ):
        yield from _gradients_compared(module, program, leaves, output, atoms, upstream)


def _gradients_compared(
    module: ModuleType, program: Program, leaves, output: Tensor, atoms, upstream: Tensor
) -> Iterator[tuple[float, bool]]:
    forward, backward, chain_function = (
        getattr(module, f.name) for f in (program.forward, program.backward, program.chain)
    )
    inputs = [p.name for p in program.forward.parameters if p.role == "input"]
    found = {name: torch.zeros_like(leaves[name]) for name in inputs}
    if output.requires_grad:
        gradients = torch.autograd.grad(
            output,
            [leaves[n] for n in inputs],
            upstream,
            allow_unused=True,
            retain_graph=True,
        )
        found |= {name: g for name, g in zip(inputs, gradients, strict=True) if g is not None}
    with torch.no_grad():
        result = forward(**leaves)
        values = leaves | atoms._asdict() | result._asdict() | {"": upstream}
        before = {n: v.clone() for n, v in values.items() if isinstance(v, Tensor)}
        closed = backward(upstream, **_named(program.backward, result._asdict()))
        chained = chain_function(upstream, **_named(program.chain, leaves | atoms._asdict()))
        yield _difference(result[0], output)
        for name, value in before.items():  # nothing that was passed may be written to
            yield _difference(values[name], value)
        for name, expected in found.items():
            yield _difference(getattr(closed, f"d{name}"), expected)
            yield _difference(getattr(chained, f"d{name}"), expected)


def _named(function: Function, values: dict) -> dict:
    return {p.name: values[p.name] for p in function.parameters[1:] if p.name in values}


def _lengths(definition: Definition, program: Program) -> dict[str, int]:
    """A length for every size, at which nothing that the mathematics divides by is zero."""
    divisors = [d for s in definition.statements for d in size_divisors(s.expression)]
    for more in range(MOST_ADDED):
        chosen = enumerate(definition.independent_axes)
        at = definition.sizes_from({a: LENGTHS[i % len(LENGTHS)] + more for i, a in chosen})
        if all(d.subs(at) > 0 for d in divisors):
            break
    return {dict(program.sizes)[axis.name]: size for axis, size in at.items()}


def _arguments(definition: Definition, program: Program, draw, generator) -> dict[str, object]:
    sizes = _lengths(definition, program)
    names = dict(program.sizes)
    indexed: dict[str, list[str]] = {}
    for label, axis in program.labels:
        indexed.setdefault(label, []).append(axis)
    arguments: dict[str, object] = {}
    for p in program.forward.parameters:
        shape = [sizes[names[axis]] for axis in p.axes]
        if p.role == "label":
            high = min((sizes[names[axis]] for axis in indexed.get(p.name, ())), default=1)
            arguments[p.name] = torch.randint(high, shape, generator=generator)
        elif p.role == "size":
            arguments[p.name] = sizes[p.name]
        elif p.role == "input":
            arguments[p.name] = draw(tuple(shape), generator=generator, dtype=torch.float64)
    return arguments


def _difference(actual: Tensor, expected: Tensor) -> tuple[float, bool]:
    """(relative difference, whether what was expected is finite)."""
    if actual.shape != expected.shape:
        return float("inf"), True
    finite = bool(expected.isfinite().all())
    if not expected.numel():
        return 0.0, True
    gap = (actual - expected).abs().max().item()
    scale = expected.abs().max().item()
    return (gap / scale if scale > 1e-12 else gap) if finite and gap == gap else float(
        "inf"
    ), finite
