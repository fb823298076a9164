"""Entrywise operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import sympy

from derive.language.functions import TABLE
from derive.language.torch_ops.formulas import (
    Abs,
    both,
    equal,
    erf,
    exp,
    floor,
    function,
    held,
    log,
    sigmoid,
    sign,
    sin,
    sqrt,
    tanh,
    where,
)
from derive.language.torch_ops.table import (
    FLOAT,
    INTEGRAL,
    SAME,
    TENSORS,
    Number,
    Size,
    Tensor,
    Word,
    op,
    table,
)
from derive.language.torch_ops.trees import Tree, number

SELU = 1.6732632423543772, 1.0507009873554805  # slope and scale: Klambauer et al. (2017)


PI, ROOT_OF_2 = number(sympy.pi), number(sympy.sqrt(2))


def softplus(x: Tree) -> Tree:
    return log(1 + exp(x))


def normal(x: Tree) -> Tree:
    """The cumulative distribution function of the standard normal."""
    return (1 + erf(x / ROOT_OF_2)) / 2


def trunc(x: Tree) -> Tree:
    return where(x < 0, function("ceiling")(x), floor(x))


# Functions of one entry; what the table of functions has is below.
FORMULAS = {
    "sqrt": sqrt,
    "special_ndtri": lambda p: ROOT_OF_2 * function("erfinv")(2 * p - 1),
    "log2": lambda x: log(x) / log(number(2)),
    "log10": lambda x: log(x) / log(number(10)),
    "exp2 special_exp2": lambda x: number(2) ** x,
    "rsqrt": lambda x: 1 / sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "erfc special_erfc": lambda x: 1 - erf(x),
    "special_erfcx": lambda x: exp(x**2) * (1 - erf(x)),
    "log1p special_log1p": lambda x: log(1 + x),
    "expm1 special_expm1": lambda x: exp(x) - 1,
    "special_ndtr": normal,
    "special_log_ndtr": lambda x: log(normal(x)),
    "special_entr": lambda x: where(equal(x, 0), 0, -x * log(x)),
    "sinc special_sinc": lambda x: where(equal(x, 0), 1, sin(PI * x) / (PI * x)),
    "special_i0e": lambda x: exp(-Abs(x)) * function("besseli")(0, x),
    "special_i1e": lambda x: exp(-Abs(x)) * function("besseli")(1, x),
    "rad2deg": lambda x: x * 180 / PI,
    "deg2rad": lambda x: x * PI / 180,
    "sigmoid special_expit": sigmoid,
    "logsigmoid log_sigmoid": lambda x: -softplus(-x),
    "silu": lambda x: x / (1 + exp(-x)),
    "mish": lambda x: x * tanh(softplus(x)),
    "hardsigmoid": lambda x: where(x <= -3, 0, where(x >= 3, 1, (x + 3) / 6)),
    "hardswish": lambda x: where(x <= -3, 0, where(x >= 3, x, x * ((x + 3) / 6))),
    "tanhshrink": lambda x: x - tanh(x),
    "softsign": lambda x: x / (1 + Abs(x)),
}
OF_INTEGERS = {  # these keep integers
    "neg negative": lambda x: -x,
    "relu": lambda x: where(x <= 0, 0, x),
    "relu6": lambda x: where(x <= 0, 0, where(x >= 6, 6, x)),
    "trunc fix": trunc,
    "frac": lambda x: x - trunc(x),
}
OF_FLOATS_ALONE = {"silu", "logsigmoid", "hardsigmoid", "mish", "hardswish"}
CALLED = {"exp": "exps", "sigmoid": "gate", "relu": "hidden", "tanh": "hidden"}


def _enter(names: Sequence[str], formula: Callable[[Tree], Tree], of_integers: bool) -> None:
    """A row for a function of one entry."""

    def meaning(a, input: Tensor):
        return a.each(formula, input)

    of = FLOAT if names[0] in OF_FLOATS_ALONE else "number" if of_integers else ""
    gives = SAME if of_integers else FLOAT
    op(*names, forms="method torch F", called=CALLED.get(names[0], ""), gives=gives, of=of)(meaning)


def _of_order(names: Sequence[str], formula: Callable[..., Tree]) -> None:
    """A row for a function of an order and one entry."""

    @op(*names)
    def meaning(a, n: Size, input: Tensor):
        return a.each(lambda x: formula(n, x), input)


for _rows in (FORMULAS, OF_INTEGERS):
    for _names, _formula in _rows.items():
        _enter(_names.split(), _formula, _rows is OF_INTEGERS)

# Functions of several entries or with parameters


@op("logit", "special_logit", of=FLOAT)
def _logit(a, input: Tensor, eps: Number | None = None):
    x = input if eps is None else a.each(lambda x, e: held(x, e, 1 - e), input, eps)
    return a.each(lambda x: log(x / (1 - x)), x)


@op("softplus", forms="F", called="hidden", of=FLOAT)
def _softplus(a, input: Tensor, beta: Number = 1, threshold: Number = 20):
    """Beyond the threshold torch returns x: the difference is below float32's resolution."""
    return a.each(lambda x, b: softplus(b * x) / b, input, beta)


@op("gelu", forms="F", called="hidden", of=FLOAT)
def _gelu(a, input: Tensor, approximate: Word = "none"):
    half = lambda x: x * (1 + erf(x / ROOT_OF_2)) / 2  # noqa: E731
    root = number(sympy.sqrt(2 / sympy.pi))
    near = lambda x: x * (1 + tanh(root * (x + 0.044715 * x**3))) / 2  # noqa: E731
    return a.each(near if approximate == "tanh" else half, input)


@op("elu", forms="F", called="hidden", of=FLOAT)
def _elu(a, input: Tensor, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1):
    below = lambda x, n, s, i: s * where(x > 0, x, n * (exp(i * x) - 1))  # noqa: E731
    return a.each(below, input, alpha, scale, input_scale)


@op("selu", forms="torch F", called="hidden", of=FLOAT)
def _selu(a, input: Tensor):
    return _elu(a, input, *SELU)


@op("celu", forms="torch F", called="hidden", of=FLOAT)
def _celu(a, input: Tensor, alpha: Number = 1):
    return a.each(lambda x, n: where(x > 0, x, n * (exp(x / n) - 1)), input, alpha)


@op("leaky_relu", forms="F", called="hidden")
def _leaky_relu(a, input: Tensor, negative_slope: Number = 0.01):
    return a.each(lambda x, n: where(x > 0, x, n * x), input, negative_slope)


@op("hardtanh", forms="F", called="held", gives=SAME)
def _hardtanh(a, input: Tensor, min_val: Number = -1, max_val: Number = 1):
    """Its gradient at the two edges is 0."""
    clipped = lambda x, low, high: where(x <= low, low, where(x >= high, high, x))  # noqa: E731
    return a.each(clipped, input, min_val, max_val)


@op("threshold", forms="torch F", gives=SAME)
def _threshold(a, input: Tensor, threshold: Number, value: Number):
    return a.each(lambda x, t, v: where(x > t, x, v), input, threshold, value)


@op("softshrink", forms="F", of=FLOAT)
def _softshrink(a, input: Tensor, lambd: Number = 0.5):
    return a.each(lambda x, n: where(x > n, x - n, where(x < -n, x + n, 0)), input, lambd)


@op("hardshrink", forms="torch F", of=FLOAT)
def _hardshrink(a, input: Tensor, lambd: Number = 0.5):
    return a.each(lambda x, n: where(both(x <= n, x >= -n), 0, x), input, lambd)


@op("lerp", of=FLOAT)
def _lerp(a, input: Tensor, end: Tensor, weight: Number):
    return a.each(lambda x, y, w: x + (y - x) * w, input, end, weight)


@op("addcdiv", of=FLOAT)
def _addcdiv(a, input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1):
    return a.each(lambda x, y, z, v: x + v * (y / z), input, tensor1, tensor2, value)


@op("logaddexp", of=FLOAT)
def _logaddexp(a, input: Tensor, other: Tensor):
    return a.each(lambda x, y: log(exp(x) + exp(y)), input, other)


@op("logaddexp2", of=FLOAT)
def _logaddexp2(a, input: Tensor, other: Tensor):
    two = number(2)
    return a.each(lambda x, y: log(two**x + two**y) / log(two), input, other)


@op("xlogy", "special_xlogy")
def _xlogy(a, input: Number, other: Number):
    return a.each(lambda x, y: where(equal(x, 0), 0, x * log(y)), input, other)


@op("special_xlog1py", forms="torch")
def _xlog1py(a, input: Number, other: Number):
    return a.each(lambda x, y: where(equal(x, 0), 0, x * log(1 + y)), input, other)


@op("fmod", called="rest", gives=SAME)
def _fmod(a, input: Tensor, other: Number):
    """The result has the dividend's sign; that of remainder has the divisor's."""
    return a.each(lambda x, y: x - y * trunc(x / y), input, other)


@op("remainder", called="rest", gives=SAME)
def _remainder(a, input: Tensor, other: Number):
    return a.each(function("Mod"), input, other)


@op("ldexp")
def _ldexp(a, input: Tensor, other: Number):
    return a.each(lambda x, n: x * number(2) ** n, input, other)


@op("addcmul", gives=TENSORS)
def _addcmul(a, input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1):
    return a.each(lambda x, y, z, v: x + v * (y * z), input, tensor1, tensor2, value)


@op("mvlgamma", "special_multigammaln")
def _mvlgamma(a, input: Tensor, p: Size):
    """The logarithm of the multivariate gamma function."""
    terms = [number(sympy.Rational(1 - j, 2)) for j in range(1, int(p) + 1)]
    first = number(sympy.Rational(int(p * (p - 1)), 4)) * log(PI)
    lgamma = function("loggamma")
    return a.each(lambda x: sum((lgamma(x + t) for t in terms), first), input)


@op("hypot", of=FLOAT)
def _hypot(a, input: Tensor, other: Tensor):
    return a.each(lambda x, y: sqrt(x**2 + y**2), input, other)


@op("copysign")
def _copysign(a, input: Tensor, other: Number):
    return a.each(lambda x, y: where(y >= 0, Abs(x), -Abs(x)), input, other)


@op("heaviside", gives=SAME)
def _heaviside(a, input: Tensor, values: Tensor):
    return a.each(lambda x, v: where(x < 0, 0, where(x > 0, 1, v)), input, values)


@op("nan_to_num", gives=SAME)
def _nan_to_num(a, input: Tensor, nan: Number = 0, posinf: Number | None = None,
                neginf: Number | None = None):  # fmt: skip
    """The identity: all numbers of the notation are finite."""
    return a.each(lambda x: x, input)


@op("sign", "sgn", forms="method torch F", gives=SAME)
def _sign(a, input: Tensor):
    return a.each(sign, input)


@op("square", forms="method torch F", gives=INTEGRAL)
def _square(a, input: Tensor):
    return a.each(lambda x: x**2, input)


@op("positive", forms="method torch F", gives=SAME, of="number")
def _positive(a, input: Tensor):
    return input


@op("round", "special_round", called="rounded", gives=SAME, of="number")
def _round(a, input: Tensor, *, decimals: Number = 0):
    if a.is_zero(decimals):
        return a.each(function("Round"), input)
    return a.each(lambda x, n: function("Round")(x * 10**n) / 10**n, input, decimals)


@op("atan2", "arctan2", called="angle")
def _atan2(a, input: Tensor, other: Tensor):
    return a.each(function("atan2"), input, other)


for _row in TABLE:  # those that nothing above reads otherwise
    if not _row.in_torch or table.keys() & {*_row.in_torch}:
        continue
    _name, *_leading = _row.called()
    if (_row.arguments, _row.orders) == (2, 1):
        _of_order(_row.in_torch, function(_name))
    elif _row.arguments == 1:
        _enter(_row.in_torch, partial(function(_name), *_leading), _row.whole)
