"""``a @ b``: a sum over named labels (`contracted`)."""

from __future__ import annotations

from collections.abc import Sequence

from derive.claims.reading.broadcasting import contracted
from derive.claims.reading.operations.dtypes import numbers, of_one_dtype
from derive.claims.reading.operations.entries import tensor
from derive.claims.reading.refusals import Mismatch, Refusal
from derive.claims.reading.values import Space, TextValue


def matmul(space: Space, input: TextValue, other: TextValue):
    """``a @ b``: vectors, matrices, and batches of matrices that broadcast."""
    space.by_position = True
    a, b = tensor(input, "the left side"), tensor(other, "the right side")
    if not a.dims or not b.dims:
        raise Refusal("@ takes vectors and matrices, and one side is a number", "write *")
    inner, row, column = "inner", "row", "column"
    left = [*range(2 - len(a.dims), 0), row, inner] if len(a.dims) > 1 else [inner]
    right = [*range(2 - len(b.dims), 0), inner, column] if len(b.dims) > 1 else [inner]
    met, meets = a.dims[-1], b.dims[right.index(inner)]
    if not space.meets(space.size(met), space.size(meets)):
        raise _no_product(space, a, b)
    check_dtypes([a, b], "a product")
    batch = sorted({label for label in (*left, *right) if isinstance(label, int)})
    kept = [*batch, *(label for label in (row, column) if label in (*left, *right))]
    return contracted(space, [(a, left), (b, right)], kept)


def check_dtypes(operands: Sequence[TextValue], what: str) -> None:
    """Require one dtype, and not bool, as torch's matrix products do."""
    for x in operands:
        of_one_dtype(operands[0], numbers(x, what), what)


def _no_product(space: Space, a: TextValue, b: TextValue) -> Mismatch:
    one, other = (space.size(v.dims[place]) for v, place in ((a, -1), (b, -min(2, len(b.dims)))))
    problem = (
        f"shapes {a.shape} and {b.shape} have no product: {one} meets {other}. torch raises here, "
        f"and where {one} equals {other} it contracts the wrong axes silently"
    )
    sizes = [[space.size(axis) for axis in v.dims] for v in (a, b)]
    remedy = "the last dimension of the left side meets the one before the last of the right side"
    if len(a.dims) == len(b.dims) == 2:
        if sizes[0][0] == sizes[1][0]:
            remedy = "the left side must be transposed: .T"
        elif sizes[0][1] == sizes[1][1]:
            remedy = "the right side must be transposed: .T"
    return Mismatch(problem, remedy)
