"""The identities of the closed form: mathematics beside its code, each with the condition under
which it holds.

The contract of an identity. It receives one node of an expression whose operands have been
rewritten already, and the `Knowledge` of the forward. It returns the node rewritten, or None where
it does not apply. It may assume that the forward's values are finite and real. The two sides must
be equal for every size of every axis (at least 1); ``tests/test_identities.py`` evaluates both
sides of every entry on random rationals.
"""

from __future__ import annotations

from itertools import combinations
from typing import Protocol

from sympy import Add, Expr, Mul, Pow, S, cosh, exp, expand, sinh, tanh

from derive.closing.choice_rules import (
    cancel_in_choice,
    choose_once,
    choose_one_of,
    constant_of_choice,
    one_hot_picks,
    one_hot_power,
    one_hot_total,
    picked_over_itself,
)
from derive.closing.conditions import fewer_conditions
from derive.language.identity import Identity
from derive.language.nodes import Reshaping, Sum, along, summed
from derive.language.symbols import Tensor, axes_of
from derive.values.relations import Relations


class Knowledge(Protocol):
    """What an identity may ask about the forward."""

    relations: Relations

    def fact(self, node: Sum) -> Expr | None:
        """The value of a sum of forward values, where it can be found."""


def _distribute(node, knowledge):
    if isinstance(node, Mul) and any(isinstance(f, Add) for f in node.args):
        return node.expand(deep=False, power_exp=False, power_base=False, log=False)
    if (
        isinstance(node, Pow)
        and isinstance(node.base, Add)
        and node.exp.is_Integer
        and node.exp > 1
    ):
        return node.expand(deep=False, power_exp=False, power_base=False, log=False)
    return None


def _proper_fraction(node, knowledge):
    if not isinstance(node, Mul):
        return None
    powers = node.as_powers_dict()
    for total in (f for f in node.args if isinstance(f, Add)):
        for whole in total.args:
            divisor = whole.as_coeff_Mul()[1]
            if isinstance(divisor, Tensor) and powers.get(divisor, 0) == -1:
                fraction = Add(*(term / divisor for term in total.args))
                return node / total * divisor * fraction
    return None


def _cancel(node, knowledge):
    if not isinstance(node, Mul):
        return None
    powers = node.as_powers_dict()
    for total in (f for f in node.args if isinstance(f, Add)):
        for divisor in sorted(_divisors_of_terms(total), key=lambda e: e.sort_key()):
            power = powers.get(divisor, S.Zero)
            if divisor != total and power.is_number and power >= 1:
                return node / total / divisor * Add(*(term * divisor for term in total.args))
    return None


def _divisors_of_terms(total: Add) -> set[Expr]:
    """The tensors and sums that a term of ``total``, or of a sum in a term, divides by."""
    found = set()
    for term in total.args:
        powers = term.as_powers_dict()
        found |= {base for base, power in powers.items() if power == -1}
        found |= {d for f in powers if isinstance(f, Add) for d in _divisors_of_terms(f)}
    return {base for base in found if isinstance(base, (Add, Tensor))}


def _linear(node, knowledge):
    if isinstance(node, Sum) and isinstance(node.operand, Add):
        size = knowledge.relations.size
        return Add(*(summed(term, node.axes, size) for term in node.operand.args))
    return None


def _exponents_cancel(node, knowledge):
    if not isinstance(node, Mul):
        return None
    exponentials = [f for f in node.args if isinstance(f, exp)]
    for one, other in combinations(exponentials, 2):
        together = expand(one.exp + other.exp)
        longer = max(len(Add.make_args(f.exp)) for f in (one, other))
        if together == 0 or len(Add.make_args(together)) < longer:
            return Mul(exp(together), *(f for f in node.args if f not in (one, other)))
    return None


def _hyperbolic(node, knowledge):
    powers = node.as_powers_dict() if isinstance(node, Mul) else {}
    for base, power in powers.items():
        if isinstance(base, sinh) and power == 1 and powers.get(cosh(base.args[0]), 0) == -1:
            return node / base * cosh(base.args[0]) * tanh(base.args[0])
    return None


def _move_out(node, knowledge):
    if not isinstance(node, Sum):
        return None
    carried = set(node.axes)
    factors = Mul.make_args(node.operand)
    outside = [f for f in factors if not axes_of(f) & carried]
    inside = [f for f in factors if axes_of(f) & carried]
    if not outside:
        return None
    return Mul(*outside) * summed(Mul(*inside), node.axes, knowledge.relations.size)


def _nest(node, knowledge):
    if isinstance(node, Sum) and isinstance(node.operand, Sum):
        return Sum.over(node.operand.operand, node.axes + node.operand.axes)
    return None


def _reshaped_back(node, knowledge):
    if isinstance(node, Reshaping) and isinstance(node.operand, Reshaping):
        inner = node.operand
        if type(node) is not type(inner) and node.axes == inner.into and node.into == inner.axes:
            return inner.operand
    return None


def _reshaped_outside(node, knowledge):
    if not isinstance(node, Reshaping):
        return None
    factors = Mul.make_args(node.operand)
    outside = [f for f in factors if not axes_of(f) & set(node.binds)]
    if not outside or any(axes_of(f) & set(node.brings) for f in outside):
        return None
    return Mul(*outside) * node.on(Mul(*(f for f in factors if f not in outside)))


def _reshaped_total(node, knowledge):
    if not isinstance(node, Sum) or not isinstance(node.operand, Reshaping):
        return None
    inner = node.operand
    if not set(inner.brings) <= set(node.axes):
        return None
    others = [axis for axis in node.axes if axis not in inner.brings]
    if set(inner.binds) & set(others):
        return None
    return Sum.over(inner.operand, [*others, *inner.binds])


def _recognise(node, knowledge):
    if isinstance(node, Sum):
        return knowledge.relations.recognitions.get(node)
    return None


def _eliminate(node, knowledge):
    if isinstance(node, Tensor) and node.role in ("input", "statement"):
        found = knowledge.relations.eliminations.get(node.at_home)
        if found is not None:
            return along(found, node)
    return None


def _invert(node, knowledge):
    return knowledge.relations.inversions.get(node)


def _known(node, knowledge):
    if not isinstance(node, Sum):
        return None
    found = knowledge.fact(node)
    if found is not None or len(node.axes) == 1:
        return found
    for axis in node.axes:  # Sum(c*f, C, N) = Sum(c*Sum(f, C), N) where c does not vary along C
        factors = Mul.make_args(node.operand)
        inside = Mul(*(f for f in factors if axis in axes_of(f)))
        inner = knowledge.fact(Sum.over(inside, [axis])) if axis in axes_of(inside) else None
        if inner is not None:
            outside = Mul(inner, *(f for f in factors if axis not in axes_of(f)))
            others = [other for other in node.axes if other != axis]
            return summed(outside, others, knowledge.relations.size)
    return None


identities: tuple[Identity, ...] = (
    Identity(
        "a*(b + c) = a*b + a*c",
        "always",
        _distribute,
        name="distribute",
        why="a product of sums is the sum of the products",
    ),
    Identity(
        "v*(a/v + b) = a + v*b",
        "v is not 0, where the left side has a value",
        _cancel,
        name="cancelled divisor",
        why="what is multiplied by its divisor need not be divided",
    ),
    Identity(
        "(v - c)/v = 1 - c/v",
        "v is not 0",
        _proper_fraction,
        name="proper fraction",
        why="what is large above and below the line is divided before it overflows",
    ),
    Identity(
        "Piecewise((a, q), (b, True))*Piecewise((c, q), (d, True)) = "
        "Piecewise((a*c, q), (b*d, True))",
        "always",
        choose_once,
        name="one choice",
        why="the condition is the same",
    ),
    Identity(
        "Piecewise((k*a, q), (k*b, r), (0, True)) = k*Piecewise((a, q), (b, r), (0, True))",
        "k is a number, or a scalar that is not divided by, or a value that is summed up in q",
        constant_of_choice,
        name="constant of a choice",
        why="what is chosen differs without it",
    ),
    Identity(
        "Piecewise((Piecewise((a, q), (0, True)), r), (0, True)) = Piecewise((0, s), (a, True))",
        "s is one or two of the comparisons in q and r, and is proved to say the same",
        fewer_conditions,
        name="fewer conditions",
        why="the other conditions follow from it",
    ),
    Identity(
        "v*Piecewise((a/v, q), (0, True)) = Piecewise((a, q), (0, True))",
        "v is not 0 where that is chosen",
        cancel_in_choice,
        name="divisor in a choice",
        why="what is multiplied by its divisor need not be divided",
    ),
    Identity(
        "a*Piecewise((u, q), (0, True)) + b*Piecewise((0, q), (v, r), (w, True)) = "
        "Piecewise((a*u, q), (b*v, r), (b*w, True))",
        "the conditions of one begin as those of the other; of two values one is 0",
        choose_one_of,
        name="one of the choices",
        why="where one of the choices is not 0, the other is",
    ),
    Identity(
        "exp(u + v)*exp(-u + w) = exp(v + w)",
        "always",
        _exponents_cancel,
        name="opposite exponents",
        why="what stands in both exponents with opposite signs is not taken at all",
    ),
    Identity(
        "sinh(u)/cosh(u) = tanh(u)",
        "always",
        _hyperbolic,
        name="hyperbolic quotient",
        why="neither of the two is computed, both of which overflow",
    ),
    Identity(
        "Sum(a + b, N) = Sum(a, N) + Sum(b, N)",
        "always",
        _linear,
        name="linear",
        why="a sum is linear",
    ),
    Identity(
        "Sum(c*a, N) = c*Sum(a, N), and Sum(c, N) = N*c",
        "c does not vary along N",
        _move_out,
        name="constant factor",
        why="what does not vary along the axis moves out of the sum, or is counted",
    ),
    Identity(
        "Sum(Sum(a, C), N) = Sum(a, C, N)",
        "always: along C the inner sum has ended",
        _nest,
        name="nested sums",
        why="two sums are one",
    ),
    Identity(
        "Sum(OneHot(i, C), C) = 1",
        "i is the index of an entry along C",
        one_hot_total,
        name="total of a one-hot",
        why="exactly one entry is 1",
    ),
    Identity(
        "OneHot(i, C)**k = OneHot(i, C)",
        "k > 0",
        one_hot_power,
        name="power of a one-hot",
        why="0 and 1 are their own powers",
    ),
    Identity(
        "OneHot(i, C)*Sum(OneHot(i, C)*a, C) = OneHot(i, C)*a",
        "always",
        one_hot_picks,
        name="one-hot picks",
        why="where the one-hot is 1, the sum is the entry there",
    ),
    Identity(
        "OneHot(i, C)*a/s = OneHot(i, C)",
        "the forward defines s = Sum(OneHot(i, C)*a, C), and s is not 0",
        picked_over_itself,
        name="picked over itself",
        why="where the one-hot is 1, the divisor is the entry itself",
    ),
    Identity(
        "Unflatten(Flatten(a, T, E, into=I), I, into=(T, E)) = a, and the reverse",
        "always",
        _reshaped_back,
        name="reshaped back",
        why="it is counted as it was before",
    ),
    Identity(
        "Flatten(c*a, T, E, into=I) = c*Flatten(a, T, E, into=I)",
        "c does not vary along T and E",
        _reshaped_outside,
        name="reshaping a product",
        why="what is the same everywhere need not be counted anew",
    ),
    Identity(
        "Sum(Flatten(a, T, E, into=I), I) = Sum(a, T, E)",
        "all of the new axes are summed",
        _reshaped_total,
        name="total of a reshaped tensor",
        why="a sum does not depend on how the entries are counted",
    ),
    Identity(
        "Sum(a, N) = s",
        "the forward defines s = Sum(a, N), up to a number or a size",
        _recognise,
        name="definition",
        why="the forward has a name for it",
    ),
    Identity(
        "Sum(f, N) = v",
        "f is made of forward values, and expanding their definitions gives v; also along one axis",
        _known,
        name="fact",
        why="it follows from the definitions of the forward",
    ),
)

elimination = Identity(
    "u = (v/r)**(1/k)",
    "the forward defines v = r*u**k, and r is not zero",
    _eliminate,
    name="nearer the output",
    why="the forward's later product is used in place of its factor",
)

inversion = Identity(
    "f(u) = (v - c)/k",
    "the forward defines v = c + k*f(u), or its reciprocal, with numbers c and k that are not 0",
    _invert,
    name="function from its value",
    why="what the forward computed from a function is used in place of evaluating it again",
)
