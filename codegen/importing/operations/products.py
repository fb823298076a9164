"""Matrix products: all are sums of products along named axes."""

from __future__ import annotations

from codegen.importing import trees
from codegen.importing.operations.table import rule
from codegen.importing.values import Refused, Value

BATCH = "uvwxyz"  # letters of the dimensions in front
ELLIPSIS, GREEK = "...", "\u03b1\u03b2\u03b3\u03b4\u03b5\u03b6"


@rule("matmul", "mm", "bmm", "dot", "mv", "vdot", "inner", called="product")
def _matmul(r, x, other=None, mat2=None, tensor=None, vec=None):
    return matmul(r, x, next(v for v in (other, mat2, tensor, vec) if v is not None))


def matmul(r, a: Value, b: Value) -> Value:
    top = max(a.rank, b.rank, 2) - 2
    front = BATCH[:top]
    left = front[top - (a.rank - 2) :] + "ik" if a.rank > 1 else "k"
    right = front[top - (b.rank - 2) :] + "kj" if b.rank > 1 else "k"
    output = front + ("i" if a.rank > 1 else "") + ("j" if b.rank > 1 else "")
    return r.contracted([left, right], output, [a, b])


@rule("linear", called="u")
def _linear(r, x, weight, bias=None):
    return linear(r, x, weight, bias)


def linear(r, x: Value, weight: Value, bias: Value | None) -> Value:
    front = BATCH[: x.rank - 1]
    y = r.contracted([front + "k", "jk"], front + "j", [x, weight])
    return y if bias is None else r.sum_like(trees.sum_of, y, bias)


@rule("bilinear", called="u")
def _bilinear(r, input1, input2, weight, bias=None):
    front = BATCH[: input1.rank - 1]
    y = r.contracted([front + "i", "kij", front + "j"], front + "k", [input1, weight, input2])
    return y if bias is None else r.sum_like(trees.sum_of, y, bias)


@rule("addmm", "baddbmm", "addbmm", called="u")
def _addmm(r, x, mat1=None, mat2=None, batch1=None, batch2=None, beta=1, alpha=1):
    """Long: torch's arguments, of all of its names."""
    whole = matmul(r, mat1 if batch1 is None else batch1, mat2 if batch2 is None else batch2)
    first = x if beta == 1 else r.pointwise(trees.product, beta, x)
    whole = whole if alpha == 1 else r.pointwise(trees.product, alpha, whole)
    return r.sum_like(trees.sum_of, first, whole)


@rule("outer", "ger", called="product")
def _outer(r, x, vec2):
    return r.contracted(["i", "j"], "ij", [x, vec2])


@rule("einsum", called="product")
def _einsum(r, equation, tensors, path=None):
    left, arrow, output = equation.replace(" ", "").partition("->")
    inputs = left.split(",")
    if ELLIPSIS in left:
        inputs, output = _without_ellipsis(inputs, output, tensors)
    if not arrow:
        letters = "".join(inputs)
        output = "".join(c for c in sorted(set(letters)) if letters.count(c) == 1)
    if any(len(set(spec)) < len(spec) for spec in inputs):
        raise Refused("einsum with a diagonal", "take the diagonal first")
    return r.contracted(inputs, output, list(tensors))


def _without_ellipsis(inputs, output, tensors):
    """The dimensions that the dots stand for get letters that nobody types."""
    ranks = [v.rank - len(s.replace(ELLIPSIS, "")) for s, v in zip(inputs, tensors, strict=True)]
    most = max(n for n, spec in zip(ranks, inputs, strict=True) if ELLIPSIS in spec)
    front = GREEK[:most]
    full = [
        spec.replace(ELLIPSIS, front[most - n :] if n else "")
        for spec, n in zip(inputs, ranks, strict=True)
    ]
    return full, output.replace(ELLIPSIS, front)


@rule("cosine_similarity", called="similarity")
def _cosine_similarity(r, x1, x2, dim, eps):
    """The norms are held above eps each, as torch does."""
    from codegen.importing.operations.reducing import norm

    (a, b), _ = r.aligned(r.as_number(x1), r.as_number(x2))
    low = trees.number(eps)
    norms = [
        r.pointwise(lambda n: trees.choice((low, trees.compared("<", n, low)), otherwise=n), each)
        for each in (r.let("norm", norm(r, v, 2, dim, False)) for v in (a, b))
    ]
    dots = r.sum(r.pointwise(trees.product, a, b), dim)
    return r.pointwise(trees.quotient, dots, r.pointwise(trees.product, *norms))


@rule("pairwise_distance", called="distance")
def _pairwise_distance(r, x1, x2, p, eps, keepdim):
    from codegen.importing.operations.reducing import norm

    diff = r.sum_like(trees.difference, x1, x2)
    shifted = r.pointwise(lambda d: trees.sum_of(d, trees.number(eps)), diff)
    return norm(r, shifted, p, -1, keepdim)
