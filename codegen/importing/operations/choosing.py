"""Comparisons, choices, and conditions used as factors."""

from __future__ import annotations

from codegen.importing.operations.table import rule, rules
from codegen.importing.values import CONDITION, LABEL, TreeValue
from derive.language.torch_ops import trees
from derive.language.torch_ops.trees import ZERO


def _compare(relation: str):
    def of(r, x, other):
        known = (
            trees.value_of(other.tree) if isinstance(other, TreeValue) and not other.axes else None
        )
        other = other if known is None or other.rank else known
        if isinstance(x, TreeValue) and x.kind == LABEL and not isinstance(other, TreeValue):
            return _counted_labels(r, x, other, relation)
        whole = relation in ("==", "!=") and not isinstance(other, TreeValue) and other in (0, 1)
        known = _condition(x) if whole else None
        if known is not None:
            yes = (relation == "==") == bool(other)
            return known if yes else known.of(trees.opposite(known.tree))
        found = r.pointwise(lambda a, b: trees.compared(relation, a, b), x, other)
        return TreeValue(found.tree, found.dims, CONDITION)

    return of


def _condition(x: TreeValue) -> TreeValue | None:
    """The condition itself, or the condition behind an indicator of 0 and 1."""
    if x.kind == CONDITION:
        return x
    tree = trees.condition_of(x.tree) if x.tree.kind == "choice" else None
    return None if tree is None else TreeValue(tree, x.dims, CONDITION)


def _counted_labels(r, x: TreeValue, number, relation: str) -> TreeValue:
    """Labels compared with ignore_index: the mask of those that count."""
    at = r.sizes.hint(r.sizes.plain(number))
    negative = at < 0 if relation in ("==", "!=") else at == 0
    if not negative or relation not in ("==", "!=", ">=", "<"):
        numbers = r.shapes.as_number(x)
        tree = trees.compared(relation, numbers.tree, r.shapes.number(number))
        return TreeValue(tree, x.dims, CONDITION)
    if relation in ("==", "!="):
        r.ignore(x, at)
    else:
        r.ignore(x, None)
    counts = trees.compared("!=", trees.kept(x.tree), ZERO)
    return TreeValue(
        counts if relation in ("!=", ">=") else trees.opposite(counts), x.dims, CONDITION
    )


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
        (a, b), dims = r.shapes.aligned(r.shapes.as_condition(x), r.shapes.as_condition(other))
        return TreeValue(trees.joined(kind, a.tree, b.tree), dims, CONDITION)

    return of


for _name in ("logical_and", "bitwise_and", "__and__"):
    rules[_name] = _logic("and")
for _name in ("logical_or", "bitwise_or", "__or__"):
    rules[_name] = _logic("or")


@rule("logical_not", "bitwise_not")
def _not(r, x):
    condition = r.shapes.as_condition(x)
    return condition.of(trees.opposite(condition.tree))


@rule("mul", "multiply", called="product")
def _mul(r, x, other):
    """Multiplication by a condition is a choice."""
    for factor, condition in ((x, other), (other, x)):
        if isinstance(condition, TreeValue) and condition.kind == CONDITION:
            if isinstance(factor, TreeValue) and factor.kind == CONDITION:
                return _logic("and")(r, x, other)
            return r.shapes.chosen(condition, factor, 0)
    return r.pointwise(trees.product, x, other)
