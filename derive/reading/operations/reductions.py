"""Torch's functions along dimensions, by name.

They are read as mathematics: a softmax is ``exp(x)/Sum(exp(x))``, whatever torch does for accuracy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sympy import Expr, Mul, exp, log

from derive.language.nodes import ArgMax, Max, summed
from derive.language.symbols import axes_of
from derive.reading import literal
from derive.reading.broadcasting import negated
from derive.reading.composed import total
from derive.reading.operations.choosing import maximum, minimum
from derive.reading.operations.dtypes import asked, converted, floats, numbers
from derive.reading.operations.entries import Extremes, Operation, entry, reduced, truth
from derive.reading.operations.functions import applied
from derive.reading.refusals import Refusal
from derive.reading.values import BOOL, FLOAT, INDEX, INT, NUMBER, Space, Value, number

reductions: dict[str, Operation] = {}
linalg: dict[str, Operation] = {}  # torch.linalg's and np.linalg's


@entry(reductions, "sum")
def _sum(space: Space, input: Value, dim=None, keepdim=False, dtype=None):
    x = _as_asked(space, input, dtype)
    held = INT if x.dtype == BOOL else x.dtype
    build = lambda e, axes: total(e, axes, space.size)  # noqa: E731
    return reduced(space, x, dim, keepdim, build, dtype=held)


def _as_asked(space: Space, x: Value, dtype) -> Value:
    """``x`` as the argument ``dtype`` wants it before it is reduced."""
    return x if dtype is None else converted(space, x, asked(dtype, x.dtype))


def _mean_of(space: Space, e: Expr, axes) -> Expr:
    return summed(e, axes, space.size) / _count(space, axes)


def _count(space: Space, axes) -> Expr:
    return Mul(*(space.size(axis) for axis in axes))


@entry(reductions, "mean")
def _mean(space: Space, input: Value, dim=None, keepdim=False, dtype=None):
    x = floats(_as_asked(space, input, dtype), "mean")
    return reduced(space, x, dim, keepdim, lambda e, axes: _mean_of(space, e, axes))


@entry(reductions, "var")
def variance(
    space: Space, input: Value, dim=None, unbiased=None, keepdim=False, *, correction=None
):
    if isinstance(dim, bool):  # x.var(False)
        dim, unbiased = None, dim
    if correction is None:
        correction = number(int(True if unbiased is None else truth(unbiased, "unbiased")))
    less = correction.expression

    def build(e, axes):
        if not axes:
            raise Refusal("the variance of one number", "name a dimension that has a size")
        squares = summed((e - _mean_of(space, e, axes)) ** 2, axes, space.size)
        count = _count(space, axes) - less
        return literal.divided(squares, count) if space.as_written else squares / count

    extent = ((input.extent + input.extent.inside()) ** 2).inside()
    return reduced(space, floats(input, "variance"), dim, keepdim, build, extent)


@entry(reductions, "std")
def _std(space: Space, input: Value, dim=None, unbiased=None, keepdim=False, *, correction=None):
    squared = variance(space, input, dim, unbiased, keepdim, correction=correction)
    return applied(space, "sqrt", squared)


@entry(reductions, "norm")
def _norm(space: Space, input: Value, p=None, dim=None, keepdim=False):
    if p is not None and not (isinstance(p, Value) and p.expression == 2):
        raise Refusal("only the Euclidean norm is supported", "write the sum out")
    squares = applied(space, "square", floats(input, "norm"))
    return applied(space, "sqrt", _sum(space, squares, dim, keepdim))


@entry(linalg, "norm", "vector_norm", forms="torch")
def _norm_of_vectors(space: Space, input: Value, ord=None, dim=None, keepdim=False):
    if ord is not None and not isinstance(dim, Value):  # a matrix's is its largest singular value
        raise Refusal("an order is supported along one dimension", "write .norm(dim=1)")
    return _norm(space, input, ord, dim, keepdim)


def _largest_of(e: Expr, axes) -> Expr:
    for axis in axes:
        e = Max.over(e, [axis]) if axis in axes_of(e) else e
    return e


def _smallest_of(e: Expr, axes) -> Expr:
    return -_largest_of(-e, axes)


def _index_of(e: Expr, axes) -> Expr:
    if len(axes) != 1 or axes[0] not in axes_of(e):
        raise Refusal(
            "only an arg max along one dimension is supported", "name the dimension: .argmax(1)"
        )
    return ArgMax.over(e, axes)


@entry(reductions, "amax")
def _amax(space: Space, input: Value, dim=None, keepdim=False):
    return reduced(space, input, dim, keepdim, _largest_of)


@entry(reductions, "amin")
def _amin(space: Space, input: Value, dim=None, keepdim=False):
    return reduced(space, input, dim, keepdim, _smallest_of)


@entry(reductions, "argmax")
def _argmax(space: Space, input: Value, dim=None, keepdim=False):
    return _index(space, numbers(input, "arg max"), dim, keepdim)


def _index(space: Space, x: Value, dim, keepdim) -> Value:
    return replace(reduced(space, x, dim, keepdim, _index_of), kind=INDEX)


@entry(reductions, "argmin")
def _argmin(space: Space, input: Value, dim=None, keepdim=False):
    return _index(space, negated(space, numbers(input, "arg min")), dim, keepdim)


@entry(reductions, "max")
def _max(space: Space, input: Value, dim=None, keepdim=False):
    if isinstance(dim, Value) and dim.kind != NUMBER:  # torch.max(a, b)
        return maximum(space, input, dim)
    values = _amax(space, input, dim, keepdim)
    return values if dim is None else Extremes(values, _index(space, input, dim, keepdim))


@entry(reductions, "min")
def _min(space: Space, input: Value, dim=None, keepdim=False):
    if isinstance(dim, Value) and dim.kind != NUMBER:
        return minimum(space, input, dim)
    values = _amin(space, input, dim, keepdim)
    lowest = negated(space, input)
    return values if dim is None else Extremes(values, _index(space, lowest, dim, keepdim))


@entry(reductions, "logsumexp")
def _logsumexp(space: Space, input: Value, dim, keepdim=False):
    def build(e, axes):
        return log(summed(exp(e), axes, space.size))

    return reduced(space, input, dim, keepdim, build, input.extent.inside().inside(), FLOAT)


def _along(space: Space, input: Value, dim, dtype, build: Callable) -> Value:
    """Of the same shape as ``input``, with what is summed along ``dim`` inside."""
    input = floats(_as_asked(space, input, dtype), "softmax")
    if dim is None:
        raise Refusal("the dimension is missing", "name it: F.softmax(x, 1)")
    inside = input.extent.inside()
    result = reduced(space, input, dim, True, build, inside * inside.inside())
    return Value(result.expression, input.dims, extent=result.extent)


@entry(reductions, "softmax", forms="method torch F")
def _softmax(space: Space, input: Value, dim=None, dtype=None):
    def build(e, axes):
        return exp(e) / summed(exp(e), axes, space.size)

    return _along(space, input, dim, dtype, build)


@entry(reductions, "log_softmax", forms="method torch F")
def _log_softmax(space: Space, input: Value, dim=None, dtype=None):
    def build(e, axes):
        return e - log(summed(exp(e), axes, space.size))

    return _along(space, input, dim, dtype, build)
