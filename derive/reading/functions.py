"""Torch's functions of entries, by name, and the arithmetic of values."""

from __future__ import annotations

from collections.abc import Callable
from operator import truediv

from sympy import (
    Abs,
    And,
    Basic,
    Expr,
    Ge,
    Gt,
    I,
    Integer,
    Le,
    Not,
    Or,
    Piecewise,
    Pow,
    Rational,
    cos,
    cosh,
    erf,
    exp,
    log,
    sign,
    sin,
    sinh,
    sqrt,
    tanh,
    true,
)
from sympy.core.relational import Relational
from sympy.logic.boolalg import Boolean

from derive.language.symbols import is_constant
from derive.reading import literal
from derive.reading.operations import Operation, entry, tensor
from derive.reading.refusals import Refusal
from derive.reading.values import (
    MASK,
    NUMBER,
    TENSOR,
    Extent,
    Space,
    Value,
    added,
    multiplied,
    negated,
    number,
    pointwise,
    product_of,
    sum_of,
)

LARGEST_EXPONENT, LARGEST_DENOMINATOR = 16, 10**9
MOST_CHOICES, MOST_COMPARISONS = 24, 24


def _sigmoid(e: Expr) -> Expr:
    return 1 / (1 + exp(-e))


def _relu(e: Expr) -> Expr:
    return chosen((e, related(Gt, e, Integer(0))), (0, True))


# One entry in, one entry out.
FUNCTIONS: dict[str, Callable[[Expr], Expr]] = {
    "exp": exp,
    "log": log,
    "tanh": tanh,
    "sqrt": sqrt,
    "rsqrt": lambda e: 1 / sqrt(e),
    "square": lambda e: e**2,
    "reciprocal": lambda e: 1 / e,
    "abs": Abs,
    "sign": sign,
    "sin": sin,
    "cos": cos,
    "cosh": cosh,
    "sinh": sinh,
    "erf": erf,
    "sigmoid": _sigmoid,
    "relu": _relu,
    "softplus": lambda e: log(1 + exp(e)),
    "logsigmoid": lambda e: -log(1 + exp(-e)),
    "silu": lambda e: e * _sigmoid(e),
    "log1p": lambda e: log(1 + e),
    "expm1": lambda e: exp(e) - 1,
    "neg": lambda e: -e,
    "positive": lambda e: e,
}
FUNCTIONS |= {"absolute": Abs, "sgn": sign, "negative": FUNCTIONS["neg"]}
SYMPYS = {"Abs": "abs", "sign": "sign", "erf": "erf"}  # the notation's own names

# The same as it is written, for those that have no value somewhere.
AS_WRITTEN: dict[str, Callable[[Expr], Expr]] = {
    "log": literal.logarithm,
    "log1p": lambda e: literal.logarithm(1 + e),
    "sqrt": lambda e: literal.raised(e, Rational(1, 2)),
    "rsqrt": lambda e: literal.raised(e, Rational(-1, 2)),
    "reciprocal": lambda e: literal.divided(Integer(1), e),
}

functions: dict[str, Operation] = {}


def applied(space: Space, name: str, x: Value) -> Value:
    """The function called ``name`` of every entry."""
    extent = x.extent**2 if name == "square" else x.extent.inside().inside()
    build = AS_WRITTEN.get(name) if space.as_written else None
    result = pointwise(space, build or FUNCTIONS[name], [x], extent)
    if result.expression.has(I):
        raise Refusal(f"{name} of a negative number", "it is no real number")
    return result


def _pointwise_entry(name: str):
    def compute(space: Space, input: Value):
        return applied(space, name, input)

    return Operation(compute, frozenset(("method", "torch", "F")))


functions |= {name: _pointwise_entry(name) for name in FUNCTIONS}


# Arithmetic


def power(space: Space, base: Value, exponent: Value) -> Value:
    """``base ** exponent`` for an exponent that is a number, bounded, or a base that is one."""
    e = exponent.expression
    if base.kind == NUMBER and exponent.kind == TENSOR and base.expression.is_positive:
        extent = product_of([base.extent, exponent.extent]).inside()
        return pointwise(space, Pow, [base, exponent], extent)
    if exponent.kind != NUMBER or not is_constant(e):
        raise Refusal(
            "the exponent is a tensor",
            "exponents are numbers, sizes and scalars; else exp(p*log(x))",
        )
    if e.is_Rational and (abs(e) > LARGEST_EXPONENT or e.q > LARGEST_DENOMINATOR):
        raise Refusal(f"the exponent {e} is too large", f"at most {LARGEST_EXPONENT} is read")
    if base.expression == 0 and e.is_nonnegative is not True:
        raise Refusal("a power of 0 that is no number", "it divides by 0")
    whole = e.is_Integer and e.is_nonnegative
    extent = base.extent ** int(e) if whole else _scaled(base.extent, e) + exponent.extent
    build = literal.raised if space.as_written else Pow
    result = pointwise(space, build, [base, exponent], extent)
    if result.expression.has(I):
        raise Refusal("a root of a negative number", "it is no real number")
    return result


def _scaled(extent: Extent, e: Expr) -> Extent:
    times = abs(int(e)) + 1 if e.is_Rational else 1
    return Extent(extent.terms, extent.length * times, extent.depth + 1)


def divided(space: Space, above: Value, below: Value) -> Value:
    if below.expression == 0:
        raise Refusal("this divides by 0", "mend the divisor")
    extent = product_of([above.extent, below.extent.inside()])
    build = literal.divided if space.as_written else truediv
    return pointwise(space, build, [above, below], extent)


def subtracted(space: Space, a: Value, b: Value) -> Value:
    return added(space, a, negated(space, b))


@entry(functions, "add")
def _add(space: Space, input: Value, other: Value, alpha: Value | None = None):
    return added(space, input, other if alpha is None else multiplied(space, other, alpha))


@entry(functions, "sub", "subtract")
def _sub(space: Space, input: Value, other: Value, alpha: Value | None = None):
    return subtracted(space, input, other if alpha is None else multiplied(space, other, alpha))


@entry(functions, "mul", "multiply")
def _mul(space: Space, input: Value, other: Value):
    return multiplied(space, input, other)


@entry(functions, "div", "divide", "true_divide")
def _div(space: Space, input: Value, other: Value):
    return divided(space, input, other)


@entry(functions, "pow")
def _pow(space: Space, input: Value, exponent: Value):
    return power(space, input, exponent)


@entry(functions, "addcmul")
def _addcmul(
    space: Space, input: Value, tensor1: Value, tensor2: Value, value: Value | None = None
):
    scale = number(1) if value is None else value
    return added(space, input, multiplied(space, scale, tensor1, tensor2))


# Choices


def related(relation: Callable, a: Expr, b: Expr) -> Boolean:
    """``relation(a, b)``, case by case where a side is a choice.

    SymPy would do it by solving for a symbol, which is not the same symbol inside of a `Sum`.
    """
    if isinstance(a, Piecewise):
        return _by_cases(a, lambda part: related(relation, part, b))
    if isinstance(b, Piecewise):
        return _by_cases(b, lambda part: related(relation, a, part))
    if a.has(Piecewise) or b.has(Piecewise):
        raise Refusal("a comparison of what a choice is inside of", "check it in parts")
    if a.is_Add and b.is_Add:  # SymPy may go round in circles in bringing these to one form
        a, b = a - b, Integer(0)
    return relation(a, b)


def _by_cases(choice: Piecewise, condition: Callable[[Expr], Boolean]) -> Boolean:
    cases, before = [], true
    for part, holds in choice.args:
        cases.append(And(before, holds, condition(part)))
        before = And(before, Not(holds))
    return Or(*cases)


def chosen(*choices) -> Expr:
    """A `Piecewise` of (value, condition), of a bounded number of choices in all."""
    count = sum(value.count(Piecewise) for value, _ in choices if isinstance(value, Expr))
    if count > MOST_CHOICES or sum(map(_comparisons, choices)) > MOST_COMPARISONS:
        raise Refusal("too many choices inside of choices", "check it in parts")
    try:
        return Piecewise(*choices)
    except RecursionError:
        raise Refusal("SymPy cannot hold this choice", "compare with a name, or with 0") from None


def _comparisons(choice) -> int:
    condition = choice[1]  # or True
    return len(condition.atoms(Relational)) if isinstance(condition, Basic) else 0


def _choice(space: Space, relation: Callable, a: Value, b: Value) -> Value:
    """``a`` where ``relation(a, b)`` holds, else ``b``."""
    extent = (a.extent + b.extent) + (a.extent + b.extent)
    return pointwise(
        space, lambda x, y: chosen((x, related(relation, x, y)), (y, True)), [a, b], extent
    )


@entry(functions, "maximum")
def maximum(space: Space, input: Value, other: Value):
    return _choice(space, Ge, input, other)


@entry(functions, "minimum")
def minimum(space: Space, input: Value, other: Value):
    return _choice(space, Le, input, other)


@entry(functions, "clamp", "clip")
def _clamp(space: Space, input: Value, min: Value | None = None, max: Value | None = None):
    x = tensor(input)
    if min is None or max is None:
        result = x if min is None else maximum(space, x, min)
        return result if max is None else minimum(space, result, max)

    def build(e, low, high):
        return chosen(
            (high, related(Gt, low, high)),
            (low, related(Le, e, low)),
            (high, related(Ge, e, high)),
            (e, True),
        )

    extent = sum_of([x.extent, min.extent, max.extent] * 3)
    return pointwise(space, build, [x, min, max], extent)


@entry(functions, "clamp_min")
def _clamp_min(space: Space, input: Value, min: Value):
    return maximum(space, input, min)


@entry(functions, "where", forms="torch")
def where(space: Space, condition: Value, input: Value, other: Value):
    if condition.kind != MASK:
        raise Refusal("where chooses by a comparison", "write torch.where(x > 0, a, b)")

    def build(mask, a, b):
        if isinstance(mask, Piecewise) and [pair.expr for pair in mask.args] == [1, 0]:
            return chosen((a, mask.args[0].cond), (b, True))
        return mask * a + (1 - mask) * b

    return pointwise(space, build, [condition, input, other])
