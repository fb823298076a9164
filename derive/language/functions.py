"""The pointwise functions: those that every target has, and how others are rewritten.

SymPy cannot differentiate a step, nor express the derivative of a Bessel function in functions that
libraries have: these are classes of our own, under the names that libraries use.
"""

from __future__ import annotations

from collections.abc import Callable

import sympy
from sympy import Eq, Expr, Function, Integer, Piecewise, Rational, loggamma, polygamma

from derive.language.choices import Branches, Compared
from derive.language.detached import Detach
from derive.language.errors import NotationError


class StepFunction(Function):
    """A pointwise function that is constant between its steps, so its derivative is 0."""

    nargs = 1
    is_integer = True
    is_real = True
    sympys: Callable[[Expr], Expr]  # of numbers

    @classmethod
    def eval(cls, u: Expr) -> Expr | None:
        return cls.sympys(u) if u.is_number or u.is_integer else None

    def fdiff(self, argindex: int = 1) -> Expr:
        return Integer(0)


class floor(StepFunction):
    """The largest integer that is not greater."""

    sympys = sympy.floor


class ceiling(StepFunction):
    """The smallest integer that is not less."""

    sympys = sympy.ceiling


def _to_even(u: Expr) -> Expr:
    """The nearest integer; ties go to the even one."""
    up = sympy.floor(u + Rational(1, 2))
    return up - 1 if up - u == Rational(1, 2) and up % 2 == 1 else up


class Round(StepFunction):
    """The nearest integer, ties to even, as in torch."""

    sympys = staticmethod(_to_even)


class Mod(Function):
    """``a - b*floor(a/b)``: the remainder of ``a``, with the sign of ``b``."""

    nargs = 2
    is_real = True

    @classmethod
    def eval(cls, a, b):
        return sympy.Mod(a, b) if a.is_number and b.is_number else None

    def fdiff(self, argindex=1):
        a, b = self.args
        return Integer(1) if argindex == 1 else -floor(a / b)


class i0(Function):
    """The modified Bessel function of the first kind, of order 0."""

    nargs = 1
    is_real = True
    is_positive = True

    def fdiff(self, argindex=1):
        return i1(*self.args)

    def _eval_evalf(self, prec):
        return sympy.besseli(0, *self.args).evalf(prec)


class i1(Function):
    """The modified Bessel function of the first kind, of order 1."""

    nargs = 1
    is_real = True

    def fdiff(self, argindex=1):
        (u,) = self.args
        return Piecewise((Rational(1, 2), Eq(u, 0)), (i0(u) - i1(u) / u, True))

    def _eval_evalf(self, prec):
        return sympy.besseli(1, *self.args).evalf(prec)


def _besseli(order: Expr, u: Expr) -> Expr:
    if order not in (0, 1):
        raise NotationError(
            f"besseli({order}, {u}): libraries have the orders 0 and 1",
            "a higher one follows from these: that of 2 is besseli(0, x) - 2*besseli(1, x)/x",
        )
    return i1(u) if order == 1 else i0(u)


# What SymPy's functions are written as.
WRITTEN: dict[type, Callable[..., Expr]] = {
    sympy.floor: floor,
    sympy.ceiling: ceiling,
    sympy.frac: lambda u: u - floor(u),
    sympy.Mod: Mod,
    sympy.digamma: lambda u: polygamma(0, u),
    sympy.trigamma: lambda u: polygamma(1, u),
    sympy.besseli: _besseli,
    sympy.cot: lambda u: 1 / sympy.tan(u),
    sympy.sec: lambda u: 1 / sympy.cos(u),
    sympy.csc: lambda u: 1 / sympy.sin(u),
    sympy.coth: lambda u: 1 / sympy.tanh(u),
    sympy.sech: lambda u: 1 / sympy.cosh(u),
    sympy.csch: lambda u: 1 / sympy.sinh(u),
}
# What logarithms of products of gamma functions are, where these are positive.
LOGARITHMS: dict[type, Callable[..., Expr]] = {
    sympy.gamma: loggamma,
    sympy.factorial: lambda n: loggamma(n + 1),
    sympy.beta: lambda a, b: loggamma(a) + loggamma(b) - loggamma(a + b),
    sympy.binomial: lambda n, k: loggamma(n + 1) - loggamma(k + 1) - loggamma(n - k + 1),
}
# By name; a target has a line for each.
NAMES = """
exp log tanh sinh cosh sin cos tan atan asin acos asinh acosh atanh atan2 erf erfc erfinv loggamma
polygamma i0 i1 Abs sign floor ceiling Round Mod
"""
KNOWN = frozenset(NAMES.split())


def function_named(name: str) -> Callable[..., Expr]:
    """The function of that name, ours or SymPy's."""
    return globals().get(name) or getattr(sympy, name)


def in_known_functions(e: Expr) -> Expr:
    """``e`` with the functions that targets lack rewritten in ones that they have."""
    e = e.replace(lambda n: isinstance(n, sympy.log) and type(n.args[0]) in LOGARITHMS, _logarithm)
    return e.replace(lambda n: type(n) in WRITTEN, lambda n: WRITTEN[type(n)](*n.args))


def _logarithm(e: sympy.log) -> Expr:
    return LOGARITHMS[type(e.args[0])](*e.args[0].args)


def check_known(e: Expr) -> None:
    """Refuse a function that no target computes. Raises `NotationError`."""
    for call in sorted(e.atoms(Function), key=str):
        if (
            isinstance(call, (Piecewise, Branches, Compared, Detach))
            or type(call).__name__ in KNOWN
        ):
            continue
        remedy = "write it in exp, log, sqrt, tanh, erf, loggamma, Abs, Piecewise and the like"
        if type(call) in LOGARITHMS:
            remedy = (
                f"write exp({_logarithm(sympy.log(call, evaluate=False))}), where that is meant"
            )
        raise NotationError(f"no library computes {call} with its gradient", remedy)
