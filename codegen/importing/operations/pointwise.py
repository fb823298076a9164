"""Entry by entry: functions, arithmetic, comparisons, choices."""

from __future__ import annotations

from collections.abc import Callable

import sympy

from codegen.importing import trees
from codegen.importing.operations.table import names, rule, rules
from codegen.importing.trees import ONE, TWO, ZERO, Tree
from codegen.importing.values import Refused

SQRT_TWO, SQRT_TWO_OVER_PI = map(trees.number, (sympy.sqrt(2), sympy.sqrt(2 / sympy.pi)))
CUBIC = 0.044715  # of the approximation of gelu: Hendrycks and Gimpel (2016), section 2
SELU_SLOPE, SELU_SCALE = 1.6732632423543772, 1.0507009873554805  # Klambauer et al. (2017)
EDGE, WIDTH = 3, 6  # of the hard sigmoid: relu6(x + 3) / 6


def exp(x: Tree) -> Tree:
    return trees.call("exp", x)


def log(x: Tree) -> Tree:
    return trees.call("log", x)


def sqrt(x: Tree) -> Tree:
    return trees.call("sqrt", x)


def sigmoid(x: Tree) -> Tree:
    return trees.quotient(ONE, trees.sum_of(ONE, exp(trees.minus(x))))


def softplus(x: Tree) -> Tree:
    return log(trees.sum_of(ONE, exp(x)))


def log_sigmoid(x: Tree) -> Tree:
    return trees.minus(softplus(trees.minus(x)))


def relu(x: Tree) -> Tree:
    return trees.choice((ZERO, trees.compared("<=", x, ZERO)), otherwise=x)


def held(x: Tree, low: Tree | None, high: Tree | None) -> Tree:
    """Between two numbers; at its edges the gradient is that of x, as torch's clamp has it."""
    pairs = [] if low is None else [(low, trees.compared("<", x, low))]
    pairs += [] if high is None else [(high, trees.compared(">", x, high))]
    return trees.choice(*pairs, otherwise=x)


def inverse_normal(p: Tree) -> Tree:
    """The quantiles of the normal distribution."""
    return trees.product(
        SQRT_TWO, trees.call("erfinv", trees.difference(trees.product(TWO, p), ONE))
    )


def hard_sigmoid(x: Tree) -> Tree:
    edge = trees.number(EDGE)
    pairs = (ZERO, trees.compared("<=", x, trees.minus(edge))), (ONE, trees.compared(">=", x, edge))
    return trees.choice(
        *pairs, otherwise=trees.quotient(trees.sum_of(x, edge), trees.number(WIDTH))
    )


def hard_swish(x: Tree) -> Tree:
    edge = trees.number(EDGE)
    pairs = (ZERO, trees.compared("<=", x, trees.minus(edge))), (x, trees.compared(">=", x, edge))
    inside = trees.product(x, trees.quotient(trees.sum_of(x, edge), trees.number(WIDTH)))
    return trees.choice(*pairs, otherwise=inside)


def larger(a: Tree, b: Tree) -> Tree:
    return trees.choice((a, trees.compared(">", a, b)), otherwise=b)


def smaller(a: Tree, b: Tree) -> Tree:
    return trees.choice((a, trees.compared("<", a, b)), otherwise=b)


# Functions of one tensor. Those that SymPy has under the same name are below.
POINTWISE: dict[str, Callable[[Tree], Tree]] = {
    "neg": trees.minus,
    "square": trees.square,
    "sqrt": sqrt,
    "rsqrt": lambda x: trees.quotient(ONE, sqrt(x)),
    "reciprocal": lambda x: trees.quotient(ONE, x),
    "abs": lambda x: trees.call("Abs", x),
    "sgn": lambda x: trees.call("sign", x),
    "log1p": lambda x: log(trees.sum_of(ONE, x)),
    "log2": lambda x: trees.quotient(log(x), log(TWO)),
    "log10": lambda x: trees.quotient(log(x), log(trees.number(10))),
    "exp2": lambda x: trees.power(TWO, x),
    "expm1": lambda x: trees.difference(exp(x), ONE),
    "erfc": lambda x: trees.difference(ONE, trees.call("erf", x)),
    "lgamma": lambda x: trees.call("loggamma", x),
    "ceil": lambda x: trees.call("ceiling", x),
    "trunc": lambda x: trees.choice(
        (trees.call("ceiling", x), trees.compared("<", x, ZERO)), otherwise=trees.call("floor", x)
    ),
    "i0": lambda x: trees.call("besseli", ZERO, x),
    "special_i1": lambda x: trees.call("besseli", ONE, x),
    "special_ndtri": inverse_normal,
    "sigmoid": sigmoid,
    "logit": lambda x: log(trees.quotient(x, trees.difference(ONE, x))),
    "log_sigmoid": log_sigmoid,
    "relu": relu,
    "relu6": lambda x: held(relu(x), None, trees.number(WIDTH)),
    "silu": lambda x: trees.quotient(x, trees.sum_of(ONE, exp(trees.minus(x)))),
    "mish": lambda x: trees.product(x, trees.call("tanh", softplus(x))),
    "hardsigmoid": hard_sigmoid,
    "hardswish": hard_swish,
}
OF_SYMPY = ("exp", "log", "tanh", "erf", "sin", "cos", "tan", "sinh", "cosh", "sign")
OF_SYMPY += ("asin", "acos", "atan", "asinh", "acosh", "atanh", "erfinv", "floor", "digamma")
POINTWISE |= {name: lambda x, name=name: trees.call(name, x) for name in OF_SYMPY}
rules |= {name: lambda r, x, f=f: r.pointwise(f, x) for name, f in POINTWISE.items()}
NAMED = {"exp": "exps", "sigmoid": "gate", "relu": "hidden", "sqrt": "root", "tanh": "hidden"}
names.update(NAMED)


# Arithmetic


@rule("add", called="total")
def _add(r, x, other, alpha=1):
    return r.sum_like(trees.sum_of, x, _times(r, other, alpha))


@rule("sub", "subtract", called="diff")
def _sub(r, x, other, alpha=1):
    return r.sum_like(trees.difference, x, _times(r, other, alpha))


@rule("rsub", called="diff")
def _rsub(r, x, other, alpha=1):
    return r.sum_like(trees.difference, other, _times(r, x, alpha))


def _times(r, x, factor):
    return x if factor == 1 else r.pointwise(trees.product, factor, x)


@rule("div", "divide", "true_divide", called="ratio")
def _div(r, x, other, rounding_mode=None):
    if rounding_mode is not None:
        raise Refused("a rounding division", "divide without rounding_mode")
    return r.pointwise(trees.quotient, x, other)


@rule("pow", called="power")
def _pow(r, x, exponent):
    return r.pointwise(trees.power, x, exponent)


@rule("addcmul")
def _addcmul(r, x, tensor1, tensor2, value=1):
    product = r.pointwise(trees.product, tensor1, tensor2)
    return r.sum_like(trees.sum_of, x, _times(r, product, value))


@rule("addcdiv")
def _addcdiv(r, x, tensor1, tensor2, value=1):
    return r.sum_like(trees.sum_of, x, _times(r, _div(r, tensor1, tensor2), value))


@rule("lerp")
def _lerp(r, x, end, weight):
    step = r.pointwise(trees.product, r.sum_like(trees.difference, end, x), weight)
    return r.sum_like(trees.sum_of, x, step)


@rule("logaddexp")
def _logaddexp(r, x, other):
    both = r.sum_like(trees.sum_of, r.pointwise(exp, x), r.pointwise(exp, other))
    return r.pointwise(log, both)


@rule("atan2", called="angle")
def _atan2(r, x, other):
    return r.pointwise(lambda a, b: trees.call("atan2", a, b), x, other)


@rule("remainder", called="rest")
def _remainder(r, x, other):
    return r.pointwise(lambda a, b: trees.call("Mod", a, b), x, other)


@rule("round", called="rounded")
def _round(r, x, decimals=0):
    scale = trees.number(sympy.Integer(10) ** decimals)
    return r.pointwise(
        lambda x: trees.quotient(trees.call("Round", trees.product(scale, x)), scale), x
    )


@rule("polygamma", "special_polygamma")
def _polygamma(r, n, x):
    return r.pointwise(lambda x: trees.call("polygamma", trees.number(n), x), x)


# Activations with numbers of their own


@rule("gelu", called="hidden")
def _gelu(r, x, approximate="none"):
    def exactly(x: Tree) -> Tree:
        inner = trees.call("erf", trees.quotient(x, SQRT_TWO))
        return trees.quotient(trees.product(x, trees.sum_of(ONE, inner)), TWO)

    def nearly(x: Tree) -> Tree:
        cubic = trees.product(trees.number(CUBIC), trees.power(x, trees.number(3)))
        inner = trees.product(SQRT_TWO_OVER_PI, trees.sum_of(x, cubic))
        whole = trees.sum_of(ONE, trees.call("tanh", inner))
        return trees.quotient(trees.product(x, whole), TWO)

    return r.pointwise(nearly if approximate == "tanh" else exactly, x)


@rule("elu", called="hidden")
def _elu(r, x, alpha=1, scale=1, input_scale=1):
    def of(x: Tree) -> Tree:
        inner = trees.product(trees.number(input_scale), x)
        below = trees.product(trees.number(alpha), trees.difference(exp(inner), ONE))
        whole = trees.choice((x, trees.compared(">", x, ZERO)), otherwise=below)
        return trees.product(trees.number(scale), whole)

    return r.pointwise(of, x)


@rule("selu", called="hidden")
def _selu(r, x):
    return _elu(r, x, SELU_SLOPE, SELU_SCALE)


@rule("celu", called="hidden")
def _celu(r, x, alpha=1.0):
    def of(x: Tree) -> Tree:
        inner = trees.difference(exp(trees.quotient(x, trees.number(alpha))), ONE)
        below = trees.product(trees.number(alpha), inner)
        return trees.choice((x, trees.compared(">", x, ZERO)), otherwise=below)

    return r.pointwise(of, x)


@rule("leaky_relu", called="hidden")
def _leaky_relu(r, x, negative_slope):
    def of(x: Tree) -> Tree:
        below = trees.product(trees.number(negative_slope), x)
        return trees.choice((x, trees.compared(">", x, ZERO)), otherwise=below)

    return r.pointwise(of, x)


@rule("softplus", called="hidden")
def _softplus(r, x, beta, threshold):
    """Beyond the threshold torch takes x: the two differ by less than float32 holds."""

    def of(x: Tree) -> Tree:
        inner = softplus(trees.product(trees.number(beta), x))
        return trees.quotient(inner, trees.number(beta))

    return r.pointwise(of, x)


@rule("glu", called="hidden")
def _glu(r, x, dim=-1):
    i = dim % x.rank
    value, gate = r.part(x, i, 2, 0), r.part(x, i, 2, 1)
    return r.pointwise(trees.product, value, r.pointwise(sigmoid, gate))
