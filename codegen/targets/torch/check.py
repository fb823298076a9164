"""Data for comparing text with the oracle before it is written: random, in float64.

The oracle is autograd through the statements themselves (``interpret.py``), not through anything
that was printed. Data hides nothing: inputs and upstream gradients are random, and all axes have
different lengths. An `Axes` is tried as one dimension and as two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod

import torch
from sympy.core.relational import Relational
from torch import Tensor

from codegen.program import Program
from codegen.targets.torch.oracle import MOST_ROUNDING, Difference, Dims
from codegen.targets.torch.square import positive_definite
from derive.language.guarded import guarded_zeros, unguarded_divisors
from derive.language.notation.definition import Definition
from derive.language.symbols import Axes, Axis

LENGTHS = (5, 3, 4, 6, 2, 7, 8, 9)  # no two alike, so that axes that are swapped show
MOST_ADDED = 20  # to every length, one by one, until nothing is refused
MASKED_SHARE = 0.2  # of a mask; where all of a row is masked out autograd often has no number

# Normal numbers first; where the mathematics is not defined for those (a logarithm, a root),
# positive ones, then ones between 0 and 1. Small ones, where hardly anything saturates. Then, where
# there was none of all these, what acosh and the logarithm of -x are defined for, and matrices that
# have a factor.
USUAL = 4  # of the draws
DRAWS: tuple[Callable[..., Tensor], ...] = (
    torch.randn,
    lambda shape, **how: torch.rand(shape, **how) + 0.5,
    lambda shape, **how: torch.rand(shape, **how) * 0.8 + 0.1,
    lambda shape, **how: torch.randn(shape, **how) * 0.2,
    lambda shape, **how: torch.rand(shape, **how) * 2 + 1.1,
    lambda shape, **how: -torch.rand(shape, **how) * 0.8 - 0.1,
    lambda shape, **how: -torch.rand(shape, **how) * 2 - 1.1,
    positive_definite,
)


def largest_of(
    differences_at: Callable[..., Iterable[Difference]], definition: Definition
) -> float:
    """The largest of the differences at the draws that decide them."""
    decided: dict[str, float] = {}
    undecided: dict[str, float] = {}
    doubtful: set[str] = set()  # and not seen since where nothing is rounded off
    told: set[str] = set()  # decided by one upstream gradient, not repeated for others
    for i, draw in enumerate(DRAWS):
        if i >= USUAL and decided.keys() | undecided.keys():
            break
        differences = [
            difference
            for dims in dims_tried(definition)
            for difference in differences_at(draw, dims)
        ]
        if not all(found.finite for found in differences):
            continue
        for found in differences:
            known = decided if found.decides else undecided
            known[found.what] = max(known.get(found.what, 0.0), found.counted)
            if found.decides and found.there:
                told.add(_without_upstream(found.what))
        doubtful &= {found.what for found in differences if not found.there}
        doubtful |= {found.what for found in differences if found.rounding}
        if not doubtful or max(decided.values(), default=0.0) > MOST_ROUNDING:
            break
    untold = {w: d for w, d in undecided.items() if _without_upstream(w) not in told}
    return max((untold | decided).values(), default=float("inf"))


def _without_upstream(what: str) -> str:
    """The name of a gradient without its upstream one; other names as they are."""
    number, _, name = what.rpartition(" ")
    return name if number.isdigit() else what


def dims_tried(definition: Definition, tried: Sequence[int] = LENGTHS) -> Iterator[Dims]:
    """Sizes, from those ``tried`` on, at which no divisor of the mathematics is zero, and which
    permit the defaults of the scalars; with an `Axes` also those where it is two dimensions.
    """
    several = any(isinstance(axis, Axes) for axis in definition.axes)
    for lead in ((), (2,)) if several else ((),):
        for more in range(MOST_ADDED):
            lengths = {
                axis: tried[i % len(tried)] + more
                for i, axis in enumerate(definition.independent_axes)
            }
            fitting = definition.fitting(lengths)
            chosen = {
                axis: (*(lead if isinstance(axis, Axes) else ()), length)
                for axis, length in fitting.items()
            }
            sizes = definition.sizes_from({axis: prod(dims) for axis, dims in chosen.items()})
            defaults = definition.defaults_at(sizes)
            if definition.fit(fitting) and definition.permits(defaults, sizes):
                break
        yield {axis: (size,) for axis, size in sizes.items()} | chosen
        yield from _guarded_dims(definition, chosen)


def _guarded_dims(definition: Definition, chosen: Dims) -> Iterator[Dims]:
    """``chosen`` at the sizes of single axes at which a choice guards a division."""
    formulas = [s.expression for s in definition.statements]
    divisors = [d for e in formulas for d in unguarded_divisors(e)]
    for axis, size in dict.fromkeys(zero for e in formulas for zero in guarded_zeros(e)):
        if len(chosen.get(axis, ())) != 1:
            continue
        own = {**chosen, axis: (size,)}
        sizes = definition.sizes_from({axis: prod(dims) for axis, dims in own.items()})
        permitted = definition.permits(definition.defaults_at(sizes), sizes)
        if permitted and all(d.subs(sizes) != 0 for d in divisors):
            yield {axis: (size,) for axis, size in sizes.items()} | own


def _shape(axes: Iterable[Axis], dims: Dims) -> tuple[int, ...]:
    return tuple(size for axis in axes for size in dims[axis])


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
            of_axis = (sizes[axis] for axis, n in program.sizes if n == p.name)
            arguments[p.name] = next(of_axis, 1)  # any, where no line needs it
        elif p.role == "input":
            arguments[p.name] = draw(shape, generator=generator, dtype=torch.float64)
    return arguments


def _indices(high: int, shape: tuple[int, ...], generator) -> Tensor:
    """Indices below ``high``: as many different ones as there are, but one of them twice, so that
    mixed-up entries show, and entries at one index that are not added up.
    """
    count = prod(shape)
    entries = torch.randperm(high, generator=generator)[: max(2, count - 1)]
    return entries[torch.randperm(count, generator=generator) % len(entries)].reshape(shape)


def _drawn_without_gradient(
    definition: Definition, name: str, shape: list[int], draw, generator
) -> Tensor:
    """Numbers as for any tensor; where it is compared with numbers, as a mask is, those and their
    successors.
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
