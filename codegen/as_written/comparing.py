"""Compares a forward, as it was read, with its class body at random numbers."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from codegen.as_written.entries import NumberEntries, Unreadable
from codegen.as_written.running import outputs_of
from codegen.program import Program
from codegen.targets.torch.check import DRAWS, arguments_of, dims_tried
from codegen.targets.torch.interpret import interpreted
from derive.language.errors import shortened_text
from derive.language.notation.forward import Forward

LENGTHS = ((3, 2, 4, 5), (2, 4, 3, 6))  # of the axes, in their order: no two alike
FEW = 4  # draws, of which one has numbers
SAME = 1e-8  # relative to the largest entry: far above rounding, far below another formula


def difference_from_body(forward: type[Forward], program: Program) -> str:
    """Describe how an output of the definition of ``forward`` differs from its class body; empty if
    none does, or if the class body cannot be run with numbers.
    """
    try:
        return next(filter(None, _differences(forward, program)), "")
    except Unreadable:
        return ""


def _differences(forward: type[Forward], program: Program) -> Iterator[str]:
    definition = forward.definition
    for lengths in LENGTHS:
        dims = next(dims_tried(definition, lengths))
        sizes = {axis: n for axis, (n, *more) in dims.items() if not more}
        for draw in DRAWS[:FEW]:
            generator = torch.Generator().manual_seed(0)
            given = arguments_of(definition, program, draw, generator, dims)
            said = said_by(forward, given, sizes)
            taken = interpreted(definition, given)
            known = [(t, taken[t.name].detach()) for t in definition.results]
            for (tensor, value), own in zip(known, said, strict=True):
                found = _difference(tensor, value, own, sizes)
                if found and not _are_the_same(said, said_by(forward, given, sizes)):
                    raise Unreadable("it is another forward each time")
                yield found
            if all(own.value.isfinite().any() for own in said):
                break


def said_by(forward: type[Forward], given: dict, sizes: dict) -> list[NumberEntries]:
    """The outputs of a class body. Raises `Unreadable` where it cannot be run with numbers."""
    homes = {t.name: t.home for t in forward.definition.arguments}
    passed = {
        name: NumberEntries(value.detach().clone(), homes[name], sizes)
        if isinstance(value, Tensor)
        else value
        for name, value in given.items()
    }
    for entries in passed.values():
        if isinstance(entries, NumberEntries) and entries.value.is_floating_point():
            entries.value.requires_grad_()
    try:
        found = outputs_of(forward, passed, sizes)
    except Unreadable:
        raise
    except Exception as error:  # whatever Python of the user's own does with numbers
        raise Unreadable(f"{type(error).__name__}: {error}") from error
    if len(found) != len(forward.definition.results):
        raise Unreadable("another number of outputs")
    return found


def _are_the_same(found: list[NumberEntries], again: list[NumberEntries]) -> bool:
    return all(
        {*a.axes} == {*b.axes} and torch.allclose(a.value, b.along(a.axes), equal_nan=True)
        for a, b in zip(found, again, strict=True)
    )


def _difference(tensor, value: Tensor, said: NumberEntries, sizes: dict) -> str:
    if {*said.axes} != {*tensor.home}:
        own, taken = (", ".join(sorted(map(str, axes))) for axes in (said.axes, tensor.home))
        return f"{tensor} lies along ({own}) as it is written, and along ({taken}) as it is read"
    own = said.wide(tensor.home).detach()
    both = own.isfinite() & value.isfinite()
    gap = torch.where(both, own - value, 0).abs()
    if gap.max() <= SAME * max(1.0, torch.where(both, own, 0).abs().max().item()):
        return ""
    place = (gap == gap.max()).nonzero()[0].tolist()
    lengths = ", ".join(f"{axis} = {sizes[axis]}" for axis in sizes)
    return (
        f"{tensor}{place} is {own[tuple(place)]:.6g} as it is written, and "
        f"{value[tuple(place)]:.6g} as it is read, where {shortened_text(lengths)}"
    )
