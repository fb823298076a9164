"""Rewrites of identities between axes, and of expressions that depend on a one-hot in another way
than as its multiple.

The identities that these are, with the conditions under which they hold, stand in the table of
``identities.py``, which also says what a rewrite receives and returns.
"""

from __future__ import annotations

from sympy import Add, Expr, Integer, Mul, Not, S, exp
from sympy.core.relational import Relational

from derive.language.array_node import ArrayNode
from derive.language.diagonals import Identity
from derive.language.nodes import OneHot, Sum, renamed, summed
from derive.language.quotients import cancelled
from derive.language.symbols import axes_of, tensors_in


def identity_contracted(node, knowledge):
    if not isinstance(node, Sum):
        return None
    factors = Mul.make_args(node.operand)
    for hot in (f for f in factors if isinstance(f, Identity)):
        rest = Mul(*(f for f in factors if f is not hot))
        if any({*hot.pair} <= {*t.axes} for t in tensors_in(rest)):
            continue
        for gone, kept in (hot.pair, hot.pair[::-1]):
            if gone in node.axes:
                others = [axis for axis in node.axes if axis != gone]
                return summed(renamed(rest, {gone: kept}), others, knowledge.relations.size)
    return None


def read_on_diagonal(node, knowledge):
    if not isinstance(node, Mul):
        return None
    for hot in (f for f in node.args if isinstance(f, Identity)):
        for factor in (f for f in node.args if f is not hot):
            met = [axis for axis in hot.pair if axis in axes_of(factor)]
            if len(met) == 1:
                ways = [renamed(factor, {met[0]: axis}) for axis in hot.pair]
                best = min(ways, key=_away)
                if best != factor:
                    return Mul(best, *(f for f in node.args if f is not factor))
    return None


def _away(e: Expr) -> int:
    """Number of tensors met along other axes than their own."""
    return sum(t.axes != t.home for t in tensors_in(e))


def one_hot_inside(node, knowledge):
    if not isinstance(node, Mul):
        return None
    for hot in (f for f in node.args if isinstance(f, OneHot)):
        for factor in (f for f in node.args if f is not hot):
            if _depends(factor, hot):
                others = (f for f in node.args if f is not factor)
                return Mul(_at(factor, hot, 1), *others)
    return None


def two_values(node, knowledge):
    if not isinstance(node, (Add, Mul)):
        return None
    e = _with_identities(node, knowledge.relations)
    for hot in sorted(e.atoms(Identity), key=str):
        one, other = (_at(e, hot, k) for k in (1, 0))
        if not any(_depends(node, hot) for node in e.atoms(exp)):
            continue
        difference = cancelled(_in_one_exponential(one - other))
        if not difference.has(exp):
            return other + difference * hot
    return None


def _with_identities(e: Expr, relations) -> Expr:
    """Expand in ``e`` the names of values made of identities alone, and of values computed from
    them.
    """
    while True:
        named = [t for t in tensors_in(e) if t.name in relations.by_name]
        values = {t: relations.unfolded(t) for t in named}
        made = {t: value for t, value in values.items() if _depends_on_identity(value, relations)}
        if not made:
            return e
        e = e.xreplace(made)


def _depends_on_identity(e: Expr, relations) -> bool:
    if e.has(Identity) and not tensors_in(e):
        return True
    inside = (t for t in tensors_in(e) if t.name in relations.by_name)
    values = map(relations.unfolded, inside)
    return any(value.has(Identity) and not tensors_in(value) for value in values)


def _depends(e: Expr, hot: OneHot) -> bool:
    """Whether a one-hot is met in ``e`` outside of array nodes."""
    if e == hot or e in _conditions(hot):
        return True
    if isinstance(e, (ArrayNode, Relational)):
        return False
    return any(_depends(arg, hot) for arg in e.args)


def _at(e: Expr, hot: OneHot, value: int) -> Expr:
    """``e`` where a one-hot is 0 or 1."""
    if e == hot:
        return Integer(value)
    if e in (conditions := _conditions(hot)):
        return S.true if (e == conditions[0]) == bool(value) else S.false
    if isinstance(e, (ArrayNode, Relational)) or not e.args:
        return e
    return e.func(*(_at(arg, hot, value) for arg in e.args))


def _conditions(hot: OneHot) -> tuple:
    """The conditions that a one-hot is 1, and that it is not."""
    return (hot.condition, Not(hot.condition)) if isinstance(hot, Identity) else ()


def _in_one_exponential(e: Expr) -> Expr:
    """exp(-u) as 1/exp(u)."""
    return e.replace(
        lambda node: isinstance(node, exp) and node.exp.could_extract_minus_sign(),
        lambda node: S.One / exp(-node.exp),
    )
