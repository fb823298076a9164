"""The pointwise functions: one row each, with every fact that this package knows of one.

To add a function of SymPy's, add its row here and the row of how targets write it in
``codegen/targets/functions.py``. SymPy cannot differentiate a step, nor express the derivative of a
Bessel function in functions that libraries have: these are classes of our own, under the names that
libraries use.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from math import inf, pi
from typing import Any

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


Interval = tuple[float, float]  # its ends, which may be infinite


def _rising(function: Callable[[float], float]) -> Callable[[Interval], Interval]:
    """The interval in which a function of floats that never falls takes an interval."""

    def at(x: float) -> float:
        try:
            return function(x)
        except OverflowError:  # exp(1000), floor(-oo)
            return inf if x > 0 else -inf
        except ValueError:  # log(0)
            return -inf

    return lambda u: (at(u[0]), at(u[1]))


@dataclass(frozen=True)
class Pointwise:
    """One function, and what holds of it for all real arguments.

    ``torch`` are its names in torch, the usual one first: its own where nothing is said, none where
    it is "" or the function is ``written`` in others; ``also`` are those of numpy and Python.
    ``typed`` is how a user calls it, a name of SymPy's and leading arguments, where that is another
    name. The first ``orders`` of its ``arguments`` are integers. ``number`` is mpmath's name, or a
    function of mpmath's context and the arguments; where it is quick and in range at numbers of
    any size it is ``anywhere``. ``image`` holds its values: an interval, or a function of the
    intervals of the arguments. ``domain`` is how an expression in the argument compares with 0
    where there is a value.

    It may compare its argument with ``kinks_at``, be ``stepped``, of the derivative 0, or not
    ``smooth`` for another reason. At ``safe_at`` all its derivatives are finite; None: everywhere.
    ``logarithm`` is log of it where it is positive; ``whole`` keeps torch's integers integers.
    """

    function: type
    _: KW_ONLY
    torch: str | None = None
    also: str = ""
    typed: tuple[str | int, ...] = ()
    arguments: int = 1
    orders: int = 0
    number: str | Callable = ""
    anywhere: bool = False
    image: Interval | Callable[..., Interval] = (-inf, inf)
    domain: tuple[str, Callable[[Expr], Expr]] | None = None
    odd: bool = False
    kinks_at: int | None = None
    stepped: bool = False
    smooth: bool = True
    whole: bool = False
    safe_at: int | None = None
    written: Callable[..., Expr] | None = None
    logarithm: Callable[..., Expr] | None = None

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def in_torch(self) -> tuple[str, ...]:
        """Its names in torch; those of ``torch.special`` begin with ``special_``."""
        own = "" if self.written else self.name
        return tuple((own if self.torch is None else self.torch).split())

    @property
    def is_known(self) -> bool:
        """Whether targets compute it."""
        return bool(self.in_torch) and self.written is None

    @property
    def in_libraries(self) -> tuple[str, ...]:
        """Its names in torch, numpy and Python, without ``special_``."""
        names = (name.removeprefix("special_") for name in (*self.in_torch, *self.also.split()))
        return tuple(dict.fromkeys(names))

    @property
    def is_smooth(self) -> bool:
        return self.smooth and not self.stepped and self.kinks_at is None

    def in_mpmath(self, context) -> Callable | None:
        """The function of mpmath's numbers in a ``context``; None where there is none."""
        if isinstance(self.number, str):
            return getattr(context, self.number or self.name, None)
        return lambda *values: self.number(context, *values)

    def image_of(self, *intervals: Interval) -> Interval:
        """Where its values lie for arguments in these intervals."""
        return self.image(*intervals) if callable(self.image) else self.image

    def called(self, *operands: Any) -> tuple:
        """The name by which a user calls it, and the arguments."""
        name, *leading = self.typed or (self.name,)
        return (name, *leading, *operands)


ABOVE, NOT_BELOW = ">", ">="
TABLE = (
    Pointwise(sympy.exp, image=_rising(math.exp), safe_at=0),
    Pointwise(
        sympy.log,
        number="ln",
        anywhere=True,
        image=_rising(math.log),
        domain=(ABOVE, lambda u: u),
        safe_at=1,
    ),
    Pointwise(sympy.tanh, anywhere=True, image=(-1.0, 1.0), odd=True),
    Pointwise(sympy.sinh, odd=True, safe_at=0),
    Pointwise(sympy.cosh, image=(1.0, inf), safe_at=0),
    Pointwise(sympy.sin, image=(-1.0, 1.0), odd=True),
    Pointwise(sympy.cos, image=(-1.0, 1.0)),
    Pointwise(sympy.tan, odd=True, safe_at=0),
    Pointwise(
        sympy.asin,
        torch="asin arcsin",
        domain=(NOT_BELOW, lambda u: 1 - u**2),
        odd=True,
        safe_at=0,
    ),
    Pointwise(sympy.acos, torch="acos arccos", domain=(NOT_BELOW, lambda u: 1 - u**2), safe_at=0),
    Pointwise(sympy.atan, torch="atan arctan", anywhere=True, image=(-pi / 2, pi / 2), odd=True),
    Pointwise(
        sympy.atan2,
        torch="atan2 arctan2",
        arguments=2,
        anywhere=True,
        image=(-pi, pi),
        safe_at=1,
    ),
    Pointwise(sympy.asinh, torch="asinh arcsinh", anywhere=True, odd=True),
    Pointwise(sympy.acosh, torch="acosh arccosh", domain=(NOT_BELOW, lambda u: u - 1), safe_at=2),
    Pointwise(
        sympy.atanh,
        torch="atanh arctanh",
        domain=(ABOVE, lambda u: 1 - u**2),
        odd=True,
        safe_at=0,
    ),
    Pointwise(sympy.erf, torch="erf special_erf", anywhere=True, image=(-1.0, 1.0), odd=True),
    Pointwise(sympy.erfc, torch="erfc special_erfc", image=(0.0, 2.0)),
    Pointwise(
        sympy.erfinv,
        torch="erfinv special_erfinv",
        domain=(ABOVE, lambda u: 1 - u**2),
        odd=True,
        safe_at=0,
    ),
    Pointwise(loggamma, torch="lgamma special_gammaln", domain=(ABOVE, lambda u: u), safe_at=1),
    Pointwise(
        polygamma,
        torch="polygamma special_polygamma",
        arguments=2,
        orders=1,
        number=lambda m, order, u: m.psi(int(order), u),
        image=lambda order, u: (0.0 if order[0] % 2 else -inf, inf),
        safe_at=1,
    ),
    Pointwise(
        i0,
        torch="i0 special_i0",
        typed=("besseli", 0),
        number=lambda m, u: m.besseli(0, u),
        image=(1.0, inf),
        safe_at=0,
    ),
    Pointwise(
        i1,
        torch="i1 special_i1",
        typed=("besseli", 1),
        number=lambda m, u: m.besseli(1, u),
        odd=True,
        safe_at=0,
    ),
    Pointwise(
        sympy.Abs, torch="abs absolute", also="fabs", image=(0.0, inf), kinks_at=0, whole=True
    ),
    Pointwise(
        Round,
        torch="round",
        also="rint",
        number="nint",
        image=_rising(round),
        odd=True,
        stepped=True,
    ),
    Pointwise(floor, image=_rising(math.floor), stepped=True, whole=True),
    Pointwise(
        ceiling, torch="ceil", number="ceil", image=_rising(math.ceil), stepped=True, whole=True
    ),
    Pointwise(sympy.sign, torch="sign sgn", image=(-1.0, 1.0), odd=True, kinks_at=0, stepped=True),
    Pointwise(
        Mod,
        torch="remainder",
        also="mod",
        arguments=2,
        number=lambda m, a, b: a - b * m.floor(a / b),
        image=lambda a, b: (min(b[0], 0.0), max(b[1], 0.0)),
        smooth=False,
    ),
    # Written in those above.
    Pointwise(sympy.floor, written=floor),
    Pointwise(sympy.ceiling, number="ceil", written=ceiling),
    Pointwise(sympy.frac, written=lambda u: u - floor(u)),
    Pointwise(sympy.Mod, written=Mod, arguments=2),
    Pointwise(
        sympy.digamma,
        torch="digamma special_digamma special_psi",
        safe_at=1,
        written=lambda u: polygamma(0, u),
    ),
    Pointwise(sympy.trigamma, written=lambda u: polygamma(1, u)),
    Pointwise(sympy.besseli, written=_besseli, arguments=2, orders=1),
    Pointwise(sympy.cot, written=lambda u: 1 / sympy.tan(u)),
    Pointwise(sympy.sec, written=lambda u: 1 / sympy.cos(u)),
    Pointwise(sympy.csc, written=lambda u: 1 / sympy.sin(u)),
    Pointwise(sympy.coth, written=lambda u: 1 / sympy.tanh(u)),
    Pointwise(sympy.sech, written=lambda u: 1 / sympy.cosh(u)),
    Pointwise(sympy.csch, written=lambda u: 1 / sympy.sinh(u)),
    # Of which targets have logarithms, or none.
    Pointwise(sympy.gamma, torch="", logarithm=loggamma),
    Pointwise(sympy.factorial, torch="", logarithm=lambda n: loggamma(n + 1)),
    Pointwise(
        sympy.beta,
        torch="",
        arguments=2,
        logarithm=lambda a, b: loggamma(a) + loggamma(b) - loggamma(a + b),
    ),
    Pointwise(
        sympy.binomial,
        torch="",
        arguments=2,
        logarithm=lambda n, k: loggamma(n + 1) - loggamma(k + 1) - loggamma(n - k + 1),
    ),
    Pointwise(sympy.LambertW, torch="", number="lambertw"),
    Pointwise(sympy.Heaviside, torch="", image=(0.0, 1.0), kinks_at=0, stepped=True),
)
KNOWN = {row.name: row for row in TABLE if row.is_known}
KINKED = tuple(row.function for row in TABLE if row.kinks_at is not None)
_WRITTEN = {row.function: row.written for row in TABLE if row.written}
_LOGARITHMS = {row.function: row.logarithm for row in TABLE if row.logarithm}


def function_named(name: str) -> Callable[..., Expr]:
    """The function of that name, ours or SymPy's."""
    return globals().get(name) or getattr(sympy, name)


def in_known_functions(e: Expr) -> Expr:
    """``e`` with the functions that targets lack rewritten in ones that they have."""
    e = e.replace(lambda n: isinstance(n, sympy.log) and type(n.args[0]) in _LOGARITHMS, _logarithm)
    return e.replace(lambda n: type(n) in _WRITTEN, lambda n: _WRITTEN[type(n)](*n.args))


def _logarithm(e: sympy.log) -> Expr:
    return _LOGARITHMS[type(e.args[0])](*e.args[0].args)


def check_known(e: Expr) -> None:
    """Refuse a function that no target computes. Raises `NotationError`."""
    for call in sorted(e.atoms(Function), key=str):
        row = KNOWN.get(type(call).__name__)
        fits = row is not None and len(call.args) == row.arguments
        if fits or isinstance(call, (Piecewise, Branches, Compared, Detach)):
            continue
        remedy = "write it in exp, log, sqrt, tanh, erf, loggamma, Abs, Piecewise and the like"
        if type(call) in _LOGARITHMS:
            remedy = (
                f"write exp({_logarithm(sympy.log(call, evaluate=False))}), where that is meant"
            )
        raise NotationError(f"no library computes {call} with its gradient", remedy)
