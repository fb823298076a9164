"""Choices between values, and choices in the conditions of others, which SymPy handles badly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from sympy import (
    Add,
    And,
    Basic,
    Derivative,
    DiracDelta,
    Eq,
    Expr,
    Function,
    Integer,
    Ne,
    Not,
    Or,
    Piecewise,
    S,
    Subs,
    Symbol,
    exp,
)
from sympy.core.relational import Relational
from sympy.functions.elementary.piecewise import ExprCondPair

from derive.language.array_node import ArrayNode
from derive.language.symbols import MINUS_INFINITY, Tensor
from derive.language.sympy_mended import mend

mend()


class Branches(Function):
    """``Branches(a, condition, b)`` is ``Piecewise((a, condition), (b, True))``, in a condition:
    the values of a choice, a condition after every one but the last.

    SymPy turns a condition on a choice into one on every branch, (x > w and x > 1) or (x <= w and
    w > 1), immediately and again for every choice in it: three nested levels take minutes, or
    exhaust the stack. In this form it sees none.
    """

    is_real = True

    @classmethod
    def eval(cls, *args):
        pairs = [*zip(args[::2], args[1::2], strict=False), (args[-1], S.true)]
        met = []
        for value, condition in pairs:
            if condition == False:  # noqa: E712  # of SymPy's
                continue
            met.append((value, condition))
            if condition == True:  # noqa: E712
                break
        if len(met) < len(pairs):
            return cls.of(met)
        return None

    @classmethod
    def of(cls, pairs) -> Expr:
        """Build the choice from pairs of value and condition, of which the last one is true."""
        flat = [part for pair in pairs for part in pair][:-1]
        return cls(*flat) if len(flat) > 1 else flat[0]

    @property
    def choice(self) -> Piecewise:
        """The equivalent `Piecewise`."""
        return Piecewise(*zip(self.args[::2], self.args[1::2], strict=False), (self.args[-1], True))

    def fdiff(self, argindex=1):
        raise ValueError("what a condition compares has no derivative")  # nobody asks for one

    def _sympystr(self, printer):
        return printer._print(self.choice)


class Compared(Function):
    """``Compared(e)`` is ``e``, in a condition: every choice in it becomes `Branches`, also those
    that appear when a symbol is replaced by its definition.
    """

    nargs = 1
    is_real = True

    @classmethod
    def eval(cls, e):
        plain = e.replace(lambda n: isinstance(n, Piecewise), lambda n: Branches.of(n.args))
        if not plain.free_symbols:
            return plain
        return None if plain == e else cls(plain)

    @property
    def choice(self) -> Expr:
        return self.args[0]

    def fdiff(self, argindex=1):
        return Integer(1)

    def _sympystr(self, printer):
        return printer._print(self.args[0])


def replaced_finally(e: Expr) -> Expr:
    """``e`` without `Compared`, once no symbol in it will be replaced by a choice."""
    return e.replace(lambda n: isinstance(n, Compared), lambda n: n.choice)


def comparing(e: Expr, nested: Mapping[str, int]) -> Expr:
    """``e`` with the compared sides in its conditions as `Compared`, where they are choices, or
    computed from statements that are, according to ``nested`` of `nesting`.
    """
    tests = {}
    for test in {test for choice in e.atoms(Piecewise) for test in choice.atoms(Relational)}:
        sides = [Compared(s) if _is_choice(s, nested) else s for s in test.args]
        if sides != [*test.args]:
            tests[test] = test.func(*sides, evaluate=False)
    return e.xreplace(tests) if tests else e


def _is_choice(e: Expr, nested: Mapping[str, int]) -> bool:
    """Whether ``e`` chooses; SymPy copes with one choice inside an array node."""
    if isinstance(e, ArrayNode):
        return nesting(e, nested) > 1
    if isinstance(e, (Piecewise, Tensor)):
        return nesting(e, nested) > 0
    return any(_is_choice(arg, nested) for arg in e.args)


def nesting(e: Expr, nested: Mapping[str, int]) -> int:
    """The depth of nested choices in ``e``; ``nested`` has those of earlier statements by name."""
    if isinstance(e, Tensor):
        return nested.get(e.name, 0)
    if isinstance(e, Piecewise):
        return 1 + max(nesting(branch.expr, nested) for branch in e.args)
    return max((nesting(arg, nested) for arg in e.args if isinstance(arg, Expr)), default=0)


def without_gap(choice: Piecewise) -> Expr:
    """Piecewise((a, t != v), (b, True)) = a, where a is a polynomial in t that is b at t = v: there
    is no gap to fill. Other choices are returned unchanged.
    """
    if len(choice.args) != 2:
        return choice
    (first, condition), (last, _) = choice.args
    if isinstance(condition, Eq):
        first, last, condition = last, first, Not(condition)
    if not isinstance(condition, Ne) or not condition.lhs.is_Symbol:
        return choice
    t, v = condition.args
    continues = first.is_polynomial(t) and first.xreplace({t: v}) == last
    return first if continues else choice


def branches_of(choice: Piecewise) -> Iterator[tuple[Expr, frozenset[Basic]]]:
    """The values of a choice, each with the conditions under which it is chosen."""
    passed: set[Basic] = set()
    for value, condition in choice.args:
        yield value, frozenset(passed | ({condition} - {S.true}))
        passed.add(Not(condition))


def almost_everywhere(derivative: Expr) -> Expr:
    """A derivative by SymPy with 0 for its Dirac deltas: a sign has the gradient 0, as in torch."""
    return derivative.replace(lambda node: isinstance(node, DiracDelta), lambda node: Integer(0))


def partial(e: Expr, k: int) -> Expr:
    """The derivative of an operation by its k-th operand, almost everywhere; SymPy's own
    ``Derivative`` of symbols where it has none.
    """
    places = [
        arg if arg.is_Number else Symbol(f"place{i}", real=True) for i, arg in enumerate(e.args)
    ]
    derivative = _partial_by(e.func(*places), places[k])
    if derivative.has(Derivative, Subs):
        return derivative
    return derivative.xreplace(dict(zip(places, e.args, strict=True)))


@lru_cache(maxsize=4096)
def _partial_by(operation: Expr, place: Symbol) -> Expr:
    return almost_everywhere(operation.diff(place))


def zero_unless(e: Expr):
    """The condition under which ``e`` is 1, if it is 0 elsewhere; else None."""
    if isinstance(e, Piecewise) and len(e.args) == 2:
        (first, condition), (last, _) = e.args
        if (first, last) == (1, 0):
            return condition
        if (first, last) == (0, 1):
            return Not(condition)
    return None


def without_minus_infinity(e: exp) -> Expr:
    """exp(Piecewise((k, c), (-oo, True)) + u) = Piecewise((exp(k + u), c), (0, True))."""
    for choice in (term for term in Add.make_args(e.exp) if isinstance(term, Piecewise)):
        if any(value == MINUS_INFINITY for value, _ in choice.args):
            rest = e.exp - choice
            return Piecewise(
                *((0 if v == MINUS_INFINITY else exp(v + rest), c) for v, c in choice.args)
            )
    return e


def without_masks(e: Expr) -> Expr:
    """``e`` with every exponential of an operand masked with -oo rewritten as a choice."""
    while e.has(MINUS_INFINITY):
        before = e
        e = e.replace(lambda part: isinstance(part, exp), without_minus_infinity)
        if e == before:
            break
    return e


def written_in(e: Basic, values: Mapping[Expr, Expr]) -> Basic:
    """``e`` with the keys of ``values`` replaced by their values, as by ``xreplace``, but a choice
    never gets into a condition.
    """
    if e in values:
        return values[e]
    if not any(value.has(Piecewise) for value in values.values()):
        return e.xreplace(values)
    args = [written_in(arg, values) for arg in e.args]
    same = all(new is old for new, old in zip(args, e.args, strict=True))
    return e if same else with_args(e, args)


def with_args(e: Basic, args: Iterable[Basic]) -> Basic:
    """``e`` on other operands; a condition that compares a choice becomes one on its branches.

    SymPy would write it with `ITE`, or stop where no symbol is free in the condition of the choice
    (sympy 1.14).
    """
    if isinstance(e, ExprCondPair):
        value, condition = args
        return ExprCondPair(value, _of_branches(condition))
    return e.func(*args)


def as_choices(e: Expr) -> Expr:
    """``e``, taken out of a condition, with choices instead of `Branches` and `Compared`."""
    return e.replace(lambda node: isinstance(node, (Branches, Compared)), lambda n: n.choice)


def _of_branches(condition: Basic) -> Basic:
    """``Piecewise((u, q), (w, True)) > 0`` as ``(q & (u > 0)) | (~q & (w > 0))``."""
    choice = _first_choice(condition)
    if choice is None:
        return condition
    before, branches = [], []
    for value, holds in choice.args:
        branches.append(And(*before, holds, condition.xreplace({choice: value})))
        before.append(Not(holds))
    return _of_branches(Or(*branches))


def _first_choice(e: Basic) -> Piecewise | None:
    """A choice in ``e`` outside its sums, which bind the axes that the conditions in them need."""
    if isinstance(e, Piecewise):
        return e
    inside = (_first_choice(arg) for arg in e.args if arg.has(Piecewise))
    return next((choice for choice in inside if choice is not None), None)
