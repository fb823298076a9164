"""A choice between two values by as few conditions as will do.

The gradient of a choice of choices asks for all of their conditions, nested: whether the ratio is
above its lower limit, whether what is then is below the upper one, and whether that is what was
taken. One comparison of these often says as much, or two of them. Such are tried on random points,
drawn so that many are ties; of those that agree there, the first that is proved to (``exact.py``)
is taken.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from itertools import combinations, product

from sympy import (
    Abs,
    Add,
    And,
    Basic,
    Expr,
    Function,
    Mul,
    Not,
    Or,
    Piecewise,
    expand,
    preorder_traversal,
)
from sympy.core.logic import fuzzy_or
from sympy.core.relational import Ge, Gt, Le, Lt, Relational

from derive.language.at_numbers import points_for, truth_at, value_at
from derive.language.choices import Branches, Compared, written_in
from derive.language.nodes import ArrayNode
from derive.language.symbols import is_constant, tensors_in
from derive.proof.zero.exact import is_zero

MOST_TESTS = 8  # comparisons of a choice that is looked into
MOST_ASKED = 6  # proofs for one choice
POINTS = 80  # at which conditions are compared before anything is proved
ORDERS = (Gt, Ge, Lt, Le)
AT_EDGE = {Gt: Ge, Ge: Gt, Lt: Le, Le: Lt}


def fewer_conditions(node, knowledge):
    if not isinstance(node, Piecewise) or node.atoms(ArrayNode):
        return None
    if (found := _asked_of_magnitudes(node)) is not None:
        return found
    plain = _in_choices(node)
    tests = sorted(plain.atoms(*ORDERS), key=lambda t: (t.count_ops(), str(t)))
    if len(plain.atoms(Relational)) == 1:
        return _asked_shorter(node, tests[0]) if tests and node.has(tests[0]) else None
    leaves = _leaves(plain)
    if len(tests) > MOST_TESTS or len(plain.atoms(Relational)) > len(tests) or len(leaves) != 2:
        return None
    definitions = _written_out(plain, knowledge.relations)
    for condition in _candidates(plain, leaves, tests, definitions):
        first, other = leaves
        found = Piecewise((first, condition), (other, True), evaluate=False)
        if is_zero(_in_choices(written_in(plain - found, definitions))):
            condition = _comparing(condition, definitions)
            return Piecewise((first, condition), (other, True), evaluate=False)
    return None


def _comparing(condition, definitions: dict[Expr, Expr]):
    """``condition`` with what a choice comes into `Compared`."""
    hidden = {
        test: test.func(*map(Compared, test.args), evaluate=False)
        for test in condition.atoms(Relational)
        if any(definitions.get(t, t).has(Piecewise) for t in test.free_symbols)
    }
    return condition.xreplace(hidden)


def of_magnitude(condition) -> Relational | None:
    """u > v or u < -v is Abs(u) > v; u <= v and u >= -v is Abs(u) <= v."""
    if not isinstance(condition, (And, Or)) or len(condition.args) != 2:
        return None
    if not all(isinstance(test, ORDERS) for test in condition.args):
        return None
    below, above = sorted(map(_solved, condition.args), key=lambda t: isinstance(t, (Gt, Ge)))
    upper, lower = (above, below) if isinstance(condition, Or) else (below, above)
    if not is_constant(upper.rhs) or type(lower) is not _turned(type(upper)):
        return None
    if upper.lhs != lower.lhs or expand(upper.rhs + lower.rhs) != 0:
        return None
    return type(upper)(Abs(upper.lhs), upper.rhs, evaluate=False)


def _asked_of_magnitudes(node: Piecewise) -> Expr | None:
    """The choice by magnitudes, where those are compared with positive values."""
    found = {c: of_magnitude(c) for _, c in node.args}
    if any(test is not None and test.rhs.is_positive for test in found.values()):
        pairs = [(v, c if found[c] is None else found[c]) for v, c in node.args]
        return Piecewise(*pairs, evaluate=False)
    return None


def _in_choices(e: Expr) -> Expr:
    """``e`` with plain choices in its conditions."""
    while e.has(Branches, Compared):
        e = e.replace(lambda n: isinstance(n, (Branches, Compared)), lambda n: n.choice)
    return e


def _asked_shorter(node: Piecewise, test: Relational) -> Expr | None:
    """The one comparison without what both of its sides have in common, and positive factors."""
    difference = expand(test.gts - test.lts)
    positive = Mul(*(f for f in Mul.make_args(difference) if f.is_positive))
    shorter = difference / positive
    if not shorter.free_symbols < test.free_symbols or not tensors_in(shorter):
        return None
    asked = test.func(shorter, 0) if test.gts == test.lhs else test.func(0, shorter)
    return node.xreplace({test: asked})


def _leaves(e: Expr) -> tuple[Expr, ...]:
    """The values that a choice of choices has, 0 first; none where they are no plain ones."""
    found = dict.fromkeys(_values(e))
    if any(value.has(Piecewise) for value in found):
        return ()
    return tuple(sorted(found, key=lambda value: value != 0))


def _values(e: Expr) -> Iterator[Expr]:
    if isinstance(e, Piecewise):
        for value, _ in e.args:
            yield from _values(value)
    elif e.has(Piecewise) and isinstance(e, (Add, Mul)):
        yield from (e.func(*args) for args in product(*map(_values, e.args)))
    else:
        yield e


def _written_out(e: Expr, relations) -> dict[Expr, Expr]:
    """Definitions of the values in ``e``, and of the values in these, that have no exponentials and
    the like.
    """
    found: dict[Expr, Expr] = {}
    new = list(tensors_in(e))
    while new:
        tensor = new.pop()
        known = relations.by_name.get(tensor.name)
        if tensor in found or known is None or known.expression.atoms(ArrayNode):
            continue
        definition = _in_choices(relations.unfolded(tensor))
        if not definition.atoms(Function) - definition.atoms(Piecewise, Abs):
            found[tensor] = definition
            new += tensors_in(definition)
    while any(e.free_symbols & found.keys() for e in found.values()):
        found = {t: written_in(e, found) for t, e in found.items()}
    return found


def _candidates(
    e: Expr, leaves: tuple[Expr, Expr], tests: Iterable[Relational], definitions: dict[Expr, Expr]
) -> Iterator[Expr]:
    """Conditions under which the first of the values may be chosen, the shortest first."""
    pool = _pool(tests)
    at_points = _Points(e, leaves, definitions)
    held = {test: at_points.truth(test) for test in pool}
    asked = 0
    least = sum(isinstance(node, Relational) for node in preorder_traversal(e))
    for count in (1, 2):
        if count >= least:
            return
        for chosen in combinations(pool, count):
            truth = [fuzzy_or(each) for each in zip(*(held[test] for test in chosen), strict=True)]
            if asked < MOST_ASKED and at_points.agrees(truth):
                asked += 1
                yield Or(*chosen) if count > 1 else chosen[0]


def _pool(tests: Iterable[Relational]) -> list[Relational]:
    """Comparisons to try: those that are there, of the values of the choices in them, with their
    edges and without, and their opposites.
    """
    plain: dict[Relational, None] = {}
    for test in tests:
        for left, right in product(_values(test.lhs), _values(test.rhs)):
            compared = test.func(left, right, evaluate=False)
            if tensors_in(compared) and not compared.has(Piecewise):
                plain[_solved(compared)] = None
    first = [*plain, *_open(Not(test) for test in plain)]
    edges = _open(AT_EDGE[type(test)](*test.args) for test in first)
    return [*dict.fromkeys([*first, *edges])]


def _open(tests: Iterable[Basic]) -> list[Relational]:
    """The tests that may hold or not: of a value known to be positive, x < 0 is false to SymPy."""
    return [_solved(test) for test in tests if isinstance(test, ORDERS)]


def _solved(test: Relational) -> Relational:
    """``test`` with entries on the left and scalars on the right, where it has entries."""
    difference = expand(test.lhs - test.rhs)
    scalars = Add(*(term for term in Add.make_args(difference) if is_constant(term)))
    content, entry = (difference - scalars).primitive()
    if isinstance(entry, Add):
        return test
    order = type(test)
    if entry.could_extract_minus_sign():
        content, entry, order = -content, -entry, _turned(order)
    return order(entry, -scalars / content, evaluate=False)


def _turned(order: type) -> type:
    return {Gt: Lt, Ge: Le, Lt: Gt, Le: Ge}[order]


class _Points:
    """The value chosen at random points at which there is one: the first, the second, or either as
    they are equal.
    """

    def __init__(self, e: Expr, leaves: tuple[Expr, Expr], definitions: dict[Expr, Expr]):
        whole = written_in(e, definitions)
        symbols = {s for part in (e, *leaves, *definitions.values()) for s in part.free_symbols}
        symbols = sorted(symbols - definitions.keys(), key=str)
        points = points_for([whole], symbols, POINTS, random.Random(0))
        self.points = [p | {t: value_at(d, p) for t, d in definitions.items()} for p in points]
        values = ([value_at(part, p) for p in self.points] for part in (e, *leaves))
        self.first = [None if a == b else got == a for got, a, b in zip(*values, strict=True)]

    def truth(self, test: Relational) -> list[bool | None]:
        return [truth_at(test, point) for point in self.points]

    def agrees(self, truth: list[bool | None]) -> bool:
        """Whether the first is chosen where this holds; an unknown truth agrees with neither."""
        return all(first in (None, held) for first, held in zip(self.first, truth, strict=True))
