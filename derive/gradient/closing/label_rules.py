"""Rewrites with labels: one-hots in products and sums, and the entries that they pick.

The identities that these are, with the conditions under which they hold, stand in the table of
``identities.py``, which also says what a rewrite receives and returns.
"""

from __future__ import annotations

from itertools import permutations

from sympy import Eq, Expr, Integer, Mul, Piecewise, Pow

from derive.language.nodes import OneHot, Sum, summed
from derive.language.segments import picked_of
from derive.language.symbols import Tensor, axes_of, is_number_or_size


def one_hot_total(node, knowledge):
    hot = node.operand if isinstance(node, Sum) else None
    hot = hot.towards(node.axes) if isinstance(hot, OneHot) else None
    if hot is None:
        return None
    rest = [axis for axis in node.axes if axis != hot.axis]
    return summed(Integer(1), rest, knowledge.relations.size)


def one_hot_power(node, knowledge):
    if isinstance(node, Pow) and isinstance(node.base, OneHot) and node.exp.is_positive:
        return node.base
    return None


def one_hot_chosen(node, knowledge):
    if not isinstance(node, Piecewise) or len(node.args) != 2:
        return None
    (value, condition), (other, _) = node.args
    hot = next(iter(condition.atoms(OneHot)), None)
    chosen = hot is not None and condition == (hot > 0) and value.is_number and other == 0
    return value * hot if chosen else None


def picked(node, knowledge):
    """A name is read by its definition only as a divisor that cancels: else the forward's value is
    the shorter one.
    """
    if not isinstance(node, Mul):
        return None
    for factor in node.args:
        base, power = factor.as_base_exp()
        hot, row = _picked(base, knowledge) or (None, None)
        if hot not in node.args:
            continue
        if isinstance(factor, Sum):
            return node / factor * row
        if base != row and power.is_negative and {*Mul.make_args(row)} <= {*node.args}:
            return node / row * base
    return None


def same_for_segment(node, knowledge):
    """Introduces no divisor that the forward lacks: it may be 0 in an empty segment."""
    if not isinstance(node, Sum):
        return None
    factors = Mul.make_args(node.operand)
    for hot in (f for f in factors if isinstance(f, OneHot)):
        for factor in (f for f in factors if f is not hot):
            base, power = factor.as_base_exp()
            other = _read_otherwise(base, hot, node, knowledge)
            if other is None or axes_of(other) & {*node.axes}:
                continue
            along_labels = node.axes == (hot.axis,)  # where each label has an entry
            if along_labels or power.is_positive or other in knowledge.relations.divisors:
                return other**power * node.on(node.operand / factor)
    return None


def _read_otherwise(e: Expr, hot: OneHot, node: Sum, knowledge) -> Expr | None:
    """``e`` as it reads where the one-hot is 1: of an entry that is picked the row, and the
    reverse if the forward has a name for the entry.
    """
    found = _picked(e, knowledge)
    if found is not None and found[0] == hot:
        return found[1]
    entry = node.on(hot * e)
    if node.axes != (hot.axis,) or entry == node:  # the node itself is left to `recognise`
        return None
    return knowledge.relations.recognitions.get(entry)


def read_back(node, knowledge):
    if not isinstance(node, Sum):
        return None
    outer = _picked(node, knowledge)
    for total in Mul.make_args(outer[1]) if outer else ():
        if not isinstance(total, Sum) or outer[0] not in Mul.make_args(total.operand):
            continue
        for factor in Mul.make_args(total.operand):
            found = _picked(factor.as_base_exp()[0], knowledge)
            if found and found[0] == outer[0] and not axes_of(found[1]) & {*total.axes}:
                inside = total.on(total.operand / factor)
                return factor * node.on(node.operand / total * inside)
    return None


def filled_segments(node, knowledge):
    if not isinstance(node, Mul):
        return None
    sums = [f for f in node.args if isinstance(_in_definition(f, knowledge), Sum)]
    for total, other in permutations(sums, 2):
        total = _in_definition(total, knowledge)
        for hot in (f for f in Mul.make_args(total.operand) if isinstance(f, OneHot)):
            if hot.axis in total.axes or axes_of(hot.operand) != {*total.axes}:
                continue
            value = knowledge.fact(Sum.over(hot * other, [hot.axis]))
            if value is not None and is_number_or_size(value):
                return node / other * value
    return None


def counted_segments(node, knowledge):
    if not isinstance(node, Mul):
        return None
    for factor in node.args:
        choice, power = factor.as_base_exp()
        if not isinstance(choice, Piecewise) or len(choice.args) != 2:
            continue
        (_, condition), (other, _) = choice.args
        n = condition.args[0] if isinstance(condition, Eq) and condition.rhs == 0 else None
        count = _in_definition(n, knowledge) if n in node.args else None
        if not isinstance(count, Sum) or not isinstance(count.operand, OneHot):
            continue
        rest = node / factor / n
        totals = (_in_definition(f, knowledge) for f in Mul.make_args(rest))
        adds_up = (count.operand in Mul.make_args(t.operand) for t in totals if _alike(t, count))
        value = n * other**power
        if not value.has(n) and any(adds_up):
            return rest * value
    return None


def _alike(e: Expr, total: Sum) -> bool:
    return isinstance(e, Sum) and {*e.axes} == {*total.axes}


def _picked(e: Expr, knowledge) -> tuple[OneHot, Expr] | None:
    """The one-hot and the row of which ``e``, or the value of that name, is the entry."""
    return picked_of(_in_definition(e, knowledge))


def _in_definition(e: Expr, knowledge) -> Expr:
    """The definition of ``e`` if it is a value of the forward, else ``e``."""
    relations = knowledge.relations
    known = isinstance(e, Tensor) and e.name in relations.by_name
    return relations.unfolded(e) if known else e
