"""The parts of a statement: a sum, a reduction, a root, a quotient or a reciprocal inside of it is
a value of its own, although nobody named it (``x - mean`` in ``(x - mean) * inv_std``).

Parts are given names, so that nothing is multiplied out that belongs together: ``Sum(dy*(x -
mean))`` must not become the difference of two large numbers. Their gradients are derived and proved
as those of the user's statements are, so that what comes out depends little on what has a name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sympy import Add, Basic, Dummy, Expr, Function, Mul, Piecewise, Pow, exp
from sympy.core.relational import Relational

from derive.gradient.values.graph import ForwardNames, ValueGraph
from derive.gradient.values.naming import NamedValue, reductions_in, shortened, with_names
from derive.language.called import names_of
from derive.language.choices import Branches, Compared, as_choices
from derive.language.nodes import Max, OneHot, Reduction, Reindexing, Sum, Whole
from derive.language.notation.definition import Definition, Statement
from derive.language.operations import is_evaluated
from derive.language.symbols import Tensor, axes_of, is_constant, is_number_or_size, tensors_in


class Parts:
    """Finds the parts of one statement after the other, and names them."""

    def __init__(self, definition: Definition):
        self.definition = definition
        self.names = ForwardNames(definition)
        self.graph = ValueGraph(definition, self.names)
        self.found: dict[Expr, Tensor] = {}
        self.statement = ""
        met = Counter(f for e in self.graph.spelled.values() for f in _functions(e))
        self.repeated = {e for e, count in met.items() if count > 1}

    def top(self, statement: Statement) -> Expr:
        """The expression of ``statement`` with everything below its top under a name."""
        self.statement = statement.name
        for tensor in self.graph.made[statement.name].values():
            whole = self.topped(self.graph.spelled[tensor.name])
            self.found[self.found.get(whole, whole)] = tensor
        other = self.graph.aliases.get(statement.name)
        return self.topped(self.graph.spelled[statement.name]) if other is None else other

    def topped(self, e: Expr) -> Expr:
        if isinstance(e, Pow):
            return e.func(self.inside(e.base), e.exp)
        return e.func(self.inside(e.args[0])) if isinstance(e, exp) else self.rebuilt(e)

    def inside(self, e: Expr) -> Expr:
        """Name ``e`` if it is a sum, a reduction or a root that is an operand."""
        if not e.args or not tensors_in(e):
            return e
        e = self.rebuilt(e)
        root = isinstance(e, Pow) and e.exp.is_Rational and not e.exp.is_Integer
        is_part = (isinstance(e, (Add, Reduction, Whole)) or root) and not is_constant(e)
        return self.part(e) if is_part else e

    def reciprocal(self, e: Pow) -> Expr:
        """Name the reciprocal of a divisor with a function in it: where the function overflows,
        that is 0, and so is the product.
        """
        e = e.func(self.rebuilt(e.base), e.exp)
        return self.part(1 / e.base) ** -e.exp

    def rebuilt(self, e: Expr) -> Expr:
        if isinstance(e, Reduction):
            return e.on(self.rebuilt(e.operand))
        if isinstance(e, (Reindexing, Whole)):
            return e.through(self.inside)
        if isinstance(e, Add):
            return self.sum_of_terms(self.with_own_sums(e))
        if isinstance(e, Mul):
            return self.product(e)
        if _is_reciprocal(e):
            return self.reciprocal(e)
        if isinstance(e, (Pow, Function)) and not e.is_Piecewise:
            inside = self.inside if isinstance(e, Pow) else self.argument
            operands = [inside(arg) for arg in e.args]
            if isinstance(e, Pow) and self._is_of_a_reduction(operands[0]):
                operands[0] = self.part(operands[0])
            rebuilt = e.func(*operands)
            return self.part(rebuilt) if e in self.repeated else rebuilt
        if e.is_Piecewise:
            rebuilt = with_names(self.chosen(e), self.found_values())
            return self.part(rebuilt) if e in self.repeated else rebuilt
        return e

    def sum_of_terms(self, e: Add) -> Expr:
        """Each term with its parts; and terms that are together a part inside of another one, as
        in ``x - m - log(Sum(exp(x - m), N))``, by its name.
        """
        known, terms = {*self.found}, []
        for term in e.args:
            if isinstance(term, Mul):
                terms.append(self.product(term))
            else:
                terms.append(self.inside(term) if isinstance(term, Max) else self.rebuilt(term))
        whole = e.func(*terms)
        for part, tensor in self.found.items():
            if part not in known and isinstance(part, Add):
                whole = shortened(whole, part, tensor) or whole
        return whole

    def _is_of_a_reduction(self, e: Expr) -> bool:
        """Whether ``e`` is a function of a reduction: smaller than what it is read in."""
        if not isinstance(e, Function) or not is_evaluated(e) or not isinstance(e.args[0], Tensor):
            return False
        name = e.args[0].name
        known = {t.name: d for d, t in self.found.items()} | self.graph.spelled
        return isinstance(known.get(name), Reduction)

    def with_own_sums(self, e: Add) -> Expr:
        """``u - Sum(u, N)/N`` where ``u`` is a sum, whose terms stand among those of the whole."""
        for total in sorted(reductions_in(e), key=lambda node: node.sort_key()):
            own = total.operand
            if isinstance(own, Add) and {*own.args} < {*e.args}:
                part = self.part(self.rebuilt(own))
                rest = Add(*(term for term in e.args if term not in own.args))
                e = part + rest.xreplace({total: total.on(part)})
        return e

    def chosen(self, e: Basic) -> Basic:
        """Name the parts of a choice: reductions in its branches, and all that its conditions
        compare, since these are computed whatever is chosen.
        """
        if isinstance(e, (Reduction, Whole)):
            return self.inside(as_choices(e))
        if isinstance(e, Relational) and not e.has(Branches, Compared, Piecewise):
            return e.func(*map(self.inside, e.args))
        if not e.args or not e.has(Reduction, Whole, Relational):
            return e
        return e.func(*map(self.chosen, e.args))

    def product(self, e: Expr) -> Expr:
        """Name the sums in a product, and a quotient beside other factors; a lone reduction with
        constant factors stays.
        """
        quotient, rest = _quotient_apart(e)
        if rest:
            return e.func(self.part(self.product(quotient)), *map(self.inside, rest))
        if any(map(_is_reciprocal, e.args)):
            return e.func(
                *(self.reciprocal(f) if _is_reciprocal(f) else self.inside(f) for f in e.args)
            )
        lone = [f for f in e.args if not is_number_or_size(f)]
        if len(lone) == 1 and isinstance(lone[0], (Sum, Whole)):
            return e.func(*(self.rebuilt(f) for f in e.args))
        factors = map(self.inside, e.args)
        if len(lone) == 1:
            return e.func(*factors)
        return e.func(*(self.part(f) if self._is_of_a_reduction(f) else f for f in factors))

    def argument(self, e: Expr) -> Expr:
        """Name the parts of a function's argument: there a reduction among the factors is a part
        too, and so is a quotient of computed values.
        """
        e = self.inside(e)
        if not isinstance(e, Mul):
            return e
        e = e.func(*map(self.inside, e.args))
        computed = not any(map(_is_argument, e.args))
        return self.part(e) if computed and _is_quotient(e) else e

    def part(self, e: Expr) -> Tensor:
        if e in self.found or isinstance(e, Tensor):
            return self.found.get(e, e)
        same = with_names(e, self.found_values())
        is_multiple = type(same) is not type(e) or isinstance(e, Mul)
        is_power = isinstance(e, Pow) and same.as_base_exp()[1] != e.exp
        if same != e and (is_multiple or is_power):  # of another
            return same
        return self.found.get(same) or self.named(same, names_of(same, self.statement))

    def scaled(self, e: Expr, names: Iterable[str]) -> Tensor:
        """A followed value ``e``, one for all that are equal."""
        known = [t for expression, t in self.found.items() if expression == e]
        known += [s.tensor for s in self.definition.statements if s.expression == e]
        return known[0] if known else self.named(e, names)

    def named(self, e: Expr, names: Iterable[str]) -> Tensor:
        """Make a new value ``e``, under the first of the ``names`` that is free."""
        tensor = self.found[e] = self.names.tensor(e, names)
        return tensor

    def found_values(self) -> tuple[NamedValue, ...]:
        return tuple(NamedValue(tensor, e) for e, tensor in self.found.items())


def _functions(e: Basic) -> list[Expr]:
    """Every exponential, and every choice between exponentials, as often as ``e`` contains it."""
    taken = isinstance(e, exp) or (isinstance(e, Piecewise) and e.has(exp))
    own = [e] if taken and not is_constant(e) else []
    return own + [found for arg in e.args for found in _functions(arg)]


def _is_quotient(e: Expr) -> bool:
    """Whether ``e`` is divided by a value."""
    powers = e.as_powers_dict()
    return any(
        power.is_negative and tensors_in(base) and not is_constant(base)
        for base, power in powers.items()
    )


def _quotient_apart(e: Mul) -> tuple[Expr, list[Expr]]:
    """Split a product into its quotient, numerator and denominators, and the other factors, numbers
    included: none where the quotient is everything.

    The numerator is as large as the divisor, no index, and no argument if there is another factor.
    """
    below = [f for f in e.args if isinstance(f, Pow) and _is_quotient(f)]
    axes = axes_of(Mul(*below))
    rows = [f for f in e.args if f not in below and not isinstance(f, OneHot)]
    above = [f for f in rows if axes <= axes_of(f) and not is_constant(f)]
    above = [f for f in above if not _is_argument(f)] or above
    rest = [f for f in e.args if f not in (*below, *above)]
    apart = below and above and not all(map(is_number_or_size, rest))
    return (Mul(*above, *below), rest) if apart else (e, [])


def _is_argument(e: Expr) -> bool:
    """Whether ``e`` is an argument of the forward, however it is counted."""
    if isinstance(e, Reindexing):
        return _is_argument(e.operand)
    return isinstance(e, Tensor) and e.role != "statement"


def _is_reciprocal(e: Expr) -> bool:
    """Whether ``e`` divides by a sum with a function of data in it, entry by entry."""
    if not (isinstance(e, Pow) and e.exp.is_Integer and e.exp.is_negative) or is_constant(e):
        return False
    functions = {f for f in e.base.atoms(Function) if is_evaluated(f)}
    arguments = {f: Dummy() for f in functions}
    own = not e.base.xreplace(arguments).has(Reduction)
    return isinstance(e.base, Add) and own and bool(functions)
