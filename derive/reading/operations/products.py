"""Torch's products of matrices: sums over named labels (`contracted`)."""

from __future__ import annotations

from collections.abc import Sequence

from derive.reading.broadcasting import contracted
from derive.reading.operations.dtypes import numbers, of_one_dtype
from derive.reading.operations.entries import Operation, entry, tensor
from derive.reading.refusals import Mismatch, Refusal
from derive.reading.values import BOOL, INT, Space, Value, promoted

MOST_LETTERS = 40  # of an einsum's operands: SymPy sums over each

products: dict[str, Operation] = {}


# Products of matrices


@entry(products, "matmul")
def matmul(space: Space, input: Value, other: Value):
    """``a @ b``: vectors, matrices, and batches of matrices that broadcast."""
    space.by_position = True
    a, b = tensor(input, "the left side"), tensor(other, "the right side")
    if not a.dims or not b.dims:
        raise Refusal("@ takes vectors and matrices, and one side is a number", "write *")
    inner, row, column = "inner", "row", "column"
    left = [*range(2 - len(a.dims), 0), row, inner] if len(a.dims) > 1 else [inner]
    right = [*range(2 - len(b.dims), 0), inner, column] if len(b.dims) > 1 else [inner]
    met, meets = a.dims[-1], b.dims[right.index(inner)]
    if space.size(met) != space.size(meets):
        raise _no_product(space, a, b)
    _check_dtypes([a, b], "a product")
    batch = sorted({label for label in (*left, *right) if isinstance(label, int)})
    kept = [*batch, *(label for label in (row, column) if label in (*left, *right))]
    return contracted(space, [(a, left), (b, right)], kept)


def _check_dtypes(operands: Sequence[Value], what: str) -> None:
    """Torch multiplies matrices of one dtype, and none of bools."""
    for x in operands:
        of_one_dtype(operands[0], numbers(x, what), what)


def _no_product(space: Space, a: Value, b: Value) -> Mismatch:
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


def _of_rank(space: Space, a: Value, b: Value, ranks: tuple[int, int], what: str) -> Value:
    if (len(a.dims), len(b.dims)) != ranks:
        raise Mismatch(f"{what} of the shapes {a.shape} and {b.shape}", "write @")
    return matmul(space, a, b)


@entry(products, "mm")
def _mm(space: Space, input: Value, mat2: Value):
    return _of_rank(space, input, mat2, (2, 2), "mm")


@entry(products, "bmm")
def _bmm(space: Space, input: Value, mat2: Value):
    return _of_rank(space, input, mat2, (3, 3), "bmm")


@entry(products, "mv")
def _mv(space: Space, input: Value, vec: Value):
    return _of_rank(space, input, vec, (2, 1), "mv")


@entry(products, "dot", "inner")
def _dot(space: Space, input: Value, other: Value):
    return _of_rank(space, input, other, (1, 1), "dot")


@entry(products, "einsum", forms="torch")
def _einsum(space: Space, equation: str, *operands):
    space.by_position = True
    if not isinstance(equation, str):
        raise Refusal("einsum begins with its letters", "write torch.einsum('nk,kh->nh', x, w)")
    left, arrow, kept = equation.replace(" ", "").partition("->")
    labels = left.split(",")
    letters = "".join(labels)
    if not letters.isalpha() or not (kept.isalpha() or not kept) or len(letters) > MOST_LETTERS:
        raise Refusal(
            "einsum is supported with letters only", "write torch.einsum('nk,kh->nh', x, w)"
        )
    if not arrow:
        kept = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    tensors = operands[0] if len(operands) == 1 and isinstance(operands[0], tuple) else operands
    tensors = [tensor(x) for x in tensors if isinstance(x, Value)]
    fits = [len(own) == len(x.dims) for own, x in zip(labels, tensors, strict=False)]
    if len(labels) != len(tensors) or not all(fits):
        shapes = ", ".join(x.shape for x in tensors)
        raise Mismatch(f"einsum: {left} does not fit the shapes {shapes}", "a letter per dimension")
    if any(len(set(own)) != len(own) for own in (*labels, kept)) or not set(kept) <= set(letters):
        raise Refusal(
            "einsum: a letter twice, or a new one behind ->", "diagonals are not supported"
        )
    dtype = promoted(tensors)
    if len(tensors) > 1 and set(letters) - set(kept):
        _check_dtypes(tensors, "an einsum that sums")
    elif dtype == BOOL and set(letters) - set(kept):
        dtype = INT
    return contracted(space, list(zip(tensors, labels, strict=True)), kept, dtype)
