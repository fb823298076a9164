"""What a random forward is called with: sizes, and arguments of those sizes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

import torch

from derive.language.divisors import size_divisors
from derive.language.notation.definition import Definition
from derive.language.symbols import Axes, Axis
from random_forwards.named import DOUBLE

DISTINCT = (3, 4, 2, 5, 6, 7)
IGNORED_SHARE = ZERO_SHARE = 0.3


@dataclass(frozen=True)
class Batch:
    """Sizes, and how the arguments are drawn: whether what may be left out is, whether numbers
    differ from their defaults, and whether dimensions of what is broadcast have size 1.
    """

    dims: Mapping[Axis, tuple[int, ...]]
    seed: int
    bare: bool = False
    other_numbers: bool = False
    narrow: bool = False


def batches(definition: Definition, seed: int) -> Iterator[Batch]:
    """Different sizes; small ones, many of them 1 or equal; and different ones again, with all
    that may be left out left out.
    """
    chance = random.Random(f"batches {seed}")
    yield Batch(_dims(definition, lambda i: DISTINCT[i % len(DISTINCT)], ()), seed)
    small = _dims(definition, lambda i: chance.choice((1, 1, 2, 2, 3)), (2, 1))
    yield Batch(small, seed + 1, other_numbers=True, narrow=True)
    if definition.optional:
        yield Batch(_dims(definition, lambda i: chance.choice((2, 3, 4)), ()), seed + 2, bare=True)


def _dims(definition: Definition, size, lead: tuple[int, ...]) -> dict[Axis, tuple[int, ...]]:
    """The dimensions of every axis; where the mathematics divides by a size that would be 0, all
    are larger.
    """
    divisors = [d for s in definition.statements for d in size_divisors(s.expression)]
    chosen = {axis: size(i) for i, axis in enumerate(definition.independent_axes)}
    for more in range(9):
        dims = {
            axis: (*lead, n + more) if isinstance(axis, Axes) else (n + more,)
            for axis, n in chosen.items()
        }
        sizes = definition.sizes_from({axis: prod(own) for axis, own in dims.items()})
        if all(d.subs(sizes) > 0 for d in divisors):
            break
    return {axis: (n,) for axis, n in sizes.items()} | dims


def arguments_of(definition: Definition, labels, batch: Batch) -> dict[str, object]:
    """What is passed to the differentiable function."""
    generator = torch.Generator().manual_seed(batch.seed)
    chance = random.Random(f"arguments {batch.seed}")
    ignored = {i.label.name for i in definition.ignoring}
    optional = {t.name for t, _ in definition.optional}
    passed: dict[str, object] = {}
    for t in definition.arguments:
        shape = [n for axis in t.home for n in batch.dims[axis]]
        if batch.bare and t.name in optional:
            continue
        if t.role == "label":
            most = min((prod(batch.dims[a]) for a in labels.get(t.name, ())), default=1)
            value = torch.randint(most, tuple(shape), generator=generator)
            if t.name in ignored:
                out = torch.rand(tuple(shape), generator=generator) < IGNORED_SHARE
                value = value.masked_fill(out, ignore_index(definition, batch))
            passed[t.name] = value
            continue
        if t.name in definition.broadcast and batch.narrow:
            shape = [1 if chance.random() < 0.5 else n for n in shape]
            while shape and shape[0] == 1 and chance.random() < 0.5:
                shape = shape[1:]
        value = torch.rand(tuple(shape), generator=generator, dtype=DOUBLE) * 4 - 2
        if t.role == "given":  # as in a mask, some are 0
            value = value * (torch.rand(tuple(shape), generator=generator) > ZERO_SHARE)
        passed[t.name] = value.requires_grad_() if t.role == "input" else value
    passed |= {name: prod(batch.dims[axis]) for name, axis in definition.size_arguments}
    if batch.other_numbers:
        passed |= {t.name: 1.25 * v for t, v in definition.scalars if isinstance(v, (int, float))}
        if ignored:
            passed["ignore_index"] = ignore_index(definition, batch)
    return passed


def ignore_index(definition: Definition, batch: Batch) -> int:
    return -3 if batch.other_numbers else definition.ignoring[0].default
