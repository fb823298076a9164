"""What the emitted forward computes: the output and the values that the backward reads, in a stable
form.

In: a `ClosedForm`. Out: the statements to compute, in order. Unneeded statements are left out; a
part that the backward reads, or that is written twice, keeps its name. Four rewritings keep the
numbers good:

- an exponential that overflows is taken of a difference to the largest, where that cancels
  (``scaled.py``); the line is proved equal to its definition on small batches, or left as it is;
- a mean square minus a squared mean is the mean square about the mean, proved likewise;
- logarithms are split (``logarithms.py``);
- a difference that sums to zero, such as ``x - mean``, is centred once more. The rounded mean of
  numbers near 1e4 is off by up to 5e-4 in float32, and every entry of the difference with it; what
  the difference sums to is that error.
"""

from __future__ import annotations

from collections import Counter

from sympy import Add, Dummy, Expr, Mul, Piecewise, Pow, exp, expand

from derive.choices import written_in
from derive.closed_form import ClosedForm
from derive.exact import is_zero
from derive.facts import Facts, along
from derive.logarithms import picked_logarithms, split_logarithms
from derive.nodes import ArrayNode, OneHot, Peak, Reduction, SubtractedPeak, Sum
from derive.parts import Value
from derive.proof import batches_of
from derive.relations import Relations
from derive.small_batch import SmallBatch
from derive.symbols import MINUS_INFINITY, Tensor, axes_of, tensors_in


def forward_plan(form: ClosedForm) -> tuple[Value, ...]:
    """The statements that the forward function computes, the output among them."""
    relations = form.relations
    facts = Facts(relations)
    needed = {t.name for t in form.saved if t.role == "statement"} | {form.definition.output.name}
    values = [_stable(value, facts) for value in relations.values]
    values = _needed(values, needed)
    parts = {part.tensor.name for part in relations.parts}
    values = _inlined(values, lambda v, uses: v.tensor.name in parts and uses == 1, needed)
    values = _inlined(values, lambda v, uses: uses == 1 and _only_picked(v.tensor, values), needed)
    values = [_with_its_readers(value, values) for value in values]
    return tuple(line for value in values for line in _centred(value, facts))


def _with_its_readers(value: Value, values: list[Value]) -> Value:
    """The value; a peak that none of ``values`` adds is one that is subtracted."""
    if not isinstance(value.expression, Peak):
        return value
    if any(_adds(v.expression, value.tensor.name) for v in values):
        return value
    return Value(value.tensor, SubtractedPeak(*value.expression.args))


def _adds(e: Expr, name: str) -> bool:
    """Whether ``e`` reads the tensor other than as a term that is subtracted."""
    if isinstance(e, Tensor):
        return e.name == name
    terms = (a for a in e.args if not (isinstance(e, Add) and isinstance(-a, Tensor)))
    return any(_adds(a, name) for a in terms)


def _stable(value: Value, facts: Facts) -> Value:
    """The value without what overflows or loses its digits, if that is proved to be the same."""
    relations = facts.relations
    e = relations.scales.safe(picked_logarithms(value.expression, relations))
    e = _about_the_mean(e, relations)
    if e != value.expression:
        e = e if _are_equal(value.expression, e, facts) else value.expression
    return Value(value.tensor, split_logarithms(e, relations))


def _about_the_mean(e: Expr, relations: Relations) -> Expr:
    """Sum(a**2, N) = Sum((a - m)**2, N) + N*m**2 for the mean m of a, where N*m**2 cancels.

    The difference of a mean square and a squared mean has no digit left where the mean is large.
    """
    for total in sorted(e.atoms(Sum), key=lambda node: node.sort_key()):
        if not isinstance(total.operand, Pow) or total.operand.exp != 2:
            continue
        entry, count = total.operand.base, Mul(*map(relations.size, total.axes))
        along_axes = Sum.over(entry, total.axes)
        mean = relations.recognitions.get(along_axes, (along_axes, None))[0] / count
        squares = Dummy("squares", real=True)
        before = e.xreplace({total: squares})
        after = expand(e.xreplace({total: squares + count * mean**2}))
        if after.count_ops() < before.count_ops():
            e = after.xreplace({squares: Sum.over((entry - mean) ** 2, total.axes)})
    return e


def _are_equal(a: Expr, b: Expr, facts: Facts) -> bool:
    """Whether two forms of a line are proved equal: what differs in them, or else the whole."""
    if isinstance(a, (Add, Mul)) and isinstance(b, type(a)):
        left = a.func(*(arg for arg in a.args if arg not in b.args))
        right = a.func(*(arg for arg in b.args if arg not in a.args))
        if left != a and _are_equal(left, right, facts):
            return True
    if isinstance(a, Sum) and isinstance(b, Sum) and a.axes == b.axes:
        return _are_equal(a.operand, b.operand, facts) or _is_zero(a - b, facts)
    return a == b or _is_zero(a - b, facts)


def _centred(value: Value, facts: Facts) -> list[Value]:
    """The value, and a second line that centres it again where its sum is known to be zero."""
    e, tensor = value.expression, value.tensor
    if not isinstance(e, Add):
        return [value]
    missing = facts.centred_along(tensor)
    if not missing or not _is_zero(Sum.over(e, missing), facts):
        return [value]
    count = Mul(*(facts.relations.size(axis) for axis in missing))
    return [value, Value(tensor, tensor - Sum.over(tensor, missing) / count)]


def _is_zero(total: Expr, facts: Facts) -> bool:
    """The forward relies on this fact, so it is proved as a gradient is: on explicit scalars.

    One entry of each kind is enough, as it is for a gradient. Only the definitions at hand are
    used: of what holds an exponential, then of all that ``total`` reads as well, then of what those
    read. Everything before them is free, so that a line of a long forward is as quick to prove as
    that of a short one; and so is a `Peak`, for which any number does.
    """
    definition, relations = facts.relations.definition, facts.relations
    parts = {part.tensor.name: part.expression for part in relations.parts}
    parts = {name: e for name, e in parts.items() if not isinstance(e, Peak)}
    while found := [t for t in tensors_in(total) if t.name in parts]:
        total = written_in(total, {t: along(parts[t.name], t) for t in found})
    total = total.replace(lambda e: isinstance(e, exp), _of_minus_infinity)
    axes = definition.in_order(axes_of(total))
    sizes_of_batches = batches_of(definition)[:2]
    exponential = set(relations.scales.known)
    read = {t.name for t in tensors_in(total)}
    before = {
        t.name
        for name in read & definition.by_name.keys()
        for t in tensors_in(definition.by_name[name].expression)
    }
    for written_out in (exponential, exponential | read, exponential | read | before):
        free = frozenset(definition.by_name.keys() - written_out)
        batches = [SmallBatch(definition, sizes, free) for sizes in sizes_of_batches]
        if all(
            is_zero(batch.scalar(total, axes, i))
            for batch in batches
            for i in batch.representatives(axes, total)
        ):
            return True
    return False


def _of_minus_infinity(e: exp) -> Expr:
    """exp(Piecewise((k, c), (-oo, True)) + u) = Piecewise((exp(k + u), c), (0, True))."""
    for choice in (term for term in Add.make_args(e.exp) if isinstance(term, Piecewise)):
        if any(value == MINUS_INFINITY for value, _ in choice.args):
            rest = e.exp - choice
            return Piecewise(
                *((0 if v == MINUS_INFINITY else exp(v + rest), c) for v, c in choice.args)
            )
    return e


def _needed(values: list[Value], needed: set[str]) -> list[Value]:
    kept: list[Value] = []
    needed = set(needed)
    for value in reversed(values):
        if value.tensor.name in needed:
            kept.append(value)
            needed |= {t.name for t in tensors_in(value.expression)}
    return kept[::-1]


def _inlined(values: list[Value], wanted, needed: set[str]) -> list[Value]:
    """``values`` with those that are ``wanted`` (by value and number of uses) written where they
    are used.
    """
    uses = Counter(t.name for v in values for t in _occurrences(v.expression))
    gone = {
        v.tensor.name: v
        for v in values
        if v.tensor.name not in needed and wanted(v, uses[v.tensor.name])
    }
    result = []
    for value in values:
        e = value.expression
        while found := [t for t in tensors_in(e) if t.name in gone]:
            e = written_in(e, {t: along(gone[t.name].expression, t) for t in found})
        if value.tensor.name not in gone:
            result.append(Value(value.tensor, e))
    return result


def _occurrences(e: Expr) -> list[Tensor]:
    return [e] if isinstance(e, Tensor) else [t for arg in e.args for t in _occurrences(arg)]


def _only_picked(tensor: Tensor, values: list[Value]) -> bool:
    """Whether one entry in each row is all that is ever read of it: then the others need not be
    computed.
    """
    readers = [v.expression for v in values if tensor in tensors_in(v.expression)]
    definition = next(v.expression for v in values if v.tensor == tensor)
    return not definition.has(Reduction) and all(
        _is_picked(e, tensor, frozenset()) for e in readers
    )


def _is_picked(e: Expr, tensor: Tensor, hot: frozenset) -> bool:
    if e == tensor:
        return bool(hot & set(tensor.axes))
    if isinstance(e, OneHot):
        return True
    if isinstance(e, ArrayNode):
        hot = hot - set(e.binds)
    if isinstance(e, Sum):
        hot |= {
            f.axis for f in Mul.make_args(e.operand) if isinstance(f, OneHot) and f.axis in e.axes
        }
    return all(_is_picked(arg, tensor, hot) for arg in e.args if tensor in tensors_in(arg))
