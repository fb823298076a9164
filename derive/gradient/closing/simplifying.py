"""One gradient in closed form: multiplied out by the identities, with the facts about the forward
that are found on the way, and factored again; or only simplified where it stands.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import prod

from sympy import Add, Expr, Mul, Pow

from derive.gradient.chain.chain import Adjoint, Chain
from derive.gradient.closing.cost import additions
from derive.gradient.closing.facts import Facts
from derive.gradient.closing.identities import elimination, identities, inversion
from derive.gradient.closing.rewriting import normal_form
from derive.gradient.closing.risks import divisors, preference
from derive.gradient.closing.stages import factored_out
from derive.gradient.closing.steps import Record, RewriteStep
from derive.language.nodes import Sum
from derive.language.symbols import Tensor

MOST_TERMS = 64  # of what is multiplied out, where twice as many factors have the square of them
gentle = tuple(i for i in identities if i.name not in ("distribute", "linear"))


@dataclass
class Simplifier:
    """Brings gradients to closed form and keeps the results: drafts that differ in the names that
    they keep have most of their gradients in common. ``spelled`` is the chain of the forward in its
    one spelling (``canonical.py``), in which every part is a statement. ``eliminated``: something
    was to eliminate.
    """

    chain: Chain
    spelled: Chain
    knowledge: Facts
    eliminate: bool
    done: dict[tuple[Expr, Tensor], tuple[Expr, tuple[RewriteStep, ...]]] = field(
        default_factory=dict
    )
    eliminated: bool = False
    arranged: dict[tuple, object] = field(default_factory=dict)

    @cached_property
    def adjoints(self) -> list[Adjoint]:
        """Adjoints of all parts, and after them those of other names for parts: these have readers
        only in the forward as it is written.
        """
        aliases = self.knowledge.relations.aliases
        others = (a for a in self.chain.adjoints if a.of.name in aliases)
        return [*self.spelled.adjoints, *others]

    def closed(self, e: Expr, target: Tensor, record: Record) -> Expr:
        """The closed form of ``e``, the gradient ``target``; its steps go to ``record``."""
        if (e, target) not in self.done:
            forms = _forms(e, target, self.knowledge, self.eliminate)
            relations = self.knowledge.relations
            best, own = min(
                forms,
                key=lambda form: (preference([(target, form[0])], relations), additions(form[0])),
            )
            self.done[e, target] = best, tuple(own.steps)
            rules = {step.rule for _, tried in forms for step in tried.steps}
            self.eliminated = self.eliminated or elimination.name in rules
        closed, steps = self.done[e, target]
        record.steps.extend(steps)
        return closed


def _forms(e: Expr, target: Tensor, knowledge: Facts, eliminate: bool) -> list[tuple[Expr, Record]]:
    """Closed forms of ``e``, each with its steps: multiplied out and factored again, or only
    simplified where it stands.
    """
    rules = (inversion, elimination) if eliminate else (inversion,)
    multiplied_out, together = Record(), Record()
    gathered = normal_form(e, target, rules + gentle, knowledge, together)
    outside = Record([*together.steps])
    forms = [(factored_out(gathered, target, outside), outside)]
    if terms_in(e) <= MOST_TERMS:
        expanded = normal_form(e, target, rules + identities, knowledge, multiplied_out)
        forms.insert(0, (factored_out(expanded, target, multiplied_out), multiplied_out))
    for form, record in [*forms]:
        cancelled, why = Record([*record.steps]), "the forward has a name for it"
        named = knowledge.relations.with_values(form)
        if divisors(form) and named != form:
            named = cancelled.add(target, "definition", form, named, why)
            named = normal_form(named, target, rules + gentle, knowledge, cancelled)
            forms.append((factored_out(named, target, cancelled), cancelled))
    return [*forms, (gathered, together)]


@lru_cache(maxsize=65536)
def terms_in(e: Expr) -> int:
    """Number of terms of ``e`` when it is multiplied out."""
    if isinstance(e, Add):
        return sum(map(terms_in, e.args))
    if isinstance(e, Pow) and e.exp.is_Integer and e.exp > 1:
        return terms_in(e.base) ** int(e.exp)
    inside = map(terms_in, e.args) if isinstance(e, (Mul, Sum)) else ()
    return prod(inside)
