"""Compare a claimed gradient with the right one term by term.

In: two expressions for one gradient, over forward values and the gradients that arrive. Out: a
`TermComparison`. Both are multiplied out by the identities of the closed form, and a term is a
product of tensors with a coefficient of numbers, sizes and scalars, so that what differs can be
said: a term that is missing, one too many, a wrong sign, a coefficient 1/N that must be 1/(N - 1),
or a factor of the whole.

Products can be written in many ways. A part of the claim with the value of a named tensor is
replaced by that tensor (`ValueNames`), and the rest is expressed as a combination of the right
terms where possible (`fitted`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from sympy import Add, Expr, Le, Lt, Mul, Ne, Not, Piecewise, S

from derive.claims.checking.explaining.fitting import ValueNames, fitted
from derive.gradient.chain.chain import Chain, adjoint_of
from derive.gradient.closing.closed_form import ClosedForm
from derive.gradient.closing.factoring import common_factor
from derive.gradient.closing.facts import Facts
from derive.gradient.closing.identities import elimination, identities
from derive.gradient.closing.rewriting import normal_form
from derive.gradient.closing.steps import Record
from derive.gradient.values.naming import in_full
from derive.language.identity import IdentityRule
from derive.language.nodes import along
from derive.language.quotients import cancelled
from derive.language.symbols import Tensor, is_constant, tensors_in

SHORT = 1  # operations of a missing term that is understood at a glance
MOST_TERMS = 60  # compared term by term, so that it terminates
RULES = ((elimination, *identities), identities)  # by values nearer the output, or as written
Terms = dict[Expr, Expr]  # coefficient of each product


@dataclass(frozen=True)
class TermDifference:
    """The coefficient of ``product`` is ``got`` and must be ``expected``; 0 means the term is
    absent.
    """

    product: Expr
    got: Expr
    expected: Expr

    @property
    def kind(self) -> str:
        if self.got == 0:
            return "missing"
        if self.expected == 0:
            return "extra"
        return "sign" if self.got == -self.expected else "coefficient"


@dataclass(frozen=True)
class TermComparison:
    """``outside * (terms)``: the factor in front of the brackets and the terms inside that differ.

    ``factor`` is (got, expected) if the outer factor itself differs.
    """

    outside: Expr
    differences: tuple[TermDifference, ...]
    agreeing: int
    factor: tuple[Expr, Expr] | None = None

    @property
    def cost(self) -> tuple[int, int]:
        """Fewer and shorter differences explain better."""
        shown = sum(d.product.count_ops() for d in self.differences)
        if self.factor is not None:
            got, expected = self.factor
            shown += (expected / got).count_ops()
        return len(self.differences) + (self.factor is not None), shown

    @property
    def is_one_finding(self) -> bool:
        """Whether it reports one short finding: a sign, a coefficient, a short term."""
        count, shown = self.cost
        kinds = {d.kind for d in self.differences}
        if count == 1 and kinds:
            return kinds <= {"sign", "coefficient"} or shown <= SHORT
        is_scale = self.factor is not None and is_constant(self.factor[1] / self.factor[0])
        return (kinds == {"sign"} and self.factor is None) or (count == 1 and is_scale)

    def mapped(self, rewrite: Callable[[Expr], Expr]) -> TermComparison:
        """The same comparison with rewritten products."""
        return replace(
            self,
            outside=rewrite(self.outside),
            differences=tuple(replace(d, product=rewrite(d.product)) for d in self.differences),
            factor=self.factor and (rewrite(self.factor[0]), rewrite(self.factor[1])),
        )


class TermByTerm:
    """Compares claims about one forward."""

    def __init__(self, form: ClosedForm, names: ValueNames):
        self.form, self.names = form, names
        self.knowledge = Facts(form.relations)

    @cached_property
    def chain(self) -> Chain:
        return self.form.chain

    def compare(self, of: Tensor, claimed: Expr) -> TermComparison | None:
        """The terms in which ``claimed`` differs from the gradient of ``of``; None if they cannot
        be compared.
        """
        comparisons = []
        for right, claim in self._readings(of, claimed):
            right, claim = oriented(right), oriented(claim)
            for rules, unfold in product(RULES, (False, True)):
                expected = self._terms(right, of, rules, unfold)
                for got in self._claimed_terms(claim, of, expected, rules, unfold):
                    comparisons += [_inside_brackets(got, expected), _factor_apart(got, expected)]
        told = [c for c in comparisons if c is not None and (c.differences or c.factor)]
        best = min(told, key=lambda c: c.cost, default=None)
        return best and best.mapped(self._in_names_of_the_forward)

    def _in_names_of_the_forward(self, e: Expr) -> Expr:
        """``e`` with unnamed parts of the forward written out."""
        return in_full(e, self.form.relations.parts)

    def _readings(self, of: Tensor, claimed: Expr) -> Iterator[tuple[Expr, Expr]]:
        """The right gradient and the claim in terms of the same gradients: those that the claim
        reads, those of the nearest step of the chain, or the upstream ones only.
        """
        adjoint = self.chain.by_name.get(f"d{of.name}")
        if adjoint is None:
            yield adjoint_of(of), claimed
            return
        read = {t.name for t in tensors_in(claimed) if t.role == "adjoint"}
        closed = self.form.closed[adjoint.name]
        yield self._from_output(closed, read), claimed
        if read - self.chain.arriving:
            yield adjoint.expression, claimed
            yield self._from_output(closed, ()), self._from_output(claimed, ())

    def _from_output(self, e: Expr, given: Iterable[str]) -> Expr:
        """``e`` with every gradient in closed form except the upstream ones and those
        in ``given``.
        """
        given = {*self.chain.arriving, *given}
        while inner := {
            t: along(self.form.closed[t.name], t)
            for t in tensors_in(e)
            if t.role == "adjoint" and t.name not in given
        }:
            e = e.xreplace(inner)
        return e

    def _claimed_terms(self, claimed, of: Tensor, expected: Terms, *way) -> Iterator[Terms]:
        yield self._terms(self.names.named(claimed), of, *way)
        combination = fitted(self.names, of, claimed, list(expected))
        if combination is not None:
            yield combination

    def _terms(self, e: Expr, of: Tensor, rules: tuple[IdentityRule, ...], unfold: bool) -> Terms:
        """``e`` as a sum of products, with gradients of inputs expanded; with ``unfold`` also
        values that do not depend on ``of``.
        """
        inputs = {t.name for t in self.chain.definition.differentiable}
        closed = {
            t: along(self._from_output(self.form.closed[t.name], ()), t)
            for t in tensors_in(e)
            if t.role == "adjoint" and t.name[1:] in inputs
        }
        e = self.form.relations.with_values(e.xreplace(closed))
        e = self._unfolded(e, of) if unfold else e
        return collected(normal_form(e, of, rules, self.knowledge, Record()))

    def _unfolded(self, e: Expr, of: Tensor) -> Expr:
        fixed = self.form.relations.by_name.keys() - self.chain.definition.depending_on(of.name)
        while named := {
            t: self.form.relations.unfolded(t) for t in tensors_in(e) if t.name in fixed
        }:
            e = e.xreplace(named)
        return e


def oriented(e: Expr) -> Expr:
    """``e`` with all comparisons written as ``>``, ``>=`` or ``==``, so that swapped sides compare
    equal.
    """

    def turned(choice: Expr) -> Expr:
        (first, condition), (last, _) = choice.args
        return Piecewise((last, Not(condition)), (first, True))

    return e.replace(
        lambda n: (
            isinstance(n, Piecewise)
            and len(n.args) == 2
            and isinstance(n.args[0].cond, (Lt, Le, Ne))
        ),
        turned,
    )


def collected(e: Expr) -> Terms:
    """The coefficients of a sum, like terms combined."""
    terms: Terms = {}
    for term in Add.make_args(e):
        factors = Mul.make_args(term)
        product = Mul(*(f for f in factors if not is_constant(f)))
        coefficient = Mul(*(f for f in factors if is_constant(f)))
        terms[product] = terms.get(product, S.Zero) + coefficient
    terms = {product: cancelled(coefficient) for product, coefficient in terms.items()}
    return {product: c for product, c in terms.items() if c != 0}


def _inside_brackets(got: Terms, expected: Terms) -> TermComparison | None:
    """Compare after factoring out what all terms of both have in common."""
    if (not got and not expected) or len(got) > MOST_TERMS:
        return None
    products = {*got, *expected}
    outside = common_factor(list(products)) if len(products) > 1 else S.One
    return _compared(outside, _divided(got, outside), _divided(expected, outside))


def _factor_apart(got: Terms, expected: Terms) -> TermComparison | None:
    """Compare with separate outer factors; the coefficient is the one most terms have."""
    if not got or not expected or len(got) > MOST_TERMS:
        return None
    ours, theirs = common_factor(list(expected)), common_factor(list(got))
    right, inside = _divided(expected, ours), _divided(got, theirs)
    ratios = Counter(cancelled(inside[p] / right[p]) for p in right if p in inside)
    if not ratios:
        return None
    scale, _ = ratios.most_common(1)[0]
    if scale == 1 and ours == theirs:
        return None
    comparison = _compared(ours, {p: c / scale for p, c in inside.items()}, right)
    is_sign = scale * theirs == -ours  # a sign of some terms only, not of all
    if is_sign and any(d.kind == "sign" for d in comparison.differences):
        return None
    return replace(comparison, factor=(scale * theirs, ours))


def _compared(outside: Expr, got: Mapping, expected: Mapping) -> TermComparison:
    products = list(dict.fromkeys([*expected, *got]))
    differences, agreeing = [], 0
    for term in products:
        ours, theirs = expected.get(term, S.Zero), got.get(term, S.Zero)
        if cancelled(ours - theirs) == 0:
            agreeing += 1
        else:
            differences.append(TermDifference(term, theirs, ours))
    return TermComparison(outside, tuple(differences), agreeing)


def _divided(terms: Terms, factor: Expr) -> Terms:
    return {product / factor: coefficient for product, coefficient in terms.items()}
