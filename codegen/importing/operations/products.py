"""Matrix products: all are sums of products along named axes."""

from __future__ import annotations

from codegen.importing.operations.table import operation, rule
from codegen.importing.values import Refused, Value
from derive.torch_ops import trees

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


def linear(r, x: Value, weight: Value, bias: Value | None) -> Value:
    front = BATCH[: x.rank - 1]
    y = r.contracted([front + "k", "jk"], front + "j", [x, weight])
    return y if bias is None else r.sum_like(trees.sum_of, y, bias)


@rule("addmm", "baddbmm", "addbmm", called="u")
def _addmm(r, x, mat1=None, mat2=None, batch1=None, batch2=None, beta=1, alpha=1):
    """Long: torch's arguments, of all of its names."""
    whole = matmul(r, mat1 if batch1 is None else batch1, mat2 if batch2 is None else batch2)
    whole = r.sum(whole, [0]) if operation(r) == "addbmm" else whole
    first = x if beta == 1 else r.pointwise(trees.product, beta, x)
    whole = whole if alpha == 1 else r.pointwise(trees.product, alpha, whole)
    return r.sum_like(trees.sum_of, first, whole)


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


@rule("pairwise_distance", called="distance")
def _pairwise_distance(r, x1, x2, p, eps, keepdim):
    from codegen.importing.operations.reducing import norm

    diff = r.sum_like(trees.difference, x1, x2)
    shifted = r.pointwise(lambda d: trees.sum_of(d, trees.number(eps)), diff)
    return norm(r, shifted, p, -1, keepdim)
