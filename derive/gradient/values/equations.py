"""Equations from the definition of a value, solved for another of its members.

`table` has every way of solving. Its contract: ``solve`` receives a value of the forward and what
is known of the forward, and gives pairs of a member and what that equals, in terms of the value and
of other members. The two are equal wherever the forward has a value; nothing is divided by that the
forward does not divide by, and that may be zero. ``tests/test_equations.py`` evaluates both sides
of all that is found in the gallery and in definitions of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from sympy import (
    Add,
    Dummy,
    Expr,
    Function,
    Mul,
    Piecewise,
    Pow,
    S,
    atan,
    cos,
    erf,
    exp,
    log,
    sin,
    tanh,
)

from derive.gradient.range.exponential_quotients import constant_of
from derive.gradient.values.naming import NamedValue
from derive.gradient.values.reductions import reduction, reduction_of_powers, state_before
from derive.gradient.values.solving import Known, Solution, Solving
from derive.language.divisors import divisors_in
from derive.language.nodes import (
    ArgMax,
    ArrayNode,
    Max,
    Sum,
)
from derive.language.operations import is_evaluated
from derive.language.symbols import (
    Tensor,
    axes_of,
    is_constant,
    is_number_or_size,
    tensors_in,
)

BOUNDED = (atan, cos, erf, sin, tanh)


# -- monomials ---------------------------------------------------------------------


def _factor(value: NamedValue, known: Known) -> Iterator[Solution]:
    """Solve a product for a factor, the nearest to the inputs first."""
    powers = value.expression.as_powers_dict()
    tensors = [base for base in powers if isinstance(base, Tensor)]
    plain = all(isinstance(b, Tensor) or is_constant(b) for b in powers)
    if not plain or not all(map(is_constant, powers.values())):  # exp(x) is a power of the number E
        return
    for base in sorted(tensors, key=lambda t: (t.role == "input", known.position[t.name])):
        power = powers[base]
        if base.axes != base.home or set(base.axes) != set(value.tensor.axes):
            continue
        if base.role in ("scalar", "given", "kept"):
            continue
        if not power.is_Rational or not (1 / power).is_Integer:
            continue
        rest = [(b, -powers[b] / power) for b in powers if b != base]
        if power.is_negative and not all(is_number_or_size(b) for b, _ in rest):
            continue  # a divisor as a quotient: the forward does not divide by its numerator
        if all(_may_multiply(b, p, value.tensor, known) for b, p in rest):
            yield base, (value.tensor * value.expression**-1 * base**power) ** (1 / power)


def _may_multiply(factor: Expr, power: Expr, product: Tensor, known: Known) -> bool:
    """Whether ``factor**power`` may be put where the product's own factor stood.

    Multiplying is always allowed: the forward divides by it. Dividing is allowed by sizes, and by a
    statistic that is a power such as (var + eps)**(-1/2); not by what is only positive on paper: an
    exponential as large as the product underflows to zero.
    """
    if power.is_positive:
        return True
    if is_number_or_size(factor):
        return factor.is_zero is False
    if not isinstance(factor, Tensor):
        return False
    value = known.by_name.get(factor.name)
    e = value.expression if value else None
    statistic = set(factor.axes) < set(product.axes)
    return statistic and isinstance(e, Pow) and e.exp.is_negative is True


# -- what is affine in a function ----------------------------------------------------


def _function(value: NamedValue, known: Known) -> Iterator[Solution]:
    """Solve for the one function that a value, or its reciprocal, is linear in."""
    if isinstance(value.expression, Function):
        if is_evaluated(value.expression):
            yield value.expression, value.tensor
        return
    e, output = _with_its_function(value.expression, known), value.tensor
    if isinstance(e, Pow) and e.exp == -1:
        e, output = e.base, 1 / output
    functions = [f for f in e.atoms(Function) if is_evaluated(f) and axes_of(f) == axes_of(e)]
    outermost = [f for f in functions if not any(f in g.args for g in functions)]
    if len(outermost) != 1:
        return
    (function,), place = outermost, Dummy()
    line = e.xreplace({function: place})
    if not all(t.role == "scalar" for t in tensors_in(line)):
        return
    slope, rest = line.diff(place), line.xreplace({place: S.Zero})
    if place not in slope.free_symbols and _may_divide_by(slope, function):
        yield function, (output - rest) / slope


def _with_its_function(e: Expr, known: Known) -> Expr:
    """``e`` with the one value in it written out, up to the function that it is computed from, if
    there is nothing else in it.
    """
    while not any(map(is_evaluated, e.atoms(Function))):
        read = [t for t in tensors_in(e) if t.role != "scalar"]
        if len(read) != 1 or read[0].name not in known.by_name or e.has(Sum, Max):
            break
        e = e.xreplace({read[0]: known.unfolded(read[0])})
    return e


def _may_divide_by(slope: Expr, function: Expr) -> bool:
    divisors = divisors_in(function)
    return all(is_number_or_size(factor) or factor in divisors for factor in Mul.make_args(slope))


def _logarithm(value: NamedValue, known: Known) -> Iterator[Solution]:
    """Solve for the argument of a logarithm, where it depends on other entries."""
    for term in Add.make_args(value.expression):
        logarithms = [f for f in Mul.make_args(term) if isinstance(f, log)]
        if len(logarithms) != 1:
            continue
        inside, factor = logarithms[0].args[0], term / logarithms[0]
        rest = value.expression - term
        divides = any(p.is_negative for p in (1 / factor).as_powers_dict().values())
        divides = divides or factor.has(Piecewise)  # 0 in one of its cases
        is_value = isinstance(inside, Tensor) and inside not in tensors_in(rest)
        if is_value and (factor.is_number or not divides) and _depends_on_others(inside, known):
            yield inside, exp(((value.tensor - rest) / factor).expand(deep=False))


def _depends_on_others(value: Tensor, known: Known) -> bool:
    """Whether an entry needs other entries: else it is computed again where it is read."""
    e = known.by_name[value.name].expression if value.name in known.by_name else value
    read = (t for t in tensors_in(e) if t.name in known.by_name and t != value)
    return e.has(ArrayNode) or any(_depends_on_others(t, known) for t in read)


# -- the definition itself -----------------------------------------------------------


def _definition(value: NamedValue, known: Known) -> Iterator[Solution]:
    named = value.tensor.name in known.definition.by_name
    evaluated = named and any(map(is_evaluated, value.expression.atoms(Function)))
    if is_safe(value.expression) and not evaluated:
        yield value.tensor, known.unfolded(value.tensor)


@lru_cache(maxsize=8192)
def is_safe(e: Expr) -> bool:
    """Built of +, -, *, whole powers, division by constants, comparisons, and functions that are
    bounded: computed again, it is the same and finite.
    """
    powers = all(
        is_constant(p) or (p.exp.is_Integer and (p.exp > 0 or is_constant(p.base)))
        for p in e.atoms(Pow)
    )
    functions = (f for f in e.atoms(Function) if is_evaluated(f))
    return powers and all(isinstance(f, BOUNDED) for f in functions) and not e.has(Sum, Max, ArgMax)


# -- what remains of a whole ----------------------------------------------------------


def _remainder(value: NamedValue, known: Known) -> Iterator[Solution]:
    """The rest of a whole besides a share, which keeps its digits where the share is nearly all."""
    e = value.expression
    if isinstance(e, Pow) and isinstance(e.base, Tensor) and e.base.name in known.by_name:
        e = e.func(known.unfolded(e.base), e.exp)
    is_share = isinstance(e, Pow) and e.exp == -1
    whole, inverse = (e.base, value.tensor) if is_share else (e, 1 / value.tensor)
    constant = constant_of(whole)
    if constant is not None:
        yield 1 - constant * inverse, 1 / (1 + constant / (whole - constant))


table: dict[str, Solving] = {
    "factor": Solving(
        "v = r*u**k: u = (v/r)**(1/k)",
        "1/k is whole; the forward divides by r, or r is no 0",
        _factor,
        once=True,
    ),
    "function": Solving(
        "v = c + k*f(u): f(u) = (v - c)/k; of 1/v too",
        "c and k are made of scalars; k is a number, or the forward divides by it",
        _function,
    ),
    "logarithm": Solving(
        "v = c + k*log(s): s = exp((v - c)/k)",
        "s is a value that depends on other entries, and 1/k divides by nothing",
        _logarithm,
    ),
    "reduction": Solving("v = r*Sum(a, N): Sum(a, N) = v/r", "r is a number or a size", reduction),
    "reduction of powers": Solving(
        "v = r*Sum(w, N), w = u**k: Sum(u**k, N) = v/r",
        "r is a number or a size",
        reduction_of_powers,
    ),
    "state before": Solving(
        "v = r*Scan(a, b, T): Scan(a, b, T, exclusive=True) = Previous(v/r, T)",
        "r is a number or a size; with the state before the first too",
        state_before,
    ),
    "remainder": Solving(
        "v = a + b*exp(u): 1 - a/v = 1/(1 + a/b*exp(-u)); of s = 1/v too",
        "a and b are positive and do not vary",
        _remainder,
    ),
    "definition": Solving(
        "v = e",
        "e is plain arithmetic of values, and of bounded functions that the user gave no name",
        _definition,
    ),
}
