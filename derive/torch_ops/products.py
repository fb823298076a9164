"""Matrix products: sums of products along dimensions that are named by letters."""

from __future__ import annotations

from derive.torch_ops.formulas import held
from derive.torch_ops.reducing import length
from derive.torch_ops.table import FLOAT, SAME, Dim, Dims, Number, Size, Tensor, op

BATCH, INNER, LEFT, RIGHT = "uvwxyz", "abcdef", "ijklmn", "opqrst"


@op("matmul", called="product", gives=SAME)
def matmul(a, input: Tensor, other: Tensor):
    m, n = input.rank, other.rank
    front = BATCH[: max(m, n, 2) - 2]
    left = front[len(front) - (m - 2) :] + "ik" if m > 1 else "k"
    right = front[len(front) - (n - 2) :] + "kj" if n > 1 else "k"
    output = front + ("i" if m > 1 else "") + ("j" if n > 1 else "")
    return a.contracted([left, right], output, [input, other])


@op("outer", "ger", called="product", gives=SAME)
def _outer(a, input: Tensor, vec2: Tensor):
    return a.contracted(["i", "j"], "ij", [input, vec2])


@op("linear", forms="F", called="u")
def _linear(a, input: Tensor, weight: Tensor, bias: Tensor | None = None):
    front = BATCH[: input.rank - 1]
    y = a.contracted([front + "k", "jk"], front + "j", [input, weight])
    return y if bias is None else a.each(lambda y, b: y + b, y, bias)


@op("bilinear", forms="F", called="u")
def _bilinear(a, input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None):
    front = BATCH[: input1.rank - 1]
    y = a.contracted([front + "i", "kij", front + "j"], front + "k", [input1, weight, input2])
    return y if bias is None else a.each(lambda y, b: y + b, y, bias)


@op("addmm", called="u")
def _addmm(a, input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1):
    whole = matmul(a, mat1, mat2)
    return a.each(lambda x, w, b, c: b * x + c * w, input, whole, beta, alpha)


@op("tensordot", forms="torch", called="product")
def _tensordot(a, input: Tensor, other: Tensor, dims: Size = 2,
               dims_self: Dims = None, dims_other: Dims = None):  # fmt: skip
    """The last of one with the first of the other, or those that are named."""
    m, n = input.rank, other.rank
    if dims_self is None and not isinstance(dims, tuple):
        dims = range(m - int(dims), m), range(int(dims))
    met, meets = dims if dims_self is None else (dims_self, dims_other)
    met, meets = [int(i) % m for i in met], [int(i) % n for i in meets]
    left = "".join(INNER[met.index(i)] if i in met else LEFT[i] for i in range(m))
    right = "".join(INNER[meets.index(i)] if i in meets else RIGHT[i] for i in range(n))
    output = "".join(c for c in left + right if c not in INNER)
    return a.contracted([left, right], output, [input, other])


@op("cosine_similarity", forms="torch F", called="similarity", of=FLOAT)
def _cosine_similarity(a, x1: Tensor, x2: Tensor, dim: Dim = 1, eps: Number = 1e-8):
    """The norms are held above eps each, as torch does."""
    norms = [a.let("norm", length(a, x, 2, dim, False)) for x in (x1, x2)]
    dots = a.sum(a.each(lambda x, y: x * y, x1, x2), dim)
    over = lambda d, n, m, e: d / (held(n, e) * held(m, e))  # noqa: E731
    return a.each(over, dots, *norms, eps)
