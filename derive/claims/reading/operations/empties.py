"""Uninitialized tensors: ``torch.empty`` and the like."""

from __future__ import annotations

from dataclasses import replace

from derive.claims.reading.arrays import shared
from derive.claims.reading.operations.entries import Operation
from derive.claims.reading.unwritten import UNWRITTEN, whole
from derive.claims.reading.values import Space


def _empty(zeros: Operation) -> Operation:
    """The uninitialized variant of an operation that creates zeros."""

    def compute(space: Space, *arguments, **keywords):
        x = zeros.compute(space, *arguments, **keywords)
        space.unwritten = True
        return replace(x, expression=UNWRITTEN, left=whole([space.size(axis) for axis in x.dims]))

    compute.__signature__ = zeros.compute.__signature__
    compute.row = zeros.compute.row
    return Operation(compute, zeros.forms)


empties = {name.replace("zeros", "empty"): _empty(shared[name]) for name in
           ("zeros", "zeros_like", "new_zeros")}  # fmt: skip
