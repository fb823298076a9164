"""Normalizations, dropout, and activations with a learned slope."""

from __future__ import annotations

from derive.language.torch_ops.formulas import sigmoid, sqrt, where
from derive.language.torch_ops.reducing import length, mean, spread
from derive.language.torch_ops.table import FLOAT, Dim, Flag, Number, Order, Size, Sizes, Tensor, op
from derive.language.torch_ops.trees import number

LEAST = 2.220446049250313e-16  # torch's default eps of an RMS norm, in float64
RENORMED = 1e-7  # added to the norm by torch's renorm
NATIVE = "_native_batch_norm_legit"


def affine(a, y, weight, bias):
    y = y if weight is None else a.each(lambda w, y: w * y, weight, y)
    return y if bias is None else a.each(lambda y, b: y + b, y, bias)


def whitened(x, m, v, e):
    return (x - m) / sqrt(v + e)


def normalized(a, input, dims, eps):
    """(x - mean) / sqrt(var + eps), with a named statement for each step."""
    x = a.let("u", input)
    var, average = spread(a, x, dims, True, 0)
    return a.let("xhat", a.each(whitened, x, average, a.let("var", var), eps))


def behind(a, x, count: int):
    """Append ``count`` dimensions of size 1."""
    for _ in range(count):
        x = a.unsqueezed(x, x.rank)
    return x


def _last(a, input, sizes):
    """The indices of the last dimensions, which must have these sizes."""
    dims = tuple(range(input.rank - len(sizes), input.rank))
    a.expect(input, dims, sizes)
    return dims


@op("layer_norm", forms="F torch", called="normed", of=FLOAT)
def _layer_norm(
    a, input: Tensor, normalized_shape: Sizes, weight: Tensor | None = None,
    bias: Tensor | None = None, eps: Number = 1e-5,
):  # fmt: skip
    dims = _last(a, input, normalized_shape)
    return affine(a, normalized(a, input, dims, eps), weight, bias)


@op(also="native_layer_norm", called="normed")
def _native_layer_norm(a, input: Tensor, normalized_shape: Sizes, weight: Tensor | None,
                       bias: Tensor | None, eps: Number):  # fmt: skip
    return _layer_norm(a, input, normalized_shape, weight, bias, eps)


@op("rms_norm", forms="F torch", called="normed", of=FLOAT)
def _rms_norm(a, input: Tensor, normalized_shape: Sizes, weight: Tensor | None = None,
              eps: Number = LEAST):  # fmt: skip
    dims = _last(a, input, normalized_shape)
    x = a.let("u", input)
    square = a.let("ms", mean(a, a.each(lambda x: x**2, x), dims, True))
    return affine(a, a.each(lambda x, s, e: x / sqrt(s + e), x, square, eps), weight, None)


def _over_channels(a, input, dims, statistics, more):
    """Normalize over these dimensions, with statistics of the batch or given ones."""
    weight, bias, eps = more
    to_channels = lambda v: None if v is None else behind(a, v, input.rank - 2)  # noqa: E731
    if statistics is None:
        y = normalized(a, input, dims, eps)
    else:
        y = a.each(whitened, input, *map(to_channels, statistics), eps)
    return affine(a, y, to_channels(weight), to_channels(bias))


@op("batch_norm", forms="F", called="normed", of=FLOAT)
def _batch_norm(
    a, input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
    weight: Tensor | None = None, bias: Tensor | None = None, training: Flag = False,
    momentum: Number = 0.1, eps: Number = 1e-5,
):  # fmt: skip
    statistics = _statistics(a, running_mean, running_var, training)
    dims = tuple(i for i in range(input.rank) if i != 1)
    return _over_channels(a, input, dims, statistics, (weight, bias, eps))


def _statistics(a, running_mean, running_var, of_batch):
    if of_batch:
        return a.changed(running_mean, running_var)
    if running_mean is None or running_var is None:
        a.refuse(
            "evaluation without running statistics",
            "call .eval() on the module, or pass no running statistics",
        )
    return running_mean, running_var


@op(NATIVE, f"{NATIVE}_functional", also="native_batch_norm", called="normed")
def _native(
    a, input: Tensor, weight: Tensor | None = None, bias: Tensor | None = None,
    running_mean: Tensor | None = None, running_var: Tensor | None = None, training: Flag = True,
    momentum: Number = 0, eps: Number = 0,
):  # fmt: skip
    return _batch_norm(a, input, running_mean, running_var, weight, bias, training, eps=eps)


@op(f"{NATIVE}_no_training", called="normed")
def _native_known(
    a, input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor,
    running_var: Tensor, momentum: Number, eps: Number,
):  # fmt: skip
    return _batch_norm(a, input, running_mean, running_var, weight, bias, False, eps=eps)


@op("instance_norm", forms="F", called="normed", of=FLOAT)
def _instance_norm(
    a, input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
    weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: Flag = True,
    momentum: Number = 0.1, eps: Number = 1e-5,
):  # fmt: skip
    statistics = _statistics(a, running_mean, running_var, use_input_stats)
    if input.rank < 3:
        a.misfit(
            "an instance norm without dimensions behind the channels",
            "it normalizes over the dimensions behind them",
        )
    return _over_channels(a, input, tuple(range(2, input.rank)), statistics, (weight, bias, eps))


@op("local_response_norm", forms="F", called="normed", of=FLOAT)
def _local_response_norm(a, input: Tensor, size: Size, alpha: Number = 1e-4, beta: Number = 0.75,
                         k: Number = 1.0):  # fmt: skip
    """Divide by a sum over neighbouring channels; for an even size there is one more before than
    behind.
    """
    squares, channels = a.each(lambda x: x**2, input), a.count(input, [1])
    near = a.windows(squares, 1, (channels, size), (1, 1, -(size // 2)))
    formula = lambda x, s, n, b, c: x / (c + n * s) ** b  # noqa: E731
    return a.each(formula, input, mean(a, near, near.rank - 1), alpha, beta, k)


@op("_weight_norm", called="weight")
def _weight_norm(a, v: Tensor, g: Tensor, dim: Dim = 0):
    norm = length(a, v, 2, tuple(i for i in range(v.rank) if i != dim), True)
    return a.each(lambda v, g, n: g * v / n, v, g, norm)


@op("prelu", forms="method torch F", called="hidden", of=FLOAT)
def _prelu(a, input: Tensor, weight: Tensor):
    slope = behind(a, weight, max(input.rank - 2, 0)) if weight.rank else weight
    return a.each(lambda x, w: where(x > 0, x, w * x), input, slope)


@op("rrelu", forms="torch F", called="hidden", of=FLOAT)
def _rrelu(a, input: Tensor, lower: Number = 0.125, upper: Number = 1 / 3, training: Flag = False):
    """In evaluation the slope is the mean of its range."""
    if training:
        a.refuse("rrelu is random", "call .eval() on the module first")
    bent = lambda x, low, high: where(x > 0, x, (low + high) / 2 * x)  # noqa: E731
    return a.each(bent, input, lower, upper)


@op("glu", forms="F", called="hidden", of=FLOAT)
def _glu(a, input: Tensor, dim: Dim = -1):
    value, gate = halves(a, input, dim)
    return a.each(lambda v, g: v * g, value, a.each(sigmoid, gate))


def halves(a, x, dim):
    return equal_parts(a, x, dim, 2)


def equal_parts(a, x, dim: int, count: int):
    """Equal parts of a dimension; its size must be a multiple of ``count``."""
    width = a.count(x, [dim]) / count
    return [a.part(x, dim, k * width, (k + 1) * width) for k in range(count)]


@op("dropout", "alpha_dropout", "feature_dropout", "dropout1d", "dropout2d", "dropout3d",
    forms="torch F", aten={"train": "training"}, gives="same")  # fmt: skip
def _dropout(a, input: Tensor, p: Number = 0.5, training: Flag = True):
    if training and not a.is_zero(p):
        a.refuse(
            "dropout is random",
            "draw it outside the function and pass it as an argument, or call .eval() on the "
            "module first",
        )
    return input


@op("native_dropout", forms="torch", aten={"train": "training"}, gives="same")
def _native_dropout(a, input: Tensor, p: Number, training: Flag):
    """The output, and the mask of kept entries."""
    return _dropout(a, input, p, training), a.each(lambda x: number(1), input)


@op("group_norm", forms="F torch", called="normed", of=FLOAT)
def _group_norm(a, input: Tensor, num_groups: Size, weight: Tensor | None = None,
                bias: Tensor | None = None, eps: Number = 1e-5):  # fmt: skip
    parts = a.apart(a.let("u", input), 1, num_groups)
    y = a.together(normalized(a, parts, tuple(range(2, parts.rank)), eps), 1)
    return affine(a, y, *(None if v is None else behind(a, v, y.rank - 2) for v in (weight, bias)))


@op(also="native_group_norm", called="normed")
def _native_group_norm(
    a, input: Tensor, weight: Tensor | None, bias: Tensor | None, N: Size, C: Size, HxW: Size,
    group: Size, eps: Number,
):  # fmt: skip
    return _group_norm(a, input, group, weight, bias, eps)


@op("renorm", called="held", of=FLOAT)
def _renorm(a, input: Tensor, p: Order, dim: Dim, maxnorm: Number):
    """Scale down each slice along a dimension whose norm is too large."""
    others = tuple(i for i in range(input.rank) if i != dim)
    norm = a.let("norm", length(a, input, p, others, True))
    held_at = lambda x, n, m: where(n > m, x * (m / (n + RENORMED)), x)  # noqa: E731
    return a.each(held_at, input, norm, maxnorm)
