"""Torch's entrywise functions, by name, and arithmetic."""

from __future__ import annotations

from operator import truediv

from sympy import (
    Expr,
    I,
    Pow,
)

from derive.claims.reading import literal
from derive.claims.reading.broadcasting import added, multiplied, negated, pointwise
from derive.claims.reading.operations.dtypes import AS_FLOATS, numbers
from derive.claims.reading.operations.entries import Operation, entry
from derive.claims.reading.refusals import Refusal
from derive.claims.reading.values import (
    FLOAT,
    MASK,
    NUMBER,
    TENSOR,
    Extent,
    Space,
    TextValue,
    product_of,
    promoted,
)
from derive.language.functions import KNOWN
from derive.language.symbols import is_constant

# Limits on exponents: powers are expanded, and roots have digits.
LARGEST_EXPONENT, LARGEST_DENOMINATOR = 16, 10**9


# The notation's own names.
SYMPYS = {"Detach": "detach", **{name: row.in_torch[0] for name, row in KNOWN.items()}}

functions: dict[str, Operation] = {}


# Arithmetic


def power(space: Space, base: TextValue, exponent: TextValue) -> TextValue:
    """``base ** exponent`` where one of the two is a number within limits."""
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
        raise Refusal(f"the exponent {e} is too large", f"at most {LARGEST_EXPONENT} is supported")
    if base.expression == 0 and e.is_nonnegative is not True:
        raise Refusal("a power of 0 that is undefined", "it divides by 0")
    whole = e.is_Integer and e.is_nonnegative
    extent = base.extent ** int(e) if whole else _scaled(base.extent, e) + exponent.extent
    build = literal.raised if space.as_written else Pow
    result = pointwise(space, build, [base, exponent], extent, _dtype_of_power(base, exponent))
    if result.expression.has(I):
        raise Refusal("a root of a negative number", "the result is not real")
    return result


def _dtype_of_power(base: TextValue, exponent: TextValue) -> str:
    dtype = promoted([base, exponent])
    if dtype == FLOAT or exponent.expression.is_nonnegative:
        return dtype
    if base.kind != NUMBER:
        raise Refusal("torch has no negative power of integers", AS_FLOATS)
    return FLOAT


def _scaled(extent: Extent, e: Expr) -> Extent:
    times = abs(int(e)) + 1 if e.is_Rational else 1
    return Extent(extent.terms, extent.length * times, extent.depth + 1)


def divided(space: Space, above: TextValue, below: TextValue) -> TextValue:
    if below.expression == 0:
        raise Refusal("this divides by 0", "fix the divisor")
    extent = product_of([above.extent, below.extent.inside()])
    build = literal.divided if space.as_written else truediv
    return pointwise(space, build, [above, below], extent, FLOAT)


def plus(space: Space, a: TextValue, b: TextValue) -> TextValue:
    if a.kind == b.kind == MASK:
        raise Refusal("torch adds bools as bools", "make them numbers: (x > 0).float()")
    return added(space, a, b)


def subtracted(space: Space, a: TextValue, b: TextValue) -> TextValue:
    return added(space, numbers(a, "difference"), negated(space, numbers(b, "difference")))


def _times(space: Space, x: TextValue, alpha: TextValue | None, beside: TextValue) -> TextValue:
    """``alpha*x``, to be added to ``beside``."""
    if alpha is None:
        return x
    if alpha.dtype == FLOAT and promoted([x, beside]) != FLOAT:
        raise Refusal("alpha is not an integer but its tensor is: torch raises an error", AS_FLOATS)
    return multiplied(space, x, alpha)


@entry(functions, "add")
def _add(space: Space, input: TextValue, other: TextValue, alpha: TextValue | None = None):
    if input.kind != MASK or other.kind != MASK:
        other = _times(space, other, alpha, input)
    return plus(space, input, other)


@entry(functions, "sub", "subtract")
def _sub(space: Space, input: TextValue, other: TextValue, alpha: TextValue | None = None):
    numbers(other, "difference")
    return subtracted(space, input, _times(space, other, alpha, input))


@entry(functions, "mul", "multiply")
def _mul(space: Space, input: TextValue, other: TextValue):
    return multiplied(space, input, other)


@entry(functions, "div", "divide", "true_divide")
def _div(space: Space, input: TextValue, other: TextValue):
    return divided(space, input, other)


@entry(functions, "pow", "float_power")
def _pow(space: Space, input: TextValue, exponent: TextValue):
    return power(space, input, exponent)
