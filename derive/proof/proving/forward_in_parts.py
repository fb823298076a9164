"""The forward with its parts as statements: the steps of a proof are taken on it.

In: a `ClosedForm`, and the small batches of its forward as it is written. Out: the definition in
which every part is a statement, each statement proved to say what the user's says; its batches, and
its chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from sympy import Expr, Piecewise, exp

from derive.gradient.chain.chain import Chain, derive_chain
from derive.gradient.closing.closed_form import ClosedForm
from derive.gradient.values.naming import in_full, written_out
from derive.language.choices import without_minus_infinity
from derive.language.nodes import Peak
from derive.language.notation.definition import Definition, Statement
from derive.language.symbols import Tensor, axes_of, tensors_in
from derive.proof.proving.alike import shown_by_parts
from derive.proof.proving.claim import Batch, Equality, ShownClaims


class ForwardInParts:
    """The forward of ``form`` with its parts; its statements are proved on the batches of the
    forward ``as_written``.
    """

    def __init__(self, form: ClosedForm, as_written: Sequence[Batch]):
        self.form, self.as_written = form, as_written

    @property
    def definition(self) -> Definition:
        """The forward with its parts as statements too. The definition of a value is the user's,
        with parts under their names, or a form proved equal to it.
        """
        return self._respelled[0]

    @property
    def respelled(self) -> list[ShownClaims]:
        """The statements that `definition` says in other words, each shown to be equal."""
        return self._respelled[1]

    @cached_property
    def _respelled(self) -> tuple[Definition, list[ShownClaims]]:
        definition, values, equal = self.form.definition, [], []
        in_words = {part.tensor.name: part.expression for part in self.form.relations.parts}
        for value in self.form.relations.values:
            written = definition.by_name.get(value.tensor.name)
            expression = value.expression
            own = written_out(expression, in_words)
            if written is not None and own != written.expression:
                claims = self._claims(value.tensor, own, written.expression)
                found = [shown_by_parts(claim, self.as_written) for claim in claims]
                if None in found:
                    expression = written.expression
                else:
                    equal.append(ShownClaims(value.tensor, [c for claims in found for c in claims]))
            if value.tensor.name in self.form.relations.scales.made:
                expression = self._unmasked(expression)
            values.append(Statement(value.tensor, expression, definition.place))
            number, whole = expression.as_coeff_Mul(rational=True)
            if written is not None and whole == getattr(whole, "at_home", None):
                # the next ones are compared in the words of what is shown already
                in_words |= {whole.name: value.tensor / number} if whole.name in in_words else {}
        return replace(definition, statements=tuple(values)), equal

    def _claims(self, tensor: Tensor, own: Expr, written: Expr) -> Iterator[Equality]:
        """Claims that ``own`` equals ``written``: first its differences of sums, each by itself."""
        definition = self.form.definition
        about, pairs = self.form.relations.about_means(written)
        for difference, same in pairs:
            home = definition.in_order(axes_of(difference))
            yield Equality(definition, home, same, difference)
        if own != about:
            yield Equality(definition, tensor.home, own, about)

    def _unmasked(self, e: Expr) -> Expr:
        """``e`` as a choice, if it is the exponential of one between a number and -oo."""
        if not isinstance(e, exp):
            return e
        relations = self.form.relations
        made = [part for part in relations.parts if part.tensor.name in relations.scales.made]
        exponent = in_full(e.exp, [part for part in made if not isinstance(part.expression, Peak)])
        whole = exp(exponent)  # a product where a logarithm stands in the exponent
        chosen = without_minus_infinity(whole) if isinstance(whole, exp) else whole
        return chosen if isinstance(chosen, Piecewise) else e

    @cached_property
    def batches(self) -> list[Batch]:
        """The small batches of the forward with its parts."""
        return [Batch(self.definition, batch.sizes) for batch in self.as_written]

    @cached_property
    def chain(self) -> Chain:
        """The chain of the forward with its parts, without unread other names for parts, and
        without values of scales alone.
        """
        relations, met, statements = self.form.relations, set(), []
        for s in reversed(self.definition.statements):
            other = s.name in relations.aliases and s.name not in met
            if not other and s.name not in relations.scales.made:
                statements.append(s)
                met |= {t.name for t in tensors_in(s.expression)}
        return derive_chain(replace(self.definition, statements=tuple(reversed(statements))))
