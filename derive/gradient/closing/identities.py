"""The identities of the closed form: mathematics beside its code, each with the condition under
which it holds.

The contract of an identity. It receives one node of an expression whose operands have been
rewritten already, and the `Knowledge` of the forward. It returns the node rewritten, or None where
it does not apply. It may assume that the forward's values are finite and real. The two sides must
be equal for every size of every axis (at least 1); ``tests/test_identities.py`` evaluates both
sides of every entry on random rationals.
"""

from __future__ import annotations

from typing import Protocol

from sympy import Expr

from derive.gradient.closing.choice_rules import (
    cancel_in_choice,
    choose_once,
    choose_one_of,
    constant_of_choice,
)
from derive.gradient.closing.conditions import fewer_conditions
from derive.gradient.closing.diagonal_rules import (
    identity_contracted,
    one_hot_inside,
    read_on_diagonal,
    two_values,
)
from derive.gradient.closing.label_rules import (
    counted_segments,
    filled_segments,
    one_hot_chosen,
    one_hot_power,
    one_hot_total,
    picked,
    read_back,
    same_for_segment,
)
from derive.gradient.closing.product_rules import (
    cancel,
    distribute,
    exponents_cancel,
    hyperbolic,
    proper_fraction,
)
from derive.gradient.closing.scan_rules import constant_of_scan, counted
from derive.gradient.closing.sum_rules import (
    known,
    linear,
    move_out,
    nest,
    read_outside,
    read_total,
    recognise,
    reshaped_back,
    reshaped_outside,
    reshaped_total,
)
from derive.gradient.values.relations import Relations
from derive.language.identity import IdentityRule
from derive.language.nodes import Sum, along
from derive.language.symbols import Tensor


class Knowledge(Protocol):
    """The forward, as an identity sees it."""

    relations: Relations

    def fact(self, node: Sum) -> Expr | None:
        """The value of a sum of forward values, where it can be found."""


def _eliminate(node, knowledge):
    if isinstance(node, Tensor) and node.role in ("input", "statement"):
        found = knowledge.relations.eliminations.get(node.at_home)
        if found is not None:
            return along(found, node)
    return None


def _invert(node, knowledge):
    return knowledge.relations.inversions.get(node)


identities: tuple[IdentityRule, ...] = (
    IdentityRule(
        "f(Identity(N, M)) = f(0) + (f(1) - f(0))*Identity(N, M)",
        "f has exponentials of it, by definition too, and f(1) - f(0) has none",
        two_values,
        name="on the diagonal and beside it",
        why="an identity is 0 or 1",
    ),
    IdentityRule(
        "a*(b + c) = a*b + a*c",
        "always",
        distribute,
        name="distribute",
        why="a product of sums is the sum of the products",
    ),
    IdentityRule(
        "v*(a/v + b) = a + v*b",
        "v is not 0, where the left side has a value",
        cancel,
        name="cancelled divisor",
        why="a factor cancels its own divisor",
    ),
    IdentityRule(
        "(v - c)/v = 1 - c/v",
        "v is not 0",
        proper_fraction,
        name="proper fraction",
        why="the fraction is reduced first, so that neither side overflows",
    ),
    IdentityRule(
        "Piecewise((a, q), (b, True))*Piecewise((c, q), (d, True)) = "
        "Piecewise((a*c, q), (b*d, True))",
        "always",
        choose_once,
        name="one choice",
        why="both choices have the same condition",
    ),
    IdentityRule(
        "Piecewise((k*a, q), (k*b, r), (0, True)) = k*Piecewise((a, q), (b, r), (0, True))",
        "k is a number, or a scalar that is not divided by, or a value that is summed up in q",
        constant_of_choice,
        name="constant of a choice",
        why="the factor is common to all branches",
    ),
    IdentityRule(
        "Piecewise((Piecewise((a, q), (0, True)), r), (0, True)) = Piecewise((0, s), (a, True))",
        "s is one or two of the comparisons in q and r, and is proved to say the same",
        fewer_conditions,
        name="fewer conditions",
        why="the other conditions follow from it",
    ),
    IdentityRule(
        "v*Piecewise((a/v, q), (0, True)) = Piecewise((a, q), (0, True))",
        "v is not 0 where that is chosen",
        cancel_in_choice,
        name="divisor in a choice",
        why="a factor cancels its own divisor",
    ),
    IdentityRule(
        "a*Piecewise((u, q), (0, True)) + b*Piecewise((0, q), (v, r), (w, True)) = "
        "Piecewise((a*u, q), (b*v, r), (b*w, True))",
        "the conditions of one begin as those of the other; of two values one is 0",
        choose_one_of,
        name="one of the choices",
        why="wherever one choice is nonzero, the other is 0",
    ),
    IdentityRule(
        "exp(u + v)*exp(-u + w) = exp(v + w)",
        "always",
        exponents_cancel,
        name="opposite exponents",
        why="opposite exponents cancel before the exponential is taken",
    ),
    IdentityRule(
        "sinh(u)/cosh(u) = tanh(u)",
        "always",
        hyperbolic,
        name="hyperbolic quotient",
        why="tanh is computed directly; sinh and cosh overflow",
    ),
    IdentityRule(
        "Sum(a + b, N) = Sum(a, N) + Sum(b, N)",
        "always",
        linear,
        name="linear",
        why="a sum is linear",
    ),
    IdentityRule(
        "Sum(c*a, N) = c*Sum(a, N), and Sum(c, N) = N*c",
        "c does not vary along N",
        move_out,
        name="constant factor",
        why="what is constant along the axis moves out of the sum",
    ),
    IdentityRule(
        "Sum(Sum(a, C), N) = Sum(a, C, N)",
        "always: along C the inner sum has ended",
        nest,
        name="nested sums",
        why="nested sums become one",
    ),
    IdentityRule(
        "Sum(OneHot(i, C), C) = 1",
        "i is the index of an entry along C",
        one_hot_total,
        name="total of a one-hot",
        why="exactly one entry is 1",
    ),
    IdentityRule(
        "Piecewise((k, OneHot(i, C) > 0), (0, True)) = k*OneHot(i, C)",
        "k is a number",
        one_hot_chosen,
        name="choice by a one-hot",
        why="a one-hot is 1 where it is above 0",
    ),
    IdentityRule(
        "OneHot(i, C)**k = OneHot(i, C)",
        "k > 0",
        one_hot_power,
        name="power of a one-hot",
        why="0 and 1 are their own powers",
    ),
    IdentityRule(
        "Sum(Identity(N, M)*a, M) = a with M called N",
        "no tensor in a lies along both axes",
        identity_contracted,
        name="product with an identity",
        why="one entry of each row of an identity is 1",
    ),
    IdentityRule(
        "Identity(N, M)*a = Identity(N, M)*b",
        "a varies along one of the two, b is a along the other, with more tensors along their own",
        read_on_diagonal,
        name="read on the diagonal",
        why="on the diagonal both indices are the same",
    ),
    IdentityRule(
        "OneHot(i, C)*f(OneHot(i, C)) = OneHot(i, C)*f(1)",
        "f is no array node, and no condition other than that the two indices are the same",
        one_hot_inside,
        name="where a one-hot is 1",
        why="elsewhere the product is 0",
    ),
    IdentityRule(
        "OneHot(i, C)*p = OneHot(i, C)*a",
        "p = Sum(OneHot(i, C)*a, C); by definition, if p is a divisor that a cancels",
        picked,
        name="one-hot picks",
        why="where the one-hot is 1, what it picks is the entry itself",
    ),
    IdentityRule(
        "Sum(OneHot(i, C)*a*p**k, N) = r**k*Sum(OneHot(i, C)*a, N), and "
        "Sum(OneHot(i, C)*a*r**k, C) = p**k*Sum(OneHot(i, C)*a, C)",
        "p = Sum(OneHot(i, C)*r, C), by definition too; the first for i along N, and for k > 0 or "
        "where the forward divides by r; the second where p has a name",
        same_for_segment,
        name="picked factor",
        why="all entries of a segment read the same entry, which moves out of the sum",
    ),
    IdentityRule(
        "Sum(OneHot(i, C)*Sum(OneHot(i, C)*a*p**k, N), C) = "
        "p**k*Sum(OneHot(i, C)*Sum(OneHot(i, C)*a, N), C)",
        "i lies along N, and p = Sum(OneHot(i, C)*r, C), by definition too",
        read_back,
        name="read back",
        why="the entry that a segment reads is the one that its sum is read back at",
    ),
    IdentityRule(
        "Sum(OneHot(i, C)*a, N)*Sum(b, N) = k*Sum(OneHot(i, C)*a, N)",
        "i lies along N, and it is found that Sum(OneHot(i, C)*Sum(b, N), C) = k, a number",
        filled_segments,
        name="filled segments",
        why="it is that number wherever the segment has entries; where it has none, the sum is 0",
    ),
    IdentityRule(
        "n*Sum(OneHot(i, C)*a, N)*Piecewise((k, Eq(n, 0)), (b/n, True)) = b*Sum(OneHot(i, C)*a, N)",
        "n = Sum(OneHot(i, C), N), by definition too",
        counted_segments,
        name="counted segments",
        why="where the segment has no entries, the sum is 0 all the same",
    ),
    IdentityRule(
        "Unflatten(Flatten(a, T, E, into=I), I, into=(T, E)) = a, and the reverse",
        "always",
        reshaped_back,
        name="reshaped back",
        why="reshaping back restores it",
    ),
    IdentityRule(
        "Flatten(c*a, T, E, into=I) = c*Flatten(a, T, E, into=I)",
        "c does not vary along T and E",
        reshaped_outside,
        name="reshaping a product",
        why="what is constant along the axes need not be reshaped",
    ),
    IdentityRule(
        "At(c*a, T, i) = c*At(a, T, i)",
        "c does not vary along T, and a does",
        read_outside,
        name="reading a product",
        why="what is constant along the axis need not be read at an index",
    ),
    IdentityRule(
        "At(Sum(a, C), T, i) = Sum(At(a, T, i), C)",
        "C is neither T nor an axis of i",
        read_total,
        name="reading a sum",
        why="a sum of entries is read where each of them is",
    ),
    IdentityRule(
        "Sum(Flatten(a, T, E, into=I), I) = Sum(a, T, E)",
        "all of the new axes are summed",
        reshaped_total,
        name="total of a reshaped tensor",
        why="a sum does not depend on the shape",
    ),
    IdentityRule(
        "Scan(a, c*b, T) = c*Scan(a, b, T)",
        "c does not vary along T, and nothing comes before the first",
        constant_of_scan,
        name="constant of a scan",
        why="a recurrence is linear in its terms",
    ),
    IdentityRule(
        "CumSum(1, T) = Position(T) + 1, and CumSum(1, T, reverse=True) = T - Position(T)",
        "always; one less where the place itself does not count",
        counted,
        name="count",
        why="the places are counted",
    ),
    IdentityRule(
        "Sum(a, N) = s; of a recurrence too",
        "the forward defines s = Sum(a, N), up to a number or a size",
        recognise,
        name="definition",
        why="the forward has a name for it",
    ),
    IdentityRule(
        "Sum(f, N) = v",
        "f is made of forward values, and expanding their definitions gives v; also along one axis",
        known,
        name="fact",
        why="it follows from the definitions of the forward",
    ),
)

elimination = IdentityRule(
    "u = (v/r)**(1/k)",
    "the forward defines v = r*u**k, and r is not zero",
    _eliminate,
    name="nearer the output",
    why="the forward's later product replaces its factor",
)

inversion = IdentityRule(
    "f(u) = (v - c)/k",
    "the forward defines v = c + k*f(u), or its reciprocal, with numbers c and k that are not 0",
    _invert,
    name="function from its value",
    why="the function value that the forward computed is reused",
)
