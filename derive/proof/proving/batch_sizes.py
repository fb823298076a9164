"""The sizes of the small batches on which everything is proved: three, unlike each other."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from sympy import Integer

from derive.language.errors import UnprovedError
from derive.language.nodes import MatrixNode
from derive.language.notation.definition import Definition
from derive.language.symbols import Axis, axes_of

SMALL = (2, 3, 4)  # unlike each other, and 1 would hide what an axis does
LARGEST = 12  # the most that is added to them
MOST_FLAT = 8  # along an axis that others were flattened into
MOST_ROWS = 3  # of a matrix that is inverted: an entry of it is a quotient of minors
MOST_ENTRIES = 24  # of a tensor of three axes or more; so that a proof takes seconds


def batches_of(definition: Definition) -> list[dict[Axis, int]]:
    """Three small batches: every axis takes each of 2, 3 and 4, neighbours never the same; but one
    that a recurrence goes along is proved step by step, and has 2 places.

    Where the mathematics divides by something that is not positive there, all sizes are larger; if
    that does not help, as N - C stays what it is, the nearest that do are taken.
    """
    asked = {axis for need in definition.needs for axis in need.atoms(Axis)}
    found = None
    for more in range(LARGEST):
        drawn = _batches(definition, more)
        batches = [_fitting(definition, batch) for batch in drawn]
        if all(map(definition.fit, batches)):
            found = found or batches
            if all([b.get(a) for b in batches] == [b.get(a) for b in drawn] for a in asked):
                return batches
    if found is None:
        sought = [*definition.needs, *(f"the size of {a} is whole" for a in definition.derived)]
        raise UnprovedError(f"{definition.name}: no small sizes were found at which {sought[0]}")
    return found


def _fitting(definition: Definition, batch: Mapping[Axis, int]) -> dict[Axis, int]:
    sizes = {axis: int(size) for axis, size in batch.items()}
    return {a: Integer(n) for a, n in definition.fitting(sizes, least=SMALL[0]).items()}


def _batches(definition: Definition, more: int) -> list[dict[Axis, int]]:
    axes = definition.independent_axes
    starts = range(len(SMALL) if axes else 1)
    batches = []
    for start in starts:
        sizes = {axis: SMALL[(start + i) % len(SMALL)] for i, axis in enumerate(axes)}
        sizes |= {c.axis: SMALL[0] for c in definition.carried if c.axis in sizes}
        for axis in reversed(axes[1:]):  # the first axis keeps its size: that is the batch
            if _largest(definition, sizes) > MOST_ENTRIES:
                sizes[axis] = SMALL[0]
        _fit_matrices(definition, sizes)
        for flat, parts in definition.flattened:
            for part in reversed([p for p in parts if p in sizes]):
                if definition.sizes_from(sizes)[flat] > MOST_FLAT:
                    sizes[part] = SMALL[0]
        batches.append({axis: Integer(size + more) for axis, size in sizes.items()})
    return batches


def _fit_matrices(definition: Definition, sizes: dict[Axis, int]) -> None:
    """Few rows, and more entries along what a matrix may be a sum over: of fewer it is singular."""
    nodes = [node for s in definition.statements for node in s.expression.atoms(MatrixNode)]
    rows = {definition.size(axis) for node in nodes for axis in node.axes} & sizes.keys()
    batch = {axis for node in nodes for axis in axes_of(node.matrix)}
    for axis in rows:
        sizes[axis] = sizes[axis] if sizes[axis] <= MOST_ROWS else SMALL[0]
    most = max((sizes[axis] for axis in rows), default=0)
    for axis in (sizes.keys() - rows - batch) if rows else ():
        sizes[axis] = max(sizes[axis], most + 1)


def _largest(definition: Definition, sizes: Mapping[Axis, int]) -> int:
    """The entries of the largest tensor."""
    tensors = [*definition.inputs, *(s.tensor for s in definition.statements)]
    whole = definition.sizes_from(sizes)
    return max(prod(whole[axis] for axis in t.home) for t in tensors)
