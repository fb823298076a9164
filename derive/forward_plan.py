"""What the emitted forward computes: the output and the values that the backward reads, in a stable form.

In: a `ClosedForm`. Out: the statements to compute, in order. Unneeded statements are left out; a part that the
backward reads, or that is written twice, keeps its name; a logarithm of products and exponentials is split, so that
``log(exp(z)/s)`` is ``z - log(s)`` and stays finite.
"""

from __future__ import annotations

from collections import Counter

from sympy import Add, Expr, Mul, Pow, exp, log

from derive.closed_form import ClosedForm
from derive.facts import along
from derive.notation import OneHot, Reduction, Sum, Tensor, axes_of, tensors_in
from derive.relations import Relations, Value


def forward_plan(form: ClosedForm) -> tuple[Value, ...]:
    """The statements that the forward function computes, the output among them."""
    relations = form.relations
    needed = {t.name for t in form.saved if t.role == "statement"} | {form.definition.output.name}
    values = [Value(v.tensor, _split_logarithms(v.expression, relations)) for v in relations.values]
    values = _needed(values, needed)
    parts = {part.tensor.name for part in relations.parts}
    values = _inlined(values, lambda v, uses: v.tensor.name in parts and uses == 1, needed)
    return tuple(_inlined(values, lambda v, uses: uses == 1 and _only_picked(v.tensor, values), needed))


def _needed(values: list[Value], needed: set[str]) -> list[Value]:
    kept: list[Value] = []
    needed = set(needed)
    for value in reversed(values):
        if value.tensor.name in needed:
            kept.append(value)
            needed |= {t.name for t in tensors_in(value.expression)}
    return kept[::-1]


def _inlined(values: list[Value], wanted, needed: set[str]) -> list[Value]:
    """``values`` with those that are ``wanted`` (by value and number of uses) written where they are used."""
    uses = Counter(t.name for v in values for t in _occurrences(v.expression))
    gone = {
        v.tensor.name: v for v in values if v.tensor.name not in needed and wanted(v, uses[v.tensor.name])
    }
    result = []
    for value in values:
        e = value.expression
        while found := [t for t in tensors_in(e) if t.name in gone]:
            e = e.xreplace({t: along(gone[t.name].expression, t) for t in found})
        if value.tensor.name not in gone:
            result.append(Value(value.tensor, e))
    return result


def _occurrences(e: Expr) -> list[Tensor]:
    return [e] if isinstance(e, Tensor) else [t for arg in e.args for t in _occurrences(arg)]


def _only_picked(tensor: Tensor, values: list[Value]) -> bool:
    """Whether one entry in each row is all that is ever read of it: then the others need not be computed."""
    readers = [v.expression for v in values if tensor in tensors_in(v.expression)]
    definition = next(v.expression for v in values if v.tensor == tensor)
    return not definition.has(Reduction) and all(_is_picked(e, tensor, frozenset()) for e in readers)


def _is_picked(e: Expr, tensor: Tensor, hot: frozenset) -> bool:
    if e == tensor:
        return bool(hot & set(tensor.axes))
    if isinstance(e, OneHot):
        return True
    if isinstance(e, Sum):
        hot = hot - set(e.axes)
        hot |= {f.axis for f in Mul.make_args(e.operand) if isinstance(f, OneHot) and f.axis in e.axes}
    return all(_is_picked(arg, tensor, hot) for arg in e.args if tensor in tensors_in(arg))


def _split_logarithms(e: Expr, relations: Relations) -> Expr:
    """log(a*b) = log(a) + log(b) and log(exp(z)) = z, for positive a and b, where that removes an exponential."""

    def split(node: Expr) -> Expr:
        parts = _logarithm(node.args[0], relations)
        return node if parts is None else parts

    return e.replace(lambda node: isinstance(node, log), split)


def _logarithm(e: Expr, relations: Relations) -> Expr | None:
    """The logarithm of ``e`` without the exponentials in it, or None where there are none to remove."""
    if isinstance(e, exp):
        return e.exp
    if isinstance(e, Tensor) and e.name in relations.by_name and e.is_positive:
        return _logarithm(relations.unfolded(e), relations)
    if isinstance(e, Mul) and all(factor.is_positive for factor in e.args):
        parts = [(factor, _logarithm(factor, relations)) for factor in e.args]
        if all(part is None for _, part in parts):
            return None
        return Add(*(_plain_logarithm(f, relations) if part is None else part for f, part in parts))
    if isinstance(e, Pow) and e.base.is_positive:
        inner = _logarithm(e.base, relations)
        return None if inner is None else e.exp * inner
    return None


def _plain_logarithm(e: Expr, relations: Relations) -> Expr:
    """log(s**-1) = -log(s), also where the power has a name."""
    if isinstance(e, Tensor) and e.name in relations.by_name:
        definition = relations.unfolded(e)
        if isinstance(definition, Pow) and isinstance(definition.base, Tensor) and axes_of(definition) == axes_of(e):
            return definition.exp * log(definition.base)
    return e.exp * log(e.base) if isinstance(e, Pow) and e.base.is_positive else log(e)
