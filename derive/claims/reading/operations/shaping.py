"""Torch's operations that permute, insert and expand dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sympy import Expr, Mul

from derive.claims.reading.broadcasting import placed
from derive.claims.reading.operations.entries import Operation, entry, position
from derive.claims.reading.refusals import Mismatch, Refusal
from derive.claims.reading.values import INT, NUMBER, Dims, Space, TextValue, number, shape_text
from derive.language.symbols import Axis

shaping: dict[str, Operation] = {}

REST = -1  # inferred from the other sizes


def relaid(x: TextValue, dims: Iterable[Axis | None]) -> TextValue:
    """The same entries along other dimensions; torch has no axis names."""
    return replace(x, dims=tuple(dims), by_name=False)


def permuted(space: Space, x: TextValue, places: Sequence[int]) -> TextValue:
    space.by_position = True
    return relaid(x, (x.dims[place] for place in places))


def transposed(space: Space, x: TextValue) -> TextValue:
    """``x.T``"""
    if len(x.dims) > 2:
        raise Refusal(f".T of the shape {x.shape}", "write .mT, or .transpose(0, 1)")
    return permuted(space, x, range(len(x.dims))[::-1])


def matrix_transposed(space: Space, x: TextValue) -> TextValue:
    """``x.mT``"""
    if len(x.dims) < 2:
        raise Refusal(f".mT of the shape {x.shape}", "it takes a matrix")
    *batch, row, column = range(len(x.dims))
    return permuted(space, x, [*batch, column, row])


def flat(items: Sequence) -> Sequence:
    """The arguments of ``f(1, 2)`` or ``f((1, 2))``, flattened."""
    return items[0] if len(items) == 1 and isinstance(items[0], tuple) else items


# Sizes


def shape_of(space: Space, x: TextValue) -> tuple[TextValue, ...]:
    return tuple(number(space.size(axis)) for axis in x.dims)


def axis_of_size(space: Space, size: TextValue, taken: Iterable[Axis]) -> Axis | None:
    """The axis of a size given in the sizes of the forward; None for 1."""
    e = size.expression
    if e == 1:
        return None
    if isinstance(e, Axis):
        return space.twin(e, taken)
    return space.axis_of(e, taken, known=True)


def floor_divided(space: Space, above: TextValue, below: TextValue) -> TextValue:
    """``n // 2`` of sizes."""
    pair = (above.expression, below.expression)
    if not all(v.kind == NUMBER and v.dtype == INT for v in (above, below)) or 0 in pair[1:]:
        raise Refusal("// is supported for sizes only", "write /, which does not round")
    return number(space.rounded(pair[0] // pair[1]), whole=True)


def dims_of_sizes(space: Space, sizes: Sequence) -> Dims:
    dims: list[Axis | None] = []
    for size in flat(sizes):
        if not isinstance(size, TextValue) or size.kind != NUMBER:
            raise Refusal("a size is a number", "write x.shape[0], or N")
        dims.append(axis_of_size(space, size, filter(None, dims)))
    return tuple(dims)


@entry(shaping, "size", forms="method")
def _size(space: Space, input: TextValue, dim=None):
    shape = shape_of(space, input)
    return shape if dim is None else shape[position(space, input, dim)]


@entry(shaping, "numel", "nelement")
def _numel(space: Space, input: TextValue):
    return number(Mul(*(space.size(axis) for axis in input.dims)))


@entry(shaping, "dim", "ndimension", forms="method")
def _dim(space: Space, input: TextValue):
    return number(len(input.dims))


def expanded(space: Space, x: TextValue, dims: Sequence[Axis | None], what: str) -> TextValue:
    """``x`` expanded to ``dims`` where it has size 1 or lacks leading dimensions."""
    space.by_position = True
    own = (*(None,) * (len(dims) - len(x.dims)), *x.dims)
    if len(own) > len(dims) or any(
        a is not None and not space.meets(space.size(a), space.size(b))
        for a, b in zip(own, dims, strict=True)
    ):
        raise Mismatch(
            f"{what}: shape {x.shape} cannot be expanded to {shape_text(tuple(dims))}",
            "only dimensions of size 1 can be expanded; new ones are added in front",
        )
    mapping = {a: b for a, b in zip(own, dims, strict=True) if a is not None}
    return relaid(replace(x, expression=placed(space, x.expression, mapping)), dims)


def expanded_to(space: Space, x: TextValue, sizes: Sequence[Expr], what: str) -> TextValue:
    """``x`` expanded to sizes; -1 keeps a size."""
    new = len(sizes) - len(x.dims)
    dims: list[Axis | None] = []
    for i, size in enumerate(sizes):
        own = x.dims[i - new] if i >= new else None
        taken = [axis for axis in (*dims, *x.dims) if axis]
        kept = size == REST or (own is not None and space.meets(size, space.size(own)))
        dims.append(own if kept else space.axis_of(size, taken))
    return expanded(space, x, dims, what)
