"""Entry by entry: functions, arithmetic, comparisons, choices."""

from __future__ import annotations

import sympy

from codegen.importing.operations.table import rule
from codegen.importing.values import Refused
from derive.torch_ops import trees
from derive.torch_ops.trees import ONE, TWO, ZERO, Tree

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


@rule("glu", called="hidden")
def _glu(r, x, dim=-1):
    i = dim % x.rank
    value, gate = r.part(x, i, 2, 0), r.part(x, i, 2, 1)
    return r.pointwise(trees.product, value, r.pointwise(sigmoid, gate))
