"""Reductions and scans: sums, moments, norms, maxima, softmax, cumulative sums."""

from __future__ import annotations

from sympy import Integer, S

from derive.language.torch_ops.choosing import maximum, minimum
from derive.language.torch_ops.formulas import Abs, equal, exp, held, log, sqrt, where
from derive.language.torch_ops.table import (
    BOOL,
    FLOAT,
    INT,
    SAME,
    Default,
    Dim,
    DimOrTensor,
    Dims,
    Flag,
    Number,
    Order,
    Size,
    Tensor,
    Word,
    op,
)
from derive.language.torch_ops.trees import as_tree, compared


@op("sum", called="total", gives=SAME)
def total(a, input: Tensor, dim: Dims = None, keepdim: Flag = False):
    return a.sum(input, dim, keepdim)


@op("mean", called="mean", of=FLOAT)
def mean(a, input: Tensor, dim: Dims = None, keepdim: Flag = False):
    count = a.count(input, dim)
    return a.each(lambda s: s / count, a.sum(input, dim, keepdim))


def spread(a, x, dim, keepdim, less):
    """The variance and the mean, with a named statement for each step."""
    x = a.let("u", x)
    average = a.let("mean", mean(a, x, dim, True))
    squares = a.each(lambda d: d**2, a.let("diff", a.each(lambda x, m: x - m, x, average)))
    count = a.count(x, dim)
    var = a.each(lambda s, n: s / (count - n), a.sum(squares, dim, keepdim), less)
    return var, average if keepdim else a.squeezed(average, a.places(x, dim))


def _correction(unbiased, correction):
    return int(unbiased) if correction is None else correction


@op("var", called="var", of=FLOAT)
def _var(a, input: Tensor, dim: Dims = None, unbiased: Flag = True, keepdim: Flag = False, *,
         correction: Number | None = None):  # fmt: skip
    return spread(a, input, dim, keepdim, _correction(unbiased, correction))[0]


@op("std", called="std", of=FLOAT)
def _std(a, input: Tensor, dim: Dims = None, unbiased: Flag = True, keepdim: Flag = False, *,
         correction: Number | None = None):  # fmt: skip
    return a.each(sqrt, a.let("var", _var(a, input, dim, unbiased, keepdim, correction=correction)))


@op("var_mean", called="var", forms="torch", of=FLOAT)
def _var_mean(a, input: Tensor, dim: Dims = None, unbiased: Flag = True, keepdim: Flag = False, *,
              correction: Number | None = None):  # fmt: skip
    return spread(a, input, dim, keepdim, _correction(unbiased, correction))


@op("std_mean", called="std", forms="torch", of=FLOAT)
def _std_mean(a, input: Tensor, dim: Dims = None, unbiased: Flag = True, keepdim: Flag = False, *,
              correction: Number | None = None):  # fmt: skip
    var, average = spread(a, input, dim, keepdim, _correction(unbiased, correction))
    return a.each(sqrt, a.let("var", var)), average


def length(a, x, p, dim, keepdim):
    if p == 1:
        return a.sum(a.each(Abs, x), dim, keepdim)
    if p == 2:
        return a.each(sqrt, a.sum(a.each(lambda x: x**2, x), dim, keepdim))
    if p == float("inf"):
        return a.largest(a.each(Abs, x), dim, keepdim)
    if p <= 0:
        a.refuse(f"the norm of order {p}", "use x.abs().amax(), or a positive order")
    powers = a.sum(a.each(lambda x: Abs(x) ** p, x), dim, keepdim)
    return a.each(lambda s: s ** (as_tree(1) / p), powers)


@op("norm", called="norm", of=FLOAT)
def _norm(a, input: Tensor, p: Order = 2, dim: Dims = None, keepdim: Flag = False):
    return length(a, input, p, dim, keepdim)


@op("normalize", forms="F", of=FLOAT)
def _normalize(a, input: Tensor, p: Order = 2.0, dim: Dim = 1, eps: Number = 1e-12):
    norm = a.let("norm", length(a, input, p, dim, True))
    return a.each(lambda x, n, e: x / held(n, e), input, norm, eps)


@op("nanmean", called="mean", of=FLOAT)
def _nanmean(a, input: Tensor, dim: Dims = None, keepdim: Flag = False):
    """The mean: all numbers of the notation are finite."""
    return mean(a, input, dim, keepdim)


@op("nansum", called="total", gives=SAME)
def _nansum(a, input: Tensor, dim: Dims = None, keepdim: Flag = False):
    return a.sum(input, dim, keepdim)


def centred(a, input):
    return a.let("diff", a.each(lambda x, m: x - m, input, mean(a, input, 1, True)))


@op("cov", of=FLOAT)
def _cov(a, input: Tensor, *, correction: Number = 1, fweights: Default = None,
         aweights: Default = None):  # fmt: skip
    """The covariance of a matrix's rows."""
    diff, count = centred(a, input), a.count(input, 1)
    products = a.contracted(["ik", "jk"], "ij", [diff, diff])
    return a.each(lambda s, n: s / (count - n), products, correction)


@op("corrcoef", of=FLOAT)
def _corrcoef(a, input: Tensor):
    diff = centred(a, input)
    unit = a.let("unit", a.each(lambda d, n: d / n, diff, length(a, diff, 2, 1, True)))
    return a.contracted(["ik", "jk"], "ij", [unit, unit])


@op("dist", called="distance", of=FLOAT)
def _dist(a, input: Tensor, other: Tensor, p: Order = 2):
    return length(a, a.each(lambda x, y: x - y, input, other), p, None, False)


@op("linalg_vector_norm", called="norm", of=FLOAT)
def _vector_norm(a, input: Tensor, ord: Order = 2, dim: Dims = None, keepdim: Flag = False):
    return length(a, input, ord, dim, keepdim)


@op("linalg_norm", "frobenius_norm", called="norm", of=FLOAT)
def _linalg_norm(
    a, input: Tensor, ord: Order | None = None, dim: Dims = None, keepdim: Flag = False
):
    """For a matrix and a numeric order it would be a singular value."""
    one = input.rank == 1 if dim is None else len(dim) == 1
    if ord is not None and not one:
        a.refuse("an order is supported along one dimension", "write .norm(dim=1)")
    return length(a, input, 2 if ord is None else ord, dim, keepdim)


@op("linalg_matrix_norm", called="norm", of=FLOAT)
def _matrix_norm(a, input: Tensor, ord: Word = "fro", dim: Dims = (-2, -1), keepdim: Flag = False):
    if ord != "fro":
        a.refuse(f"the norm {ord} of a matrix", "supported is that of Frobenius")
    return length(a, input, 2, dim, keepdim)


@op("amax", called="largest", gives=SAME)
def _amax(a, input: Tensor, dim: Dims = None, keepdim: Flag = False):
    return a.largest(input, dim, keepdim)


@op("amin", called="smallest", gives=SAME)
def _amin(a, input: Tensor, dim: Dims = None, keepdim: Flag = False):
    return a.each(lambda m: -m, a.largest(a.each(lambda x: -x, input), dim, keepdim))


@op("argmax", gives=INT, of="number")
def _argmax(a, input: Tensor, dim: Dim, keepdim: Flag = False):
    return a.index_of_largest(input, dim, keepdim)


@op("argmin", gives=INT, of="number")
def _argmin(a, input: Tensor, dim: Dim, keepdim: Flag = False):
    return a.index_of_largest(a.each(lambda x: -x, input), dim, keepdim)


@op("count_nonzero", gives=INT)
def _count_nonzero(a, input: Tensor, dim: Dims = None, keepdim: Flag = False):
    nonzero = lambda x: where(compared("!=", x, as_tree(0)), 1, 0)  # noqa: E731
    return a.sum(a.each(nonzero, input), dim, keepdim)


# Softmax and similar


def soft(a, input, dim):
    counts = a.exponentials(input)
    return a.each(lambda c, s: c / s, counts, a.sum(counts, dim, True))


def log_z(a, input, dim, keepdim=False):
    return a.each(log, a.sum(a.exponentials(input), dim, keepdim))


@op("softmax", "_softmax", "_safe_softmax", forms="method torch F", called="probs", of=FLOAT)
def _softmax(a, input: Tensor, dim: Dim):
    return soft(a, input, dim)


@op("softmin", forms="F", called="probs", of=FLOAT)
def _softmin(a, input: Tensor, dim: Dim):
    return soft(a, a.each(lambda x: -x, input), dim)


@op("log_softmax", "_log_softmax", forms="method torch F", called="logprobs", of=FLOAT)
def _log_softmax(a, input: Tensor, dim: Dim):
    x = a.let("scores", input)
    return a.each(lambda x, z: x - z, x, log_z(a, x, dim, True))


@op("logsumexp", called="log_z")
def _logsumexp(a, input: Tensor, dim: Dims, keepdim: Flag = False):
    return log_z(a, input, dim, keepdim)


# Scans


@op("cumsum", called="so_far", of=FLOAT)
def _cumsum(a, input: Tensor, dim: Dim):
    return a.scan("CumSum", input, dim)


@op("cumprod", called="product_so_far", of=FLOAT)
def _cumprod(a, input: Tensor, dim: Dim):
    return a.scan("CumProd", input, dim)


@op("logcumsumexp", called="log_so_far", of=FLOAT)
def _logcumsumexp(a, input: Tensor, dim: Dim):
    return a.each(log, a.scan("CumSum", a.each(exp, input), dim))


@op("diff", gives=SAME)
def _diff(
    a, input: Tensor, n: Size = 1, dim: Dim = -1,
    prepend: Tensor | None = None, append: Tensor | None = None,
):  # fmt: skip
    more = [x for x in (prepend, input, append) if x is not None]
    x = a.joined(more, dim) if len(more) > 1 else input
    for _ in range(int(n)):
        late, early = a.part(x, dim, S.One, None), a.part(x, dim, S.Zero, Integer(-1))
        x = a.each(lambda b, c: b - c, late, early)
    return x


def largest_so_far(a, x, dim):
    return a.scan("CumMax", x, dim)


@op("cummax", called="largest_so_far", gives=SAME)
def _cummax(a, input: Tensor, dim: Dim):
    return a.extremes(largest_so_far(a, input, dim), None)


@op("cummin", called="smallest_so_far", gives=SAME)
def _cummin(a, input: Tensor, dim: Dim):
    most = largest_so_far(a, a.each(lambda x: -x, input), dim)
    return a.extremes(a.each(lambda m: -m, most), None)


@op("prod", called="product", gives=SAME)
def _prod(a, input: Tensor, dim: Dim | None = None, keepdim: Flag = False):
    """The last cumulative product: its derivative has no division."""
    x = input
    for place in range(x.rank)[::-1] if dim is None else [dim]:
        x = a.entry(a.scan("CumProd", x, place), place, a.shape(x)[place] - 1)
        x = a.unsqueezed(x, place) if keepdim else x
    return x


def areas(a, y, x, dx, dim):
    """The area between each two neighbouring points."""
    late, early = a.part(y, dim, S.One, None), a.part(y, dim, S.Zero, Integer(-1))
    if x is None:
        return a.each(lambda p, q, d: (p + q) * d / 2, late, early, dx)
    place = dim if x.rank == y.rank else 0
    widths = a.each(
        lambda p, q: p - q,
        a.part(x, place, S.One, None),
        a.part(x, place, S.Zero, Integer(-1)),
    )
    for _ in range(y.rank - 1 - dim if x.rank < y.rank else 0):
        widths = a.unsqueezed(widths, widths.rank)
    return a.each(lambda p, q, d: (p + q) * d / 2, late, early, widths)


@op("trapezoid", "trapz", forms="torch", called="area", of=FLOAT)
def _trapezoid(a, y: Tensor, x: Tensor | None = None, *, dx: Number = 1, dim: Dim = -1):
    return a.sum(areas(a, y, x, dx, dim), dim)


@op("cumulative_trapezoid", forms="torch", called="area_so_far", of=FLOAT)
def _cumulative_trapezoid(a, y: Tensor, x: Tensor | None = None, *, dx: Number = 1, dim: Dim = -1):
    return a.scan("CumSum", areas(a, y, x, dx, dim), dim)


# Of two tensors; along a dimension, with indices; or of all entries


@op("max", called="largest", gives=SAME)
def _max(a, input: Tensor, dim: DimOrTensor | None = None, keepdim: Flag = False, *,
         other: Tensor | None = None):  # fmt: skip
    if dim is None and other is None:
        return a.largest(input)
    if not isinstance(dim, int):
        return maximum(a, input, dim if other is None else other)
    return a.extremes(a.largest(input, dim, keepdim), a.index_of_largest(input, dim, keepdim))


@op("min", called="smallest", gives=SAME)
def _min(a, input: Tensor, dim: DimOrTensor | None = None, keepdim: Flag = False, *,
         other: Tensor | None = None):  # fmt: skip
    if dim is None and other is None:
        return _amin(a, input)
    if not isinstance(dim, int):
        return minimum(a, input, dim if other is None else other)
    return a.extremes(_amin(a, input, dim, keepdim), _argmin(a, input, dim, keepdim))


@op("any", gives=BOOL)
def _any(a, input: Tensor, dim: Dims = None, keepdim: Flag = False):
    return a.compared(">", _count_nonzero(a, input, dim, keepdim), 0)


@op("all", gives=BOOL)
def _all(a, input: Tensor, dim: Dims = None, keepdim: Flag = False):
    zero = a.each(lambda x: where(equal(x, 0), 1, 0), input)
    return a.compared("==", a.sum(zero, dim, keepdim), 0)
