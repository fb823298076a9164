"""Facts about the forward, found and not listed: the values of sums over forward values.

In: a `Sum` in which no gradient occurs. Its values are unfolded, one definition at a time, and the
result is brought to normal form. If it comes out as a number, a size, or a multiple of a named
value, that is a fact, and its short derivation is recorded with it: ``Sum(xhat, N) = 0`` because
``Sum(diff, N) = Sum(x, N) - N*mean``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sympy import Add, Expr, Mul

from derive.gradient.closing.identities import identities
from derive.gradient.closing.rewriting import normal_form
from derive.gradient.closing.steps import Fact, Record
from derive.gradient.values.relations import Relations
from derive.language.choices import written_in
from derive.language.identity import IdentityRule
from derive.language.nodes import Sum
from derive.language.operations import operations_in
from derive.language.symbols import Axis, Tensor, axes_of, is_number_or_size, tensors_in

MOST_UNFOLDINGS = 16  # of definitions, one after the other, so that the search for a fact ends
LARGEST = 150  # operations of a sum in which something is unfolded yet: a fact is short

elementary: tuple[IdentityRule, ...] = tuple(i for i in identities if i.name != "fact")


@dataclass
class Facts:
    """Knowledge of the forward: its relations, and the facts found so far."""

    relations: Relations
    found: dict[Expr, Fact | None] = field(default_factory=dict)
    centred: dict[str, list[Axis]] = field(default_factory=dict)
    rewritten: dict[IdentityRule, dict[Expr, Expr]] = field(default_factory=dict)

    def fact(self, node: Sum) -> Expr | None:
        """The value of ``node``, or None where it is not made of the forward alone or nothing
        simple is found.
        """
        tensors = tensors_in(node)
        if not tensors or any(t.role == "adjoint" for t in tensors):
            return None
        if node not in self.found:
            self.found[node] = self._discover(node)
        fact = self.found[node]
        return fact.value if fact else None

    def centred_along(self, tensor: Tensor) -> list[Axis]:
        """The axes along which ``tensor`` is a difference, such as x - mean, that sums to zero.

        The result is no fact that a gradient uses.
        """
        if tensor.name not in self.centred:
            self.centred[tensor.name] = self._centred_along(tensor)
        return self.centred[tensor.name]

    def _centred_along(self, tensor: Tensor) -> list[Axis]:
        value = self.relations.by_name.get(tensor.name)
        if value is None or not isinstance(value.expression, Add):
            return []
        whole = axes_of(value.expression)
        missing = {axis for term in value.expression.args for axis in whole - axes_of(term)}
        axes = sorted(missing, key=str)
        if axes and self._never_sums_to_zero(value.expression):
            return []
        total = Sum.over(value.tensor, axes) if axes else None
        return axes if total is not None and Facts(self.relations).fact(total) == 0 else []

    def _never_sums_to_zero(self, e: Add) -> bool:
        """Whether that is plain, with no search for a fact: all entries are above 0, or one term is
        an argument that no other term depends on, such as a bias.
        """
        if e.is_positive or e.is_negative:
            return True
        for term in e.args:
            number, rest = term.as_coeff_Mul()
            free = isinstance(rest, Tensor) and rest.role in ("input", "given")
            if free and number and not self._depends(e - term, rest.name):
                return True
        return False

    def _depends(self, e: Expr, name: str) -> bool:
        """Whether ``e`` is made of the tensor of this name, by the definitions of its values."""
        met, pending = set[str](), [e]
        while pending:
            new = {t.name: t for t in tensors_in(pending.pop()) if t.name not in met}
            if name in new:
                return True
            met |= new.keys()
            known = (self.relations.by_name.get(each) for each in new)
            pending += [value.expression for value in known if value is not None]
        return False

    def _discover(self, node: Sum) -> Fact | None:
        record, target, e = Record(), Tensor("fact", sorted(axes_of(node), key=str)), node
        for _ in range(MOST_UNFOLDINGS):
            e = normal_form(e, target, elementary, self, record)
            if e != node and self._is_simple(e, node):
                return Fact(node, e, tuple(record.steps))
            unfolding = self._next_to_unfold(e)
            if unfolding is None or operations_in(e) > LARGEST:
                return None
            definition = self.relations.unfolded(unfolding)
            after = written_in(e, {unfolding: definition})
            e = record.add(target, "definition", e, after, f"{unfolding} is {definition}")
        return None

    def _is_simple(self, e: Expr, claim: Sum) -> bool:
        """A number, a size, or one named value (no input, which would be no news) with such a
        factor.
        """
        if is_number_or_size(e):
            return True
        tensors = [f for f in Mul.make_args(e) if not is_number_or_size(f)]
        return (
            len(tensors) == 1
            and isinstance(tensors[0], Tensor)
            and tensors[0].role == "statement"
            and tensors[0] not in tensors_in(claim)
        )

    def _next_to_unfold(self, e: Expr) -> Tensor | None:
        """The latest value inside a sum; when there is none, the latest that not all terms have
        in common.
        """

        def latest(tensors):
            known = [t for t in tensors if t.name in self.relations.by_name]
            return max(known, key=lambda t: (self.relations.position[t.name], str(t)), default=None)

        inside = {t for total in e.atoms(Sum) for t in tensors_in(total.operand)}
        terms = Add.make_args(e)
        common = (
            set.intersection(*(set(Mul.make_args(term)) for term in terms))
            if len(terms) > 1
            else set()
        )
        outside = [t for t in tensors_in(e) if t not in common]
        return latest(inside) or latest(outside)
