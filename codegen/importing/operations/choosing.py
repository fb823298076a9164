"""Comparisons, choices, and what a condition is as a factor."""

from __future__ import annotations

from codegen.importing.operations.pointwise import held, larger, smaller
from codegen.importing.operations.table import operation, rule, rules
from codegen.importing.values import CONDITION, LABEL, Value
from derive.torch_ops import trees
from derive.torch_ops.trees import ZERO, Tree


def _compare(relation: str):
    def of(r, x, other):
        known = trees.value_of(other.tree) if isinstance(other, Value) and not other.axes else None
        other = other if known is None or other.rank else known
        if isinstance(x, Value) and x.kind == LABEL and not isinstance(other, Value):
            return _counted_labels(r, x, other, relation)
        whole = relation in ("==", "!=") and not isinstance(other, Value) and other in (0, 1)
        known = _condition(x) if whole else None
        if known is not None:
            yes = (relation == "==") == bool(other)
            return known if yes else known.of(trees.opposite(known.tree))
        found = r.pointwise(lambda a, b: trees.compared(relation, a, b), x, other)
        return Value(found.tree, found.dims, CONDITION)

    return of


def _condition(x: Value) -> Value | None:
    """A condition, or numbers that are 1 where one holds, else 0."""
    if x.kind == CONDITION:
        return x
    tree = trees.condition_of(x.tree) if x.tree.kind == "choice" else None
    return None if tree is None else Value(tree, x.dims, CONDITION)


def _counted_labels(r, x: Value, number, relation: str) -> Value:
    """Labels beside the number that picks nothing: which of them count."""
    at = r.sizes.hint(r.sizes.plain(number))
    negative = at < 0 if relation in ("==", "!=") else at == 0
    if not negative or relation not in ("==", "!=", ">=", "<"):
        numbers = r.as_number(x)
        tree = trees.compared(relation, numbers.tree, r.number(number))
        return Value(tree, x.dims, CONDITION)
    if relation in ("==", "!="):
        r.ignore(x, at)
    else:
        r.ignore(x, None)
    counts = trees.compared("!=", trees.kept(x.tree), ZERO)
    return Value(counts if relation in ("!=", ">=") else trees.opposite(counts), x.dims, CONDITION)


for _name, _relation in {
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
}.items():
    rules[_name] = _compare(_relation)


def _logic(kind: str):
    def of(r, x, other):
        (a, b), dims = r.aligned(r.as_condition(x), r.as_condition(other))
        return Value(trees.joined(kind, a.tree, b.tree), dims, CONDITION)

    return of


for _name in ("logical_and", "bitwise_and", "__and__"):
    rules[_name] = _logic("and")
for _name in ("logical_or", "bitwise_or", "__or__"):
    rules[_name] = _logic("or")


@rule("logical_not", "bitwise_not")
def _not(r, x):
    condition = r.as_condition(x)
    return condition.of(trees.opposite(condition.tree))


@rule("where")
def _where(r, condition, x, other):
    return r.chosen(condition, x, other)


@rule("masked_fill")
def _masked_fill(r, x, mask, value):
    if x.kind == LABEL:  # those that are ignored, given a class: their one-hot is 0 as it is
        return x
    return r.chosen(mask, value, x)


@rule("clamp", "clip", "hardtanh", called="held")
def _clamp(r, x, min=None, max=None, min_val=-1, max_val=1):
    if isinstance(x, Value) and x.kind == LABEL and max is None and min == 0:
        return x
    if operation(r) == "hardtanh":
        return r.pointwise(_open_clamp(min_val, max_val), x)
    low, high = (None if b is None else b for b in (min, max))
    bounds = [b for b in (low, high) if b is not None]

    def of(x, *found):
        given = iter(found)
        return held(x, *(None if b is None else next(given) for b in (low, high)))

    return r.pointwise(of, x, *bounds)


def _open_clamp(low, high):
    """hardtanh passes no gradient at its edges."""
    bottom, top = trees.number(low), trees.number(high)

    def of(x: Tree) -> Tree:
        pairs = (bottom, trees.compared("<=", x, bottom)), (top, trees.compared(">=", x, top))
        return trees.choice(*pairs, otherwise=x)

    return of


@rule("clamp_min", called="held")
def _clamp_min(r, x, min):
    return (
        _clamp(r, x, min=min)
        if x.kind == LABEL
        else r.pointwise(lambda x, m: held(x, m, None), x, min)
    )


@rule("clamp_max", called="held")
def _clamp_max(r, x, max):
    return r.pointwise(lambda x, m: held(x, None, m), x, max)


@rule("minimum", called="smaller")
def _minimum(r, x, other):
    return r.pointwise(smaller, x, other)


@rule("maximum", called="larger")
def _maximum(r, x, other):
    return r.pointwise(larger, x, other)


@rule("mul", "multiply", called="product")
def _mul(r, x, other):
    """A condition as a factor is a choice."""
    for factor, condition in ((x, other), (other, x)):
        if isinstance(condition, Value) and condition.kind == CONDITION:
            if isinstance(factor, Value) and factor.kind == CONDITION:
                return _logic("and")(r, x, other)
            return r.chosen(condition, factor, 0)
    return r.pointwise(trees.product, x, other)
