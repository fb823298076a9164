"""Choices that a target has a function for: the larger of two, clamps, functions that bend at 0.

In: an expression with choices. Out: the same with these in their places, under the names of
``pieces.py``. Used in the forward and the backward; the step-by-step functions choose as it is
written.
"""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Abs, Add, Dummy, Expr, Mul, Piecewise, Pow, S, cancel, expand
from sympy.core.relational import Relational

from codegen.lowering.by_value import (
    ABOVE,
    BELOW,
    LARGEST,
    Choice,
    choice_of_one,
    deciding,
    equal,
    is_scalar,
)
from codegen.lowering.pieces import as_bent, as_sloping, larger, pieces, smaller
from derive.language.choices import Branches, Compared, as_choices
from derive.language.nodes import ArrayNode, Sum
from derive.language.symbols import Tensor, is_constant, tensors_in


def with_pieces(e: Expr, magnitudes: Mapping[str, Expr]) -> Expr:
    """``e`` with its choices replaced by the functions of ``pieces.py`` where they match.

    ``magnitudes`` maps names of tensors to the operands of which they are the absolute values.
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
    """The same for ``e`` from inside a condition."""
    while e.has(Branches, Compared):
        e = as_choices(e)
    return with_pieces(e, {})


def _product(e: Mul, magnitudes: Mapping[str, Expr]) -> Expr:
    """A product with a choice. A factor that is a choice with 0 in it stays one, beside factors
    that may be infinite there; one that is 1 or a scalar bends the others.
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
    choice = choice_of_one(whole, magnitudes)
    if choice is None or not any(is_scalar(v) for v, _ in factor.args):
        return None
    return as_bent(choice) if is_scalar(Add(*(v for v, _ in factor.args))) else as_sloping(choice)


def _rewritten(e: Piecewise, magnitudes: Mapping[str, Expr]) -> Expr:
    if (found := _extreme(e)) is not None:
        return found
    if (found := _continued(e, magnitudes)) is not None:
        return found
    if (found := _stepped(e)) is not None:
        return found
    choice = choice_of_one(e, magnitudes)
    for piece in pieces if choice is not None else ():
        found = piece.rewrite(choice)
        if found is None:
            continue
        if isinstance(found, Mul) and found.has(Piecewise):
            found = _product(found, magnitudes)
        return _where_positive(found, choice)
    return e


def _where_positive(found: Expr, choice: Choice) -> Expr:
    """``found``, or the original unless the scalars that it needs are positive."""
    needed = [high - low for low, high in zip(choice.bounds, choice.bounds[1:], strict=False)]
    needed += [p.base for p in found.atoms(Pow) if p.exp.is_negative and is_scalar(p.base)]
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
    if test.rel_op not in (*BELOW, *ABOVE) or not deciding(test):
        return None
    u, v = (compared(side) for side in (test.gts, test.lts))
    above, over = expand(a - b), expand(u - v)
    if above == 0 or over == 0 or max(above.count_ops(), over.count_ops()) > LARGEST:
        return None
    ratio = S.One if above == over else _quotient(above, over)
    if ratio.is_positive:
        return larger(a, b)
    return smaller(a, b) if ratio.is_negative else None


def _quotient(above: Expr, over: Expr) -> Expr:
    """The quotient, cancelled; SymPy (1.14) does not terminate if it holds a choice."""
    whole = above / over
    named = {node: Dummy(real=True) for node in whole.atoms(ArrayNode, Piecewise)}
    return cancel(whole.xreplace(named)).xreplace({name: node for node, name in named.items()})


def _stepped(e: Piecewise) -> Expr | None:
    """Piecewise((b + 1, q), (b, True)) = b + Piecewise((1, q), (0, True)), for a scalar b."""
    if len(e.args) != 2 or not all(is_scalar(v) and v != 0 for v, _ in e.args):
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
        if equal(f.xreplace({place: u}), factor * inner):
            f = (factor * outer).xreplace({b: place}) if factor == 1 else _together(f, place)
            found = f.xreplace({place: smaller(u, b)}) / factor
            needed = [] if b.is_nonnegative and factor == 1 else [b]
            return _guarded(found, e, needed)
    return None


def _together(f: Expr, place: Dummy) -> Expr:
    """``f`` with the factor ``place`` taken out, where all of its terms have it."""
    inside = Add(*(term / place for term in Add.make_args(f)))
    return place * inside


def _in_magnitudes(e: Expr, u: Expr, magnitudes: Mapping[str, Expr]) -> Expr:
    """``e`` with u**2 instead of the square of u's operand, of which u is the absolute value."""
    inside = magnitudes.get(u.name) if isinstance(u, Tensor) else None
    inside = u.args[0] if isinstance(u, Abs) else inside
    if inside is None:
        return e
    squares = {p: u**p.exp for p in e.atoms(Pow) if p.base in (inside, -inside) and p.exp.is_even}
    return e.xreplace(squares)
