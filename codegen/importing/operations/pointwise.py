"""Entry by entry: functions, arithmetic, comparisons, choices."""

from __future__ import annotations

from collections.abc import Callable

import sympy

from codegen.importing import trees
from codegen.importing.operations.table import names, rule, rules
from codegen.importing.trees import ONE, TWO, ZERO, Tree
from codegen.importing.values import CONDITION, LABEL, Refused, Value

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
OF_SYMPY += ("asin", "acos", "atan", "asinh", "acosh", "atanh")
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


@rule("mul", "multiply", called="product")
def _mul(r, x, other):
    """A condition as a factor is a choice."""
    for factor, condition in ((x, other), (other, x)):
        if isinstance(condition, Value) and condition.kind == CONDITION:
            if isinstance(factor, Value) and factor.kind == CONDITION:
                return _logic("and")(r, x, other)
            return r.chosen(condition, factor, 0)
    return r.pointwise(trees.product, x, other)


@rule("div", "divide", "true_divide", called="ratio")
def _div(r, x, other, rounding_mode=None):
    if rounding_mode is not None:
        raise Refused("a division that rounds", "divide without rounding")
    return r.pointwise(trees.quotient, x, other)


@rule("pow", called="power")
def _pow(r, x, exponent):
    return r.pointwise(trees.power, x, exponent)


@rule("addcmul")
def _addcmul(r, x, tensor1, tensor2, value=1):
    return r.sum_like(trees.sum_of, x, _times(r, _mul(r, tensor1, tensor2), value))


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


@rule("xlogy")
def _xlogy(r, x, other):
    """Nothing where x is 0."""
    whole = r.pointwise(lambda a, b: trees.product(a, log(b)), x, other)
    return r.chosen(_compare("==")(r, x, 0), 0, whole)


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
def _leaky_relu(r, x, negative_slope=0.01):
    def of(x: Tree) -> Tree:
        below = trees.product(trees.number(negative_slope), x)
        return trees.choice((x, trees.compared(">", x, ZERO)), otherwise=below)

    return r.pointwise(of, x)


@rule("prelu", called="hidden")
def _prelu(r, x, weight):
    if weight.rank == 1 and x.rank > 1:  # torch puts it along the second dimension
        weight = weight.along((weight.dims[0], *((),) * (x.rank - 2)))
    x = r.let(r.called(x), r.as_number(x))
    return r.chosen(_compare(">")(r, x, 0), x, r.pointwise(trees.product, weight, x))


@rule("softplus", called="hidden")
def _softplus(r, x, beta=1, threshold=20):
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


# Comparisons and choices


def _compare(relation: str):
    def of(r, x, other):
        known = trees.value_of(other.tree) if isinstance(other, Value) and not other.axes else None
        other = other if known is None or other.rank else known
        if isinstance(x, Value) and x.kind == LABEL and not isinstance(other, Value):
            return _counted_labels(r, x, other, relation)
        whole = relation in ("==", "!=") and not isinstance(other, Value) and other in (0, 1)
        known = _condition(x) if whole else None
        if known is not None:
            yes = (relation == "==") == bool(other)
            return known if yes else known.of(trees.opposite(known.tree))
        found = r.pointwise(lambda a, b: trees.compared(relation, a, b), x, other)
        return Value(found.tree, found.dims, CONDITION)

    return of


def _condition(x: Value) -> Value | None:
    """A condition, or numbers that are 1 where one holds, else 0."""
    if x.kind == CONDITION:
        return x
    tree = trees.condition_of(x.tree) if x.tree.kind == "choice" else None
    return None if tree is None else Value(tree, x.dims, CONDITION)


def _counted_labels(r, x: Value, number, relation: str) -> Value:
    """Labels beside the number that picks nothing: which of them count."""
    at = r.sizes.hint(r.sizes.plain(number))
    negative = at < 0 if relation in ("==", "!=") else at == 0
    if not negative or relation not in ("==", "!=", ">=", "<"):
        numbers = r.as_number(x)
        tree = trees.compared(relation, numbers.tree, r.number(number))
        return Value(tree, x.dims, CONDITION)
    if relation in ("==", "!="):
        r.ignore(x, at)
    else:
        r.ignore(x, None)
    counts = trees.compared("!=", trees.kept(x.tree), ZERO)
    return Value(counts if relation in ("!=", ">=") else trees.opposite(counts), x.dims, CONDITION)


for _name, _relation in {
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
}.items():
    rules[_name] = _compare(_relation)


def _logic(kind: str):
    def of(r, x, other):
        (a, b), dims = r.aligned(r.as_condition(x), r.as_condition(other))
        return Value(trees.joined(kind, a.tree, b.tree), dims, CONDITION)

    return of


for _name in ("logical_and", "bitwise_and", "__and__"):
    rules[_name] = _logic("and")
for _name in ("logical_or", "bitwise_or", "__or__"):
    rules[_name] = _logic("or")


@rule("logical_not", "bitwise_not")
def _not(r, x):
    condition = r.as_condition(x)
    return condition.of(trees.opposite(condition.tree))


@rule("where")
def _where(r, condition, x, other):
    return r.chosen(condition, x, other)


@rule("masked_fill")
def _masked_fill(r, x, mask, value):
    if x.kind == LABEL:  # those that are ignored, given a class: their one-hot is 0 as it is
        return x
    return r.chosen(mask, value, x)


@rule("clamp", "clip", "hardtanh", called="held")
def _clamp(r, x, min=None, max=None, min_val=-1, max_val=1):
    if isinstance(x, Value) and x.kind == LABEL and max is None and min == 0:
        return x
    if operation(r) == "hardtanh":
        return r.pointwise(_open_clamp(min_val, max_val), x)
    low, high = (None if b is None else b for b in (min, max))
    bounds = [b for b in (low, high) if b is not None]

    def of(x, *found):
        given = iter(found)
        return held(x, *(None if b is None else next(given) for b in (low, high)))

    return r.pointwise(of, x, *bounds)


def _open_clamp(low, high):
    """hardtanh passes no gradient at its edges."""
    bottom, top = trees.number(low), trees.number(high)

    def of(x: Tree) -> Tree:
        pairs = (bottom, trees.compared("<=", x, bottom)), (top, trees.compared(">=", x, top))
        return trees.choice(*pairs, otherwise=x)

    return of


def operation(r) -> str:
    """Which operation is read."""
    return r.node.target._schema.name.rpartition("::")[2]


@rule("clamp_min", called="held")
def _clamp_min(r, x, min):
    return (
        _clamp(r, x, min=min)
        if x.kind == LABEL
        else r.pointwise(lambda x, m: held(x, m, None), x, min)
    )


@rule("clamp_max", called="held")
def _clamp_max(r, x, max):
    return r.pointwise(lambda x, m: held(x, None, m), x, max)


@rule("minimum", called="smaller")
def _minimum(r, x, other):
    return r.pointwise(smaller, x, other)


@rule("maximum", called="larger")
def _maximum(r, x, other):
    return r.pointwise(larger, x, other)
