"""Choices that a target has a function for: the larger of two, what is held between bounds, what
bends at 0.

In: an expression with choices. Out: the same with these in their places, under the names below.
Used in the forward and the backward; the step-by-step functions choose as it is written.

The contract of an entry of the table. It receives a `Choice` by what one value is, and returns what
it is equal to, or None. Both sides are equal for all finite numbers, with the edges between the
pieces, and at infinities where the left side has a value. Of a NaN that decides, the left side is
the last branch, which need not be NaN; the right side is NaN, or that branch. Where an entry needs
that a scalar is positive and the declarations do not say so, the code asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sympy import (
    Abs,
    Add,
    Dummy,
    Expr,
    Function,
    Mul,
    Ne,
    Or,
    Piecewise,
    Pow,
    S,
    cancel,
    exp,
    expand,
    sign,
)
from sympy.core.relational import Relational

from derive.language.choices import Branches, Compared, as_choices
from derive.language.nodes import ArrayNode, Sum
from derive.language.symbols import Tensor, is_constant, tensors_in

LARGEST = 60  # operations of a difference that is looked into
BELOW, ABOVE = ("<", "<="), (">", ">=")


class larger(Function):
    """The larger of two; NaN where one of them is."""


class smaller(Function):
    """The smaller of two; NaN where one of them is."""


class bent(Function):
    """``bent(g, u, s)`` is g where u > 0, and else s*g."""


class sloping(Function):
    """``sloping(g, u, s)`` is s*exp(u)*g where u <= 0, and else g."""


@dataclass(frozen=True)
class Choice:
    """A choice by where ``u`` lies: ``pieces`` from the lowest on, between ``bounds``, each a
    number or made of scalars; ``whole`` is how it was written.
    """

    u: Expr
    bounds: tuple[Expr, ...]
    pieces: tuple[Expr, ...]
    whole: Piecewise

    def inside(self, i: int) -> Callable[[Expr], Expr] | None:
        """Piece ``i`` as a function of what ``u`` is, if it is made of that and of scalars."""
        place = Dummy("u", real=True)
        e = self.pieces[i].xreplace({self.u: place, -self.u: -place})
        if any(t.axes or t.role != "scalar" for t in tensors_in(e)):
            return None
        return lambda value: e.xreplace({place: value})


@dataclass(frozen=True)
class Piece:
    """``statement`` is the equation, ``holds`` its condition."""

    statement: str
    holds: str
    rewrite: Callable[[Choice], Expr | None]


def _held(choice: Choice) -> Expr | None:
    """The inner piece, or the one that is not the same everywhere, of u held between the bounds."""
    if len(choice.bounds) == 2:
        f, (low, high) = choice.inside(1), choice.bounds
        if f is None:
            return None
        held = smaller(larger(choice.u, low), high)
        outside = [_rest(choice, i, f(b), b) for i, b in ((0, low), (2, high))]
        if outside[0] is None or outside[0] != outside[1]:
            return None
        return f(held) + outside[0] * (choice.u - held)
    for i, bound in ((0, smaller), (1, larger)):
        f, (b,) = choice.inside(i), choice.bounds
        if f is not None and _equal(f(b), choice.pieces[1 - i]):
            return f(bound(choice.u, b))
    return None


def _rest(choice: Choice, i: int, at_bound: Expr, bound: Expr) -> Expr | None:
    """The number s with which piece ``i`` is ``at_bound + s*(u - bound)``."""
    f, place = choice.inside(i), Dummy("u", real=True)
    if f is None:
        return None
    slope = expand(f(place)).diff(place)
    straight = slope.is_number and _equal(f(place), at_bound + slope * (place - bound))
    return slope if straight else None


def _joined(choice: Choice) -> Expr | None:
    """f(u) below the bound and g(u) above it, both 0 there, term by term."""
    if len(choice.bounds) != 1:
        return None
    (b,), (f, g) = choice.bounds, (choice.inside(0), choice.inside(1))
    if f is None or g is None or b != 0:
        return None
    place = Dummy("u", real=True)
    terms = [t for h in (f, g) for t in Add.make_args(h(place))]
    if any(t.xreplace({place: b}) != 0 for t in terms):
        return None
    return f(smaller(choice.u, b)) + g(larger(choice.u, b))


def _bent(choice: Choice) -> Expr | None:
    """g above 0 and s*g below."""
    if choice.bounds != (0,) or not _lowest_at_edge(choice):
        return None
    below, above = choice.pieces
    slope = S.Zero if above == 0 else below / above
    if above in (0, 1) or slope == 0 or not _is_scalar(slope) or _divided(slope):
        return None
    return bent(above, choice.u, slope)


def _eased(choice: Choice) -> Expr | None:
    """An exponential that is 1 at the bound, of what stays below it; it is the last branch, which
    is chosen of NaN.
    """
    if len(choice.bounds) != 1:
        return None
    (b,), place, last = choice.bounds, Dummy("u", real=True), choice.whole.args[-1].expr
    for i, bound in ((0, smaller), (1, larger)):
        f, other = choice.inside(i), choice.pieces[1 - i]
        if f is None or not _is_scalar(other) or choice.pieces[i] != last:
            continue
        for factor in Mul.make_args(f(place)):
            if isinstance(factor, exp) and factor.xreplace({place: b}) == 1:
                left = f(place) / factor
                if left.has(place):
                    continue
                rest = {last: left}
                pairs = [(rest.get(v, v), c) for v, c in choice.whole.args]
                eased = factor.xreplace({place: bound(choice.u, b)})
                return eased * Piecewise(*pairs, evaluate=False)
    return None


def _sloping(choice: Choice) -> Expr | None:
    """g above 0 and s*exp(u)*g below; of NaN it is g."""
    if choice.bounds != (0,) or not _lowest_at_edge(choice):
        return None
    below, above = choice.pieces
    if is_constant(above) or above != choice.whole.args[-1].expr:
        return None
    slope = below / above / exp(choice.u)
    if slope == 0 or _divided(slope):
        return None
    return sloping(above, choice.u, slope) if _is_scalar(slope) else None


pieces: tuple[Piece, ...] = (
    Piece(
        "Piecewise((f(a), u < a), (f(b), u > b), (f(u), True)) = f(min(max(u, a), b)), and"
        " + s*(u - min(max(u, a), b)) where the outer pieces rise with the slope s",
        "a <= b; f(u) is made of u and scalars alone",
        _held,
    ),
    Piece(
        "Piecewise((g, u > 0), (s*g, True)) = bent(g, u, s)",
        "s is a number or made of scalars, and not 0",
        _bent,
    ),
    Piece(
        "Piecewise((f(u), u < 0), (g(u), True)) = f(min(u, 0)) + g(max(u, 0))",
        "every term of f(0) and g(0) is 0; both are made of u and scalars alone",
        _joined,
    ),
    Piece(
        "Piecewise((c*exp(h(u)), u < b), (d, True)) ="
        " exp(h(min(u, b)))*Piecewise((c, u < b), (d, True))",
        "h(b) = 0; c, d and h(u) are made of u and scalars alone",
        _eased,
    ),
    Piece(
        "Piecewise((s*exp(u)*g, u <= 0), (g, True)) = sloping(g, u, s)",
        "s is a number or made of scalars",
        _sloping,
    ),
)


def with_pieces(e: Expr, magnitudes: Mapping[str, Expr]) -> Expr:
    """``e`` with its choices under the names of this module, where they are such.

    ``magnitudes`` has what tensors are the absolute values of, by name.
    """
    if not e.atoms(Piecewise):
        return e
    if isinstance(e, ArrayNode):
        return e.on(with_pieces(e.operand, magnitudes)) if isinstance(e, Sum) else e
    if isinstance(e, Mul):
        return _product(e, magnitudes)
    if isinstance(e, (Relational, Branches, Compared)):
        return e
    args = [with_pieces(arg, magnitudes) for arg in e.args]
    if any(new is not old for new, old in zip(args, e.args, strict=True)):
        e = Piecewise(*args, evaluate=False) if isinstance(e, Piecewise) else e.func(*args)
    return _rewritten(e, magnitudes) if isinstance(e, Piecewise) else e


def compared(e: Expr) -> Expr:
    """``e``, which stood in a condition, likewise."""
    while e.has(Branches, Compared):
        e = as_choices(e)
    return with_pieces(e, {})


def _product(e: Mul, magnitudes: Mapping[str, Expr]) -> Expr:
    """A factor that is a choice with 0 in it stays one, beside factors that may be infinite there;
    one that is 1 or a scalar bends the others.
    """
    factors = []
    for factor in e.args:
        others = Mul(*(f for f in e.args if f is not factor))
        zero = isinstance(factor, Piecewise) and any(v == 0 for v, _ in factor.args)
        kept = zero and not is_constant(others)
        factors.append(factor if kept else with_pieces(factor, magnitudes))
    product = Mul(*factors)
    for factor in Mul.make_args(product):
        if isinstance(factor, Piecewise) and (found := _passed_on(factor, product, magnitudes)):
            return found
    return product


def _passed_on(factor: Piecewise, product: Mul, magnitudes: Mapping[str, Expr]) -> Expr | None:
    """A product with a choice that is 1 on one side, as a gradient that passes it."""
    rest = Mul(*(f for f in Mul.make_args(product) if f is not factor))
    if is_constant(rest) or any(v == 0 for v, _ in factor.args):
        return None
    whole = Piecewise(*((rest * v, c) for v, c in factor.args), evaluate=False)
    choice = _choice(whole, magnitudes)
    if choice is None or not any(_is_scalar(v) for v, _ in factor.args):
        return None
    return _bent(choice) if _is_scalar(Add(*(v for v, _ in factor.args))) else _sloping(choice)


def _rewritten(e: Piecewise, magnitudes: Mapping[str, Expr]) -> Expr:
    if (found := _extreme(e)) is not None:
        return found
    if (found := _continued(e, magnitudes)) is not None:
        return found
    if (found := _stepped(e)) is not None:
        return found
    choice = _choice(e, magnitudes)
    for piece in pieces if choice is not None else ():
        found = piece.rewrite(choice)
        if found is None:
            continue
        if isinstance(found, Mul) and found.has(Piecewise):
            found = _product(found, magnitudes)
        return _where_positive(found, choice)
    return e


def _where_positive(found: Expr, choice: Choice) -> Expr:
    """``found``, or what was written unless the scalars that it needs are positive."""
    needed = [high - low for low, high in zip(choice.bounds, choice.bounds[1:], strict=False)]
    needed += [p.base for p in found.atoms(Pow) if p.exp.is_negative and _is_scalar(p.base)]
    return _guarded(found, choice.whole, needed)


def _guarded(found: Expr, written: Expr, needed: list[Expr]) -> Expr | None:
    asked = []
    for e in needed:
        e = expand(e).primitive()[1] if not e.is_number else e
        if e.is_positive or (e.is_nonnegative and not _divides(found, e)):
            continue
        if e.is_number:
            return written
        asked.append(e > 0)
    if not asked:
        return found
    return (
        Piecewise((found, asked[0]), (written, True), evaluate=False)
        if len({*asked}) == 1
        else written
    )


def _divides(e: Expr, divisor: Expr) -> bool:
    return any(p.exp.is_negative and p.base == divisor for p in e.atoms(Pow))


def _extreme(e: Piecewise) -> Expr | None:
    """Piecewise((a, u >= v), (b, True)) = max(a, b) for a - b = k*(u - v), k > 0; min for k < 0."""
    if len(e.args) != 2 or not isinstance(e.args[0][1], Relational):
        return None
    (a, test), (b, _) = e.args
    if test.rel_op not in (*BELOW, *ABOVE) or not _deciding(test):
        return None
    u, v = (compared(side) for side in (test.gts, test.lts))
    above, over = expand(a - b), expand(u - v)
    if above == 0 or over == 0 or max(above.count_ops(), over.count_ops()) > LARGEST:
        return None
    ratio = S.One if above == over else cancel(above / over)
    if ratio.is_positive:
        return larger(a, b)
    return smaller(a, b) if ratio.is_negative else None


def _stepped(e: Piecewise) -> Expr | None:
    """Piecewise((b + 1, q), (b, True)) = b + Piecewise((1, q), (0, True)), for a scalar b."""
    if len(e.args) != 2 or not all(_is_scalar(v) and v != 0 for v, _ in e.args):
        return None
    (a, condition), (b, _) = e.args
    entries = [t for t in tensors_in(condition) if t.role != "scalar"]
    step = expand(a - b)
    return b + Piecewise((step, condition), (0, True)) if entries and step == 1 else None


def _continued(e: Piecewise, magnitudes: Mapping[str, Expr]) -> Expr | None:
    """Piecewise((f(b, u), b < u), (f(u, u), True)) = f(min(u, b), u)."""
    if len(e.args) != 2 or not isinstance(e.args[0][1], Relational):
        return None
    (outer, test), (inner, _) = e.args
    if test.rel_op not in (*BELOW, *ABOVE):
        return None
    u, b = test.gts, test.lts
    if not (isinstance(b, Tensor) and b.role == "scalar" and b in outer.free_symbols):
        return None
    inner = _in_magnitudes(inner, u, magnitudes)
    for factor in (S.One, b):
        place = Dummy("b", real=True)
        f = expand(factor * outer).xreplace({b: place})
        if factor != 1 and not _divides(inner, b):
            continue
        if _equal(f.xreplace({place: u}), factor * inner):
            f = (factor * outer).xreplace({b: place}) if factor == 1 else _together(f, place)
            found = f.xreplace({place: smaller(u, b)}) / factor
            needed = [] if b.is_nonnegative and factor == 1 else [b]
            return _guarded(found, e, needed)
    return None


def _together(f: Expr, place: Dummy) -> Expr:
    """``f`` with the factor ``place`` outside, where all of its terms have it."""
    inside = Add(*(term / place for term in Add.make_args(f)))
    return place * inside


def _in_magnitudes(e: Expr, u: Expr, magnitudes: Mapping[str, Expr]) -> Expr:
    """``e`` with u**2 in the place of the square of what u is the absolute value of."""
    inside = magnitudes.get(u.name) if isinstance(u, Tensor) else None
    inside = u.args[0] if isinstance(u, Abs) else inside
    if inside is None:
        return e
    squares = {p: u**p.exp for p in e.atoms(Pow) if p.base in (inside, -inside) and p.exp.is_even}
    return e.xreplace(squares)


def _choice(e: Piecewise, magnitudes: Mapping[str, Expr]) -> Choice | None:
    """The choice by where one value lies, if it is one."""
    tests = [t for _, c in e.args[:-1] for t in _tests(c)]
    if not tests or not all(isinstance(t, Relational) and _deciding(t) for t in tests):
        return None
    sides = [_side(t) for t in tests]
    if None in sides or len({u for u, _, _ in sides}) != 1:
        return None
    u = sides[0][0]
    if isinstance(u, Abs) or (isinstance(u, Tensor) and u.name in magnitudes):
        return _choice_by_magnitude(e, u, sides, magnitudes)
    bounds = _ordered({b for _, _, b in sides})
    if bounds is None or len(bounds) > 2:
        return None
    found = []
    for i in range(len(bounds) + 1):
        value = next(v for v, c in e.args if c == True or _holds(c, bounds, i))  # noqa: E712
        found.append(value)
    return Choice(u, bounds, tuple(found), e)


def _choice_by_magnitude(e, u, sides, magnitudes) -> Choice | None:
    if len(e.args) != 2 or len(sides) != 1:
        return None
    _, op, b = sides[0]
    inside = u.args[0] if isinstance(u, Abs) else magnitudes[u.name]
    (first, _), (last, _) = e.args
    outer, middle = (first, last) if op in ABOVE else (last, first)
    met = [s.args[0] for s in outer.atoms(sign)]
    if -inside in met or (not met and not _speaks_of(middle, inside)):
        inside = -inside
    place = Dummy("u", real=True)
    ends = []
    for side in (-1, 1):
        at = outer.xreplace({u: side * place}).xreplace(
            {sign(inside): S(side), sign(-inside): -S(side)}
        )
        ends.append(at.xreplace({place: inside}))
    return Choice(inside, (-b, b), (ends[0], middle, ends[1]), e)


def _speaks_of(e: Expr, inside: Expr) -> bool:
    return e == inside or any(_speaks_of(arg, inside) for arg in e.args)


def _tests(condition):
    return condition.args if isinstance(condition, Or) else (condition,)


def _side(test: Relational) -> tuple[Expr, str, Expr] | None:
    """What varies, the sign and the bound: a number, or made of scalars."""
    left, op, right = test.lhs, test.rel_op, test.rhs
    if op not in (*BELOW, *ABOVE):
        return None
    if _is_scalar(left):
        left, op, right = right, {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[op], left
    if not _is_scalar(right) or _is_scalar(left):
        return None
    if left.could_extract_minus_sign() and not isinstance(left, Add):
        left, op, right = -left, {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[op], -right
    return left, op, right


def _ordered(bounds: set[Expr]) -> tuple[Expr, ...] | None:
    """The bounds from the lowest on, if that is known."""
    if len(bounds) == 1:
        return tuple(bounds)
    a, b = bounds
    if len(bounds) == 2 and (b - a).is_nonnegative:
        return a, b
    return (b, a) if len(bounds) == 2 and (a - b).is_nonnegative else None


def _holds(condition, bounds: tuple[Expr, ...], i: int) -> bool:
    """Whether the condition holds in the piece ``i``, between bounds that are its own."""
    results = []
    for test in _tests(condition):
        _, op, b = _side(test)
        below = i <= bounds.index(b)
        results.append(below == (op in BELOW))
    return any(results)


def _lowest_at_edge(choice: Choice) -> bool:
    """Whether at the one bound the lower piece is chosen."""
    (test,) = _tests(choice.whole.args[0][1])
    _, op, _ = _side(test)
    first_is_lower = op in BELOW
    return (op == "<=") if first_is_lower else (op == ">")


def _deciding(test: Relational) -> bool:
    """Whether entries decide, and not numbers, labels or positions."""
    tensors = [t for t in tensors_in(test) if t.role != "scalar"]
    roles = {t.role for t in tensors}
    return bool(tensors) and not roles & {"label", "kept"} and not isinstance(test, Ne)


def _is_scalar(e: Expr) -> bool:
    """A number, or made of scalar arguments alone."""
    return all(isinstance(s, Tensor) and s.role == "scalar" for s in e.free_symbols) and not e.has(
        Piecewise
    )


def _divided(e: Expr) -> bool:
    return any(p.exp.is_negative and not p.base.is_number for p in e.atoms(Pow))


def _equal(a: Expr, b: Expr) -> bool:
    return a == b or (max(a.count_ops(), b.count_ops()) <= LARGEST and expand(a - b) == 0)
