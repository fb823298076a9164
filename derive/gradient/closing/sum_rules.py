"""Rewrites of sums, and of reindexed terms: split, nested, and known by name or as facts.

The identities that these are, with the conditions under which they hold, stand in the table of
``identities.py``, which also says what a rewrite receives and returns.
"""

from __future__ import annotations

from sympy import Add, Mul

from derive.language.nodes import MatrixNode, Reshaping, Sum, Whole, summed
from derive.language.reading_at import At
from derive.language.symbols import axes_of
from derive.language.traversal import read_otherwise


def linear(node, knowledge):
    if isinstance(node, Sum) and isinstance(node.operand, Add):
        size = knowledge.relations.size
        return Add(*(summed(term, node.axes, size) for term in node.operand.args))
    return None


def move_out(node, knowledge):
    if not isinstance(node, Sum):
        return None
    carried = set(node.axes)
    factors = Mul.make_args(node.operand)
    outside = [f for f in factors if not axes_of(f) & carried]
    inside = [f for f in factors if axes_of(f) & carried]
    if not outside:
        return None
    return Mul(*outside) * summed(Mul(*inside), node.axes, knowledge.relations.size)


def nest(node, knowledge):
    if isinstance(node, Sum) and isinstance(node.operand, Sum):
        return Sum.over(node.operand.operand, node.axes + node.operand.axes)
    return None


def reshaped_back(node, knowledge):
    if isinstance(node, Reshaping) and isinstance(node.operand, Reshaping):
        inner = node.operand
        if type(node) is not type(inner) and node.axes == inner.into and node.into == inner.axes:
            return inner.operand
    return None


def reshaped_outside(node, knowledge):
    if not isinstance(node, Reshaping):
        return None
    factors = Mul.make_args(node.operand)
    outside = [f for f in factors if not axes_of(f) & set(node.binds)]
    if not outside or any(axes_of(f) & set(node.brings) for f in outside):
        return None
    return Mul(*outside) * node.on(Mul(*(f for f in factors if f not in outside)))


def read_outside(node, knowledge):
    if not isinstance(node, At) or node.fill != 0:
        return None
    factors = Mul.make_args(node.operand)
    outside = [f for f in factors if node.axis not in axes_of(f)]
    if not outside or len(outside) == len(factors):
        return None
    return Mul(*outside) * node.on(Mul(*(f for f in factors if f not in outside)))


def read_total(node, knowledge):
    if not isinstance(node, At) or node.fill != 0 or not isinstance(node.operand, Sum):
        return None
    total = node.operand
    if set(total.axes) & {node.axis, *node.brings}:
        return None
    return Sum.over(node.on(total.operand), total.axes)


def reshaped_total(node, knowledge):
    if not isinstance(node, Sum) or not isinstance(node.operand, Reshaping):
        return None
    inner = node.operand
    if not set(inner.brings) <= set(node.axes):
        return None
    others = [axis for axis in node.axes if axis not in inner.brings]
    if set(inner.binds) & set(others):
        return None
    return Sum.over(inner.operand, [*others, *inner.binds])


def recognise(node, knowledge):
    if not isinstance(node, (Sum, Whole)):
        return None
    known = knowledge.relations.recognitions
    return read_otherwise(node, known.get) if isinstance(node, MatrixNode) else known.get(node)


def known(node, knowledge):
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
