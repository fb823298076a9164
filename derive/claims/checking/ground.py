"""One forward, with everything derived from it for a check."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, lru_cache
from math import inf

from sympy import Dummy, Expr, Pow

from derive.claims.checking.explaining.atomised import atomised
from derive.claims.checking.explaining.fitting import ValueNames
from derive.claims.checking.explaining.terms import TermByTerm
from derive.claims.checking.numbers.comparison import difference_at
from derive.claims.checking.ties import Tie, is_apart, off_the_tie, ties_in
from derive.gradient.chain.chain import Chain, adjoint_of, derive_chain
from derive.gradient.closing.closed_form import ClosedForm, ClosedStatement, close
from derive.gradient.range.bounds import Bounds, Ranges
from derive.gradient.range.decided import decided
from derive.language.nodes import along
from derive.language.notation.definition import Definition
from derive.language.symbols import Tensor, tensors_in
from derive.proof.proving.proof import ProvedGradient, proved_gradient

EQUAL = 1e-30  # relative, of numbers of 50 digits: nothing but rounding


class Ground:
    """The derivation of one forward; each part is computed once, on demand.

    Numbers are computed in ``chain``, in which every part has a name; the closed form and the
    proofs are about the statements as written.
    """

    def __init__(self, definition: Definition):
        self.original = definition
        self.definition = atomised(definition)

    @cached_property
    def chain(self) -> Chain:
        return derive_chain(self.definition)

    @cached_property
    def form(self) -> ClosedForm:
        return close(derive_chain(self.original))

    @cached_property
    def names(self) -> ValueNames:
        return ValueNames(self.chain)

    @cached_property
    def terms(self) -> TermByTerm:
        return TermByTerm(self.form, self.names)

    def with_number(self, scalar: Tensor, value: Expr) -> Ground:
        """The same forward with one value for a scalar."""
        settled = [
            replace(s, expression=s.expression.xreplace({scalar: value}))
            for s in self.original.statements
        ]
        return ground_of(replace(self.original, statements=tuple(settled)))

    @cached_property
    def positive_scalars(self) -> dict[Tensor, Tensor]:
        """Scalars with a positive default, each with a positive symbol."""
        return {
            scalar: Tensor(scalar.name, scalar.axes, role=scalar.role, positive=True)
            for scalar, default in self.original.scalars
            if _is_positive(default) and not scalar.is_positive
        }

    def for_positive_scalars(self) -> Ground:
        """The same forward with these scalars assumed positive."""
        positive = self.positive_scalars
        statements = [
            replace(s, expression=s.expression.xreplace(positive)) for s in self.original.statements
        ]
        scalars = [(positive.get(t, t), default) for t, default in self.original.scalars]
        demands = [
            replace(d, expression=d.expression.xreplace(positive)) for d in self.original.demands
        ]
        return ground_of(
            replace(
                self.original,
                statements=tuple(statements),
                scalars=tuple(scalars),
                demands=tuple(demands),
            )
        )

    def decided(self, e: Expr) -> Expr:
        """``e`` with those choices resolved that the ranges of the forward's values decide."""
        return decided(e, self.ranges)

    def with_choices_made(self) -> Ground | None:
        """The same forward without choices that ranges decide: where the variance is 0, its root is
        0 as well. None if there are none.

        At a tie, the derivatives of the two branches may differ.
        """
        statements = tuple(
            replace(s, expression=self.decided(s.expression)) for s in self.original.statements
        )
        if statements == self.original.statements:
            return None
        return ground_of(replace(self.original, statements=statements))

    @cached_property
    def ties(self) -> tuple[Tie, ...]:
        """Ties: points where `with_choices_made` takes another branch with the same value."""
        return tuple(ties_in(self.original, self.ranges))

    def off_ties(self, of: Tensor, claimed: Expr) -> Expr | None:
        """``claimed`` with its choices resolved off the tie, if it is the gradient of ``of`` on it;
        else None.
        """
        if len(self.ties) != 1 or not is_apart(self.ties[0], self.original, of):
            return None
        (tie,) = self.ties
        gradient = self.form.closed[adjoint_of(of).name]
        if not (tie.of_entry(claimed) and tie.is_zero(claimed - gradient)):
            return None
        return decided(claimed, off_the_tie(tie, self.with_choices_made().ranges))

    @cached_property
    def ranges(self) -> Ranges:
        """The intervals of all values, with scalars as declared."""
        known, declared = {}, {}
        for demand in self.original.demands:
            scalar = demand.expression
            if not isinstance(scalar, Tensor):
                continue
            ends = {b.is_lower: b.limit for b in demand.domain.bounds if b.limit.is_Rational}
            low, high = ends.get(True, -inf), ends.get(False, inf)
            known[scalar.name] = Bounds(float(low), float(high))
            for bound in demand.domain.bounds if not ends else ():
                inside = Dummy(positive=True) if bound.is_strict else Dummy(nonnegative=True)
                declared[scalar] = bound.limit + (inside if bound.is_lower else -inside)
        definitions = self.definition.by_name
        inverse = {
            s.tensor
            for s in self.definition.statements
            if isinstance(s.expression, Pow) and s.expression.exp == -1
        }

        def definition_of(t: Tensor) -> Expr | None:
            if t.name not in definitions:
                return None
            e = definitions[t.name].expression
            read = (s for s in tensors_in(e) if s in inverse)
            e = e.xreplace({s: definitions[s.name].expression for s in read})
            return e.xreplace(declared)

        return Ranges(definition_of, known)

    def difference(self, of: Tensor, claimed: Expr) -> float:
        """The largest difference from the gradient, relative to it. Raises `Unevaluable`."""
        return difference_at(self.names.evaluations, of, claimed)

    def proved(self, of: Tensor, claimed: Expr) -> ProvedGradient:
        """The proof that ``claimed`` is the gradient. Raises one of ``NOT_DECIDED`` if there is
        none.
        """
        own = {t.name for t in self.chain.definition.differentiable}
        claimed = claimed.xreplace(
            {
                t: along(self.form.closed[t.name], t)
                for t in tensors_in(claimed)
                if t.role == "adjoint" and t.name[1:] in own
            }
        )
        statement = ClosedStatement(adjoint_of(of), claimed, of)
        return proved_gradient(self._reading_from(claimed), statement)

    def _reading_from(self, claimed: Expr) -> ClosedForm:
        """The closed form in terms of every gradient that ``claimed`` reads."""
        form, read = self.form, {t.name for t in tensors_in(claimed)}
        more = [
            ClosedStatement(a.tensor, form.closed[a.name], a.of)
            for a in form.chain.adjoints
            if a.name in read and a.name not in form.by_name
        ]
        return replace(form, statements=(*form.statements, *more))


@lru_cache(maxsize=16)
def ground_of(definition: Definition) -> Ground:
    """The ground of a definition, shared by all claims about it."""
    return Ground(definition)


def for_any_upstream(claimed: Expr, chain: Chain, given: Expr) -> Expr:
    """Extend a claim for one upstream number to all: gradients are linear. There is one output."""
    (upstream,) = chain.upstreams
    scaled = {
        t: t * given / upstream
        for t in tensors_in(claimed)
        if t.role == "adjoint" and t.name != upstream.name
    }
    return upstream / given * claimed.xreplace({**scaled, upstream: given})


def _is_positive(default: float | Expr) -> bool:
    """Whether the default of a scalar is positive; a default in sizes must be so for every size."""
    return bool(default.is_positive) if isinstance(default, Expr) else default > 0
