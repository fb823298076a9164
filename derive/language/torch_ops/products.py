"""Matrix products: sums of products along dimensions labelled by letters."""

from __future__ import annotations

from functools import reduce

from sympy import Integer

from derive.language.torch_ops.formulas import equal, held, where
from derive.language.torch_ops.reducing import length
from derive.language.torch_ops.table import (
    FLOAT,
    SAME,
    Axes,
    Dim,
    Dims,
    Flag,
    Number,
    Order,
    Tensor,
    Tensors,
    Word,
    op,
)

LONGEST = 60  # letters and commas of an einsum
DOTS, GREEK = "...", "\u03b1\u03b2\u03b3\u03b4\u03b5\u03b6"
BATCH, INNER, LEFT, RIGHT = "uvwxyz", "abcdef", "ijklmn", "opqrst"


@op("matmul", "linalg_matmul", called="product", gives=SAME)
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
def linear(a, input: Tensor, weight: Tensor, bias: Tensor | None = None):
    front = BATCH[: input.rank - 1]
    y = a.contracted([front + "k", "jk"], front + "j", [input, weight])
    return y if bias is None else a.each(lambda y, b: y + b, y, bias)


@op("bilinear", forms="F", called="u")
def _bilinear(a, input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None):
    front = BATCH[: input1.rank - 1]
    y = a.contracted([front + "i", "kij", front + "j"], front + "k", [input1, weight, input2])
    return y if bias is None else a.each(lambda y, b: y + b, y, bias)


# Products of fixed ranks (vectors or matrices)


def _of_ranks(a, name, ranks, x, y):
    if (x.rank, y.rank) != ranks:
        a.misfit(f"{name} of {x.rank} and {y.rank} dimensions", "write @")
    return matmul(a, x, y)


@op("mm", called="product", gives=SAME)
def _mm(a, input: Tensor, mat2: Tensor):
    return _of_ranks(a, "mm", (2, 2), input, mat2)


@op("bmm", called="product", gives=SAME)
def _bmm(a, input: Tensor, mat2: Tensor):
    return _of_ranks(a, "bmm", (3, 3), input, mat2)


@op("mv", called="product", gives=SAME)
def _mv(a, input: Tensor, vec: Tensor):
    return _of_ranks(a, "mv", (2, 1), input, vec)


@op("dot", called="product", gives=SAME)
def _dot(a, input: Tensor, tensor: Tensor):
    return _of_ranks(a, "dot", (1, 1), input, tensor)


@op("vdot", called="product", gives=SAME)
def _vdot(a, input: Tensor, other: Tensor):
    return _of_ranks(a, "vdot", (1, 1), input, other)


@op("inner", called="product", gives=SAME)
def _inner(a, input: Tensor, other: Tensor):
    left, right = LEFT[: max(input.rank - 1, 0)], RIGHT[: max(other.rank - 1, 0)]
    if not input.rank or not other.rank:
        return a.each(lambda x, y: x * y, input, other)
    return a.contracted([left + "k", right + "k"], left + right, [input, other])


def _plus(a, input, whole, beta, alpha):
    return a.each(lambda x, w, b, c: b * x + c * w, input, whole, beta, alpha)


@op("addmm", called="u")
def _addmm(a, input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1):
    return _plus(a, input, matmul(a, mat1, mat2), beta, alpha)


@op("addmv", called="u")
def _addmv(a, input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1):
    return _plus(a, input, matmul(a, mat, vec), beta, alpha)


@op("addr", called="u")
def _addr(a, input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1):
    return _plus(a, input, _outer(a, vec1, vec2), beta, alpha)


@op("baddbmm", called="u")
def _baddbmm(a, input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1,
             alpha: Number = 1):  # fmt: skip
    return _plus(a, input, matmul(a, batch1, batch2), beta, alpha)


@op("addbmm", called="u")
def _addbmm(a, input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1,
            alpha: Number = 1):  # fmt: skip
    whole = a.contracted(["bij", "bjk"], "ik", [batch1, batch2])
    return _plus(a, input, whole, beta, alpha)


@op("chain_matmul", forms="torch", called="product", gives=SAME)
def _chain_matmul(a, *matrices: Tensors):
    return reduce(lambda x, y: matmul(a, x, y), matrices)


@op("linalg_multi_dot", called="product", gives=SAME)
def _multi_dot(a, tensors: Tensors):
    return _chain_matmul(a, *tensors)


@op("einsum", forms="torch", called="product", gives=SAME, aten={"tensors": "operands"})
def _einsum(a, equation: Word, *operands: Tensors):
    if len(equation) > LONGEST:
        a.refuse("einsum with too many letters", "write products of fewer tensors")
    left, arrow, output = equation.replace(" ", "").partition("->")
    labels = left.split(",")
    if len(labels) != len(operands):
        a.misfit(f"einsum of {len(operands)} tensors by {left}", "write letters for each")
    labels, front = _without_dots(a, labels, operands)
    letters = "".join(labels)
    if not arrow:
        once = (c for c in sorted(set(letters)) if letters.count(c) == 1 and c not in front)
        output = front + "".join(once)
    output = output.replace(DOTS, front)
    if not letters.isalpha() or len(set(output)) < len(output) or not {*output} <= {*letters}:
        a.refuse(f"einsum: {equation}", "write torch.einsum('nk,kh->nh', x, w)")
    pairs = [_without_twice(a, x, own) for x, own in zip(operands, labels, strict=True)]
    return a.contracted([own for _, own in pairs], output, [x for x, _ in pairs])


def _without_dots(a, labels, operands):
    """Replace the dots by letters that the user did not use."""
    ranks = [x.rank - len(s.replace(DOTS, "")) for s, x in zip(labels, operands, strict=True)]
    dotted = [n for n, own in zip(ranks, labels, strict=True) if DOTS in own]
    if min(ranks, default=0) < 0 or any(
        n and DOTS not in own for n, own in zip(ranks, labels, strict=True)
    ):
        a.misfit(f"einsum: {','.join(labels)} does not fit the shapes", "a letter per dimension")
    front = GREEK[: max(dotted, default=0)]
    pairs = zip(labels, ranks, strict=True)
    return [own.replace(DOTS, front[len(front) - n :] if n else "") for own, n in pairs], front


def _without_twice(a, x, own: str):
    """Take the diagonal along dimensions with the same letter."""
    for c in sorted(set(own)):
        while own.count(c) > 1:
            i, j = own.index(c), own.rindex(c)
            if a.count(x, [i]) != a.count(x, [j]):
                a.misfit(f"einsum: {c} stands for different sizes", "give them one size")
            places = a.position(x, i), a.position(x, j)
            kept = a.each(lambda x, k, m: where(equal(k, m), x, 0), x, *places)
            x, own = a.sum(kept, j), own[:j] + own[j + 1 :]
    return x, own


@op("tensordot", forms="torch", called="product")
def _tensordot(a, input: Tensor, other: Tensor, dims: Axes = 2,
               dims_self: Dims = None, dims_other: Dims = None):  # fmt: skip
    """Contract the last dimensions of one with the first of the other, or the ones named."""
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
    """As in torch, each norm is at least eps."""
    if x1.rank < x2.rank:
        a.refuse("the first has fewer dimensions", "add some: x1[None]")
    for _ in range(x1.rank - x2.rank):
        x2 = a.unsqueezed(x2, 0)
    norms = [a.let("norm", length(a, x, 2, dim, False)) for x in (x1, x2)]
    dots = a.sum(a.each(lambda x, y: x * y, x1, x2), dim)
    over = lambda d, n, m, e: d / (held(n, e) * held(m, e))  # noqa: E731
    return a.each(over, dots, *norms, eps)


def distance(a, x1, x2, how):
    """The distance between vectors along the last dimension."""
    p, eps, keepdim = how
    diff = a.each(lambda x, y, e: x - y + e, x1, x2, eps)
    return length(a, diff, p, diff.rank - 1, keepdim)


@op("pairwise_distance", forms="torch F", called="distance", of=FLOAT)
def _pairwise_distance(a, x1: Tensor, x2: Tensor, p: Order = 2, eps: Number = 1e-6,
                       keepdim: Flag = False):  # fmt: skip
    return distance(a, x1, x2, (p, eps, keepdim))


@op("cdist", forms="torch", called="distance", of=FLOAT)
def _cdist(a, x1: Tensor, x2: Tensor, p: Order = 2, compute_mode: Word | None = None):
    """The distance of every row to every row; compute_mode has no effect on the result."""
    rows = a.unsqueezed(x1, x1.rank - 1), a.unsqueezed(x2, x2.rank - 2)
    return distance(a, *rows, (p, 0, False))


@op("kron", called="product", gives=SAME)
def _kron(a, input: Tensor, other: Tensor):
    """Each entry times all of the other."""
    x, y = input, other
    while x.rank != y.rank:
        x, y = (a.unsqueezed(v, 0) if v.rank < max(x.rank, y.rank) else v for v in (x, y))
    left, right = LEFT[: x.rank], RIGHT[: x.rank]
    whole = a.contracted(
        [left, right], "".join(map("".join, zip(left, right, strict=True))), [x, y]
    )
    for dim in range(x.rank):
        whole = a.together(whole, dim)
    return whole


@op("linalg_vecdot", called="product", gives=SAME)
def _vecdot(a, x: Tensor, y: Tensor, *, dim: Dim = -1):
    return a.sum(a.each(lambda x, y: x * y, x, y), dim)


@op("cross", "linalg_cross", called="product")
def _cross(a, input: Tensor, other: Tensor, dim: Dim = -1):
    (x, y, z), (u, v, w) = ([a.entry(t, dim, Integer(k)) for k in range(3)] for t in (input, other))
    minor = lambda p, q, r, s: p * q - r * s  # noqa: E731
    parts = [a.each(minor, y, w, z, v), a.each(minor, z, u, x, w), a.each(minor, x, v, y, u)]
    return a.stacked(parts, dim)
