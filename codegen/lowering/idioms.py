"""Functions that every target names because their formula loses digits or is slow.

Used in the forward and the backward; the step-by-step functions compute as written. A target
gives each its name, as it does for SymPy's functions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from sympy import Abs, Add, Expr, Function, Mul, Piecewise, Pow, S, exp, log

from derive.gradient.range.exponents import extreme
from derive.language.choices import written_in
from derive.language.nodes import OneHot, along
from derive.language.symbols import Tensor, axes_of, is_constant, tensors_in


class log1p(Function):
    """log(1 + u), which for small u is not 0."""

    @classmethod
    def eval(cls, u):
        return S.Zero if u == 0 else None


class expm1(Function):
    """exp(u) - 1, which for small u is not 0."""

    @classmethod
    def eval(cls, u):
        return S.Zero if u == 0 else None


class sigmoid(Function):
    """1/(1 + exp(-u))."""


class softplus(Function):
    """log(1 + exp(u))."""


class logsigmoid(Function):
    """-log(1 + exp(-u))."""


class Pulled(Function):
    """The first argument, a gradient, times the derivative of a function; its value is second."""

    of: str  # the function's name

    @staticmethod
    def slope(y: Expr) -> Expr:
        """The derivative where the value is ``y``."""
        raise NotImplementedError


class tanh_pulled(Pulled):
    """g*(1 - y**2)."""

    of = "tanh"

    @staticmethod
    def slope(y: Expr) -> Expr:
        return 1 - y**2


class sigmoid_pulled(Pulled):
    """g*y*(1 - y)."""

    of = "sigmoid"

    @staticmethod
    def slope(y: Expr) -> Expr:
        return y * (1 - y)


@dataclass(frozen=True)
class Idiom:
    """``statement`` is the equation; ``rewrite`` gives its left side for a node, or None."""

    statement: str
    rewrite: Callable[[Expr], Expr | None]


def _log1p(e: Expr) -> Expr | None:
    """log1p, except where a scalar argument, as in 1 - p + eps, keeps a difference away from 0."""
    inside = e.args[0] if isinstance(e, log) else None
    if not isinstance(inside, Add) or 1 not in inside.args:
        return None
    guards = {term for term in inside.args if tensors_in(term) and is_constant(term)}
    near = any(not term.is_nonnegative for term in inside.args if term not in guards)
    return None if guards and near else log1p(inside - 1)


def _expm1(e: Expr) -> Expr | None:
    if not isinstance(e, Add) or abs(e.as_coeff_Add()[0]) != 1:
        return None
    number = e.as_coeff_Add()[0]
    for term in e.args:
        if isinstance(-number * term, exp):
            return e - number - term - number * expm1((-number * term).exp)
    return None


def _sigmoid(e: Expr) -> Expr | None:
    if not isinstance(e, Pow) or not e.exp.is_Integer or e.exp > 0:
        return None
    inside = e.base - 1
    return sigmoid(-inside.exp) ** -e.exp if isinstance(inside, exp) else None


def _softplus(e: Expr) -> Expr | None:
    """log(1 + exp(u)) without overflow: max(u, 0) + log(1 + exp(-|u|))."""
    terms = Add.make_args(e)
    for term in terms:
        factor, logarithm = term.as_independent(log, as_Add=False)
        magnitude = _magnitude(logarithm)
        for u in () if magnitude is None else (magnitude, -magnitude):
            larger = factor * extreme(u, S.Zero)
            if larger in terms:
                rest = Add(*(t for t in terms if t not in (term, larger)))
                if -factor * u in terms:  # log(1 + exp(u)) - u = log(1 + exp(-u))
                    rest, u = rest + factor * u, -u
                whole = -logsigmoid(-u) if u.could_extract_minus_sign() else softplus(u)
                return rest + factor * whole
    return None


def _magnitude(e: Expr) -> Expr | None:
    """u where ``e`` is log(1 + exp(-|u|))."""
    inside = e.args[0] - 1 if isinstance(e, log) else None
    if not isinstance(inside, exp):
        return None
    factor, magnitude = (-inside.exp).as_independent(Abs, as_Add=False)
    known = isinstance(magnitude, Abs) and factor.is_positive
    return factor * magnitude.args[0] if known else None


def _tanh_pulled(e: Expr) -> Expr | None:
    for factor in Mul.make_args(e):
        square = 1 - factor
        if isinstance(square, Pow) and square.exp == 2:
            return _pulled(e, tanh_pulled, square.base)
    return None


def _sigmoid_pulled(e: Expr) -> Expr | None:
    for factor in Mul.make_args(e):
        y = 1 - factor
        if e.as_powers_dict().get(y, S.Zero).is_positive:
            return _pulled(e, sigmoid_pulled, y)
    return None


def _pulled(e: Expr, kind: type[Pulled], y: Expr) -> Expr | None:
    """``e`` as a gradient pulled back through ``kind`` at its value ``y``. Larger factors stay
    outside, and so does a choice, with the branches it will have.
    """
    if not isinstance(y, (Tensor, Function)):
        return None
    sign = -1 if e.as_coeff_Mul()[0].is_negative else 1
    factors = Mul.make_args(sign * e / kind.slope(y))
    apart = [f for f in factors if f.has(OneHot, Piecewise) or not axes_of(f) <= axes_of(y)]
    chosen = [axes_of(f) for f in apart if isinstance(f, Piecewise)]
    apart += [f for f in factors if f not in apart and any(axes_of(f) <= axes for axes in chosen)]
    upstream = Mul(*(f for f in factors if f not in apart))
    return None if is_constant(upstream) else Mul(sign, *apart) * kind(upstream, y)


idioms: tuple[Idiom, ...] = (
    Idiom("softplus(u) = log(1 + exp(u))", _softplus),
    Idiom("log1p(u) = log(1 + u)", _log1p),
    Idiom("expm1(u) = exp(u) - 1", _expm1),
    Idiom("sigmoid(u) = 1/(1 + exp(-u))", _sigmoid),
    Idiom("tanh_pulled(g, y) = g*(1 - y**2)", _tanh_pulled),
    Idiom("sigmoid_pulled(g, y) = g*y*(1 - y)", _sigmoid_pulled),
)


def with_idioms(e: Expr) -> Expr:
    """``e`` with its idioms replaced by functions, where they are of a tensor."""
    for idiom in idioms:

        def rewritten(node: Expr, idiom=idiom) -> Expr:
            result = None if is_constant(node) else idiom.rewrite(node)
            return node if result is None else result

        e = e.replace(lambda node: isinstance(node, (Add, Mul, Pow, log)), rewritten)
    return e


def with_logarithms_joined(
    values: Iterable[tuple[Tensor, Expr]], needed: Collection[str]
) -> list[tuple[Tensor, Expr]]:
    """``values`` without those that are only the logarithm in a `softplus` or two wherever they are
    read, and are not ``needed`` themselves.
    """
    values = list(values)
    for tensor, e in values:
        if tensor.name in needed or _magnitude(e) is None:
            continue
        joined = [(t, _with_written_out(other, tensor, e)) for t, other in values if t != tensor]
        if not any(with_idioms(other).has(with_idioms(e)) for _, other in joined):
            values = joined
    return values


def _with_written_out(e: Expr, tensor: Tensor, definition: Expr) -> Expr:
    met = [t for t in tensors_in(e) if t.name == tensor.name]
    return written_in(e, {t: along(definition, t) for t in met}) if met else e
