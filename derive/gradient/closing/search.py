"""Search for the gradients that keep a name: at first all do, and one name after the other is
removed, as long as nothing is risked more and the whole costs no more.

In: a `Simplifier`. Out: the names. A removal writes the gradient where it is read, and simplifies
only what reads it: so the time grows with the length of the forward, not with its square.
"""

from __future__ import annotations

from collections import Counter, deque

from sympy import Expr

from derive.gradient.closing.drafting import (
    LONGEST,
    in_contractions,
    inserted,
    is_computed,
    is_matrix_product,
)
from derive.gradient.closing.forms import with_other_shares
from derive.gradient.closing.risks import Preference, preference, up_to_operations
from derive.gradient.closing.simplifying import Simplifier
from derive.gradient.closing.stages import safe
from derive.gradient.closing.steps import Pairs, Record
from derive.language.nodes import sums_in
from derive.language.operations import operations_in
from derive.language.symbols import tensors_in
from derive.running.limits import look


def names_kept(simplifier: Simplifier) -> frozenset[str]:
    """The names of the gradients that are worth one."""
    return ProgramSearch(simplifier).names()


class ProgramSearch:
    """The search state: ``named`` are the gradients that still have a name."""

    def __init__(self, simplifier: Simplifier):
        self.simplifier = simplifier
        self.relations = simplifier.knowledge.relations
        self.adjoints = simplifier.spelled.adjoints
        self.tensor = {a.name: a.tensor for a in self.adjoints}
        self.wanted = {a.name for a in self.adjoints if a.of.role == "input"}
        self.named: dict[str, Expr] = {}
        zeros: dict[str, Expr] = {}
        for adjoint in self.adjoints:
            e = self.relations.resolved(inserted(adjoint.expression, zeros))
            e = self.closed(e, adjoint.name)
            is_zero = e == 0 and adjoint.name not in self.wanted
            (zeros if is_zero else self.named)[adjoint.name] = e
        met, reads = in_contractions(simplifier.spelled), Counter[str]()
        for e in self.named.values():
            reads.update(_adjoints_in(e))
        self.fixed = self.wanted | {
            name
            for name, e in self.named.items()
            if any(map(is_matrix_product, sums_in(e)))
            or (name in met and is_computed(e, reads[name]))
        }

    def names(self) -> frozenset[str]:
        """Names left when no more removals are kept: those that save something are tried before
        those that cost the same, and all once more after one of these, since a gain may need two of
        them.
        """
        candidates = [a.name for a in self.adjoints if a.name not in self.fixed]
        saving, equal = deque(n for n in candidates if n in self.named), deque[str]()
        best, again = self.preference(self.named), False
        while saving or equal or again:
            look()
            if not (saving or equal):
                saving, again = deque(n for n in candidates if n in self.named), False
                continue
            first = bool(saving)
            name = (saving if first else equal).popleft()
            without = self.without(name) if name in self.named else None
            if without is None:
                continue
            now = self.preference(without)
            if not (now < best if first else up_to_operations(now) <= up_to_operations(best)):
                if first and up_to_operations(now) == up_to_operations(best):
                    equal.append(name)
                continue
            touched = {n for n, e in without.items() if e != self.named[n]}
            near = touched.union(*(_adjoints_in(without[n]) for n in touched))
            self.named, best, again = without, now, True
            saving.extend(n for n in candidates if n in near & without.keys() and n not in saving)
            equal = deque(n for n in equal if n not in near)
        return frozenset(tensor.name for tensor, _ in self.pairs(self.named)) - self.wanted

    def without(self, name: str) -> dict[str, Expr] | None:
        """All that is named without ``name``, which stands where it was read; None where that
        becomes too long.
        """
        changed = {n: e for n, e in self.named.items() if n != name}
        for n, e in changed.items():
            if name in _adjoints_in(e):
                changed[n] = self.closed(inserted(e, {name: self.named[name]}), n)
                if operations_in(changed[n]) > LONGEST:
                    return None
        return changed

    def closed(self, e: Expr, name: str) -> Expr:
        return self.simplifier.closed(e, self.tensor[name], Record())

    def preference(self, named: dict[str, Expr]) -> Preference:
        """Preference of the statements as the stages make them safe: terms that cancel only within
        one line do not in two.
        """
        knowledge, record = self.simplifier.knowledge, Record()
        pairs = with_other_shares(self.pairs(named), self.relations, record)
        return preference([(t, safe(t, e, knowledge, record)) for t, e in pairs], self.relations)

    def pairs(self, named: dict[str, Expr]) -> Pairs:
        """The statements that some wanted gradient is computed from, in order."""
        needed, kept = set(self.wanted), []
        for adjoint in reversed(self.adjoints):
            if adjoint.name in needed & named.keys():
                kept.append((adjoint.tensor, named[adjoint.name]))
                needed |= _adjoints_in(named[adjoint.name])
        return kept[::-1]


def _adjoints_in(e: Expr) -> set[str]:
    return {t.name for t in tensors_in(e) if t.role == "adjoint"}
