"""What a forward computes, whatever its values are called: numbered by what it is made of, where
sums and products are those of all that the names in them stand for, and numbers stand apart.

Two spellings with the same `nodes` compute the same: what is left to the cost is which part of a
sum or a product has a name. Nothing is closed, so that it is a matter of milliseconds.
"""

from __future__ import annotations

from sympy import Add, Basic, Expr, Ge, Gt, Le, Lt, Mul, Pow, S, Symbol, exp
from sympy.core.operations import LatticeOp
from sympy.core.relational import Equality, Relational, Unequality

from derive.gradient.values.relations import relations_of
from derive.language.choices import Compared
from derive.language.diagonals import Identity
from derive.language.nodes import along
from derive.language.notation.definition import Definition
from derive.language.symbols import Along, Axis, Tensor, is_number_or_size

Powers = tuple[tuple[int, Expr], ...]  # of the nodes that a term is a product of
Terms = dict[Powers, Expr]  # with what is constant in each
UNORDERED = (LatticeOp, Equality, Unequality)
INEQUALITIES = (Ge, Gt, Le, Lt)


class Numbers:
    """A number for each node, the same one in all forwards that are compared."""

    def __init__(self) -> None:
        self.known: dict[tuple, int] = {}

    def of(self, *node: object) -> int:
        return self.known.setdefault(node, len(self.known))


def nodes(definition: Definition, numbers: Numbers) -> frozenset[int]:
    """All that the output is made of. Inputs and axes count in the order of their declaration."""
    graph = _Graph(definition, numbers)
    for output in definition.outputs:
        graph.node(output)
    return frozenset(graph.found)


class _Graph:
    def __init__(self, definition: Definition, numbers: Numbers):
        relations = relations_of(definition)
        self.numbers, self.found = numbers, set[int]()
        self.values = {v.tensor.name: relations.resolved(v.expression) for v in relations.values}
        given = [*definition.inputs, *(t for t, _ in definition.scalars)]
        self.given = {t.name: i for i, t in enumerate(given)}
        axes = dict.fromkeys([*(axis for t in given for axis in t.home), *definition.axes])
        self.sizes = {axis: Symbol(f"a{i}") for i, axis in enumerate(axes)}
        self.sums: dict[int, Terms] = {}
        self.known: dict[Basic, Terms] = {}

    def node(self, e: Basic) -> int:
        """The number of ``e`` as it is."""
        return self._sum(self.terms(e)) if isinstance(e, Expr) else self._operation(e)

    def terms(self, e: Expr) -> Terms:
        """``e`` as a sum of products, in which sums are not multiplied out."""
        if e not in self.known:
            self.known[e] = self._terms(e)
        return self.known[e]

    def _terms(self, e: Expr) -> Terms:
        if isinstance(e, Add):
            found: Terms = {}
            for term in e.args:
                for powers, constant in self.terms(term).items():
                    found[powers] = found.get(powers, S.Zero) + constant
            return {powers: c for powers, c in found.items() if c != 0}
        constant, powers = self.product(e)
        if [*powers.values()] == [1] and (whole := self.sums.get(next(iter(powers)))):
            return {p: constant * c for p, c in whole.items()}
        return {tuple(sorted(powers.items())): constant}

    def product(self, e: Expr) -> tuple[Expr, dict[int, Expr]]:
        """What is constant in ``e``, and the powers of what is not."""
        if is_number_or_size(e):
            return e.xreplace(self.sizes), {}
        if isinstance(e, Tensor) and e.name in self.values:
            return self.product(along(self.values[e.name], e))
        if isinstance(e, Mul):
            constant, powers = S.One, dict[int, Expr]()
            for own, found in map(self.product, e.args):
                constant *= own
                powers = {n: powers.get(n, S.Zero) + found.get(n, S.Zero) for n in powers | found}
            return constant, {n: power for n, power in powers.items() if power != 0}
        if isinstance(e, Pow) and not isinstance(e, exp) and e.exp.is_number:
            constant, powers = self.product(e.base)
            return constant**e.exp, {n: power * e.exp for n, power in powers.items()}
        if isinstance(e, Add):
            return self._whole(self.terms(e))
        return S.One, {self._operation(e): S.One}

    def _whole(self, terms: Terms) -> tuple[Expr, dict[int, Expr]]:
        """A sum as a number times one that is the same for all of its multiples."""
        first = min(terms)
        constant = terms[first]
        if len(terms) == 1:
            return constant, dict(first)
        terms = {powers: c / constant for powers, c in terms.items()}
        number = self._sum(terms)
        self.sums[number] = terms
        return constant, {number: S.One}

    def _sum(self, terms: Terms) -> int:
        return self._noted("sum", *sorted((powers, str(c)) for powers, c in terms.items()))

    def _operation(self, e: Basic) -> int:
        if isinstance(e, Axis):
            return self._noted("axis", str(self.sizes[e]))
        if isinstance(e, Along):
            return self._noted("axes", *sorted(map(self._operation, e.axes)))
        if isinstance(e, Identity):  # the same in either order
            return self._noted("identity", *sorted(map(self._operation, e.pair)))
        if isinstance(e, INEQUALITIES):
            return self._inequality(e)
        if isinstance(e, Tensor):
            return self._noted("given", self.given[e.name], *map(self._operation, e.axes))
        if not e.args:
            return self._noted(str(e))
        operands = [self.node(arg) for arg in e.args]
        if isinstance(e, UNORDERED):
            operands.sort()
        return self._noted(type(e).__name__, *operands)

    def _inequality(self, e: Relational) -> int:
        """``a <= b`` as ``b - a >= 0``, and both by the one of ``a - b`` and ``b - a``."""
        a, b = (side.args[0] if isinstance(side, Compared) else side for side in e.args)
        constant, powers = self.product(Add(a, -b, evaluate=False))
        kind = e.func if not constant.is_negative else e.reversed.func
        return self._noted(kind.__name__, str(abs(constant)), *sorted(powers.items()))

    def _noted(self, *node: object) -> int:
        number = self.numbers.of(*node)
        self.found.add(number)
        return number
