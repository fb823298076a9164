"""Equal forms of a value, one move for all rows of the table of equations that tell one: each is
tried where the value is read, and kept where it is cheaper, or keeps digits.

In: the statements of a closed form. Out: the same statements, in which a value of the forward may
have been replaced by what it equals (``equations.py``). Every use is a step of the record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from sympy import Add, Expr, Mul, Piecewise, exp

from derive.gradient.closing.facts import Facts
from derive.gradient.closing.recomputation import computed_from, times_read
from derive.gradient.closing.risks import divisors, preference
from derive.gradient.closing.steps import Pairs, Record, RewriteStep
from derive.gradient.closing.sum_rules import reshaped_back
from derive.gradient.range.exponential_quotients import one_exponential
from derive.gradient.values.naming import NamedValue, with_names
from derive.gradient.values.relations import Relations
from derive.language.choices import Compared, written_in
from derive.language.nodes import along
from derive.language.operations import operations_in
from derive.language.symbols import Tensor, axes_of, tensors_in
from derive.language.traversal import everywhere


@dataclass(frozen=True)
class Form:
    """An equation to rewrite by: ``equal`` replaces ``value``, or the ``whole`` made of it, by the
    ``rule`` of the table, for the reason ``why``; ``names`` are used in the result.
    """

    rule: str
    why: str
    value: Tensor
    equal: Expr
    whole: Expr | None = None
    names: tuple[NamedValue, ...] = ()

    def tried(self, pairs: Pairs) -> tuple[Pairs, list[RewriteStep]]:
        """The statements with this form used, and the steps."""
        trial = Record()
        tried = [(t, trial.add(t, self.rule, e, _using(self, e), self.why)) for t, e in pairs]
        return tried, trial.steps


@lru_cache(maxsize=65536)  # a search for names meets the same ones again
def _using(form: Form, e: Expr) -> Expr:
    """``e`` in which ``form`` is used wherever it may be."""
    met = [t for t in tensors_in(e) if t.at_home == form.value]
    if not met:
        return e
    if form.whole is not None:
        return everywhere(e, lambda node: _in_sum(node, form, met))
    e = everywhere(e, lambda node: _beside_an_exponential(node, form))
    if not axes_of(form.equal) <= {*form.value.axes}:
        return e
    e = written_in(e, {t: along(form.equal, t) for t in met})
    return everywhere(e, lambda node: reshaped_back(node, None))


def _in_sum(node: Expr, form: Form, met: list[Tensor]) -> Expr | None:
    """``c - c*s`` for the whole ``1 - s``."""
    for part in node.args if isinstance(node, Add) else ():
        for tensor in (t for t in met if t in tensors_in(part)):
            factor = -part / along(1 - form.whole, tensor)
            if factor in node.args:
                return node - factor - part + factor * along(form.equal, tensor)
    return None


def _beside_an_exponential(node: Expr, form: Form) -> Expr | None:
    """``exp(u)*v**k`` as one exponential, for ``v = exp(w)``: where its factors lie along the axes
    that ``w`` does.
    """
    power = node.as_powers_dict().get(form.value, 0) if isinstance(node, Mul) else 0
    exponents = [f.exp for f in Mul.make_args(node) if isinstance(f, exp)]
    if power == 0 or not exponents or not axes_of(form.equal) <= axes_of(Add(*exponents)):
        return None
    return with_names(one_exponential(node * (form.equal / form.value) ** power), form.names)


def with_other_shares(pairs: Pairs, relations: Relations, record: Record) -> Pairs:
    """``pairs`` with the rest of a whole computed directly, not as a difference, which would be
    rounding error alone where the share is nearly all; unless the share is read all the same.
    """
    why = "the remainder is computed directly, not as a difference"
    for whole, (equal, by) in relations.solved["remainder"].items():
        turned, steps = Form("other share", why, by.tensor, equal, whole).tried(pairs)
        if not any(times_read(e)[by.tensor] for _, e in turned):
            record.steps.extend(steps)
            pairs = turned
    return pairs


def improved(pairs: Pairs, knowledge: Facts, record: Record) -> Pairs:
    """``pairs`` with the form that saves most, again and again until none saves anything."""
    relations = knowledge.relations
    best = preference(pairs, relations)
    while True:
        trials = [form.tried(pairs) for form in _forms(pairs, knowledge)]
        reached = [(preference(tried, relations), i) for i, (tried, _) in enumerate(trials)]
        least, first = min(reached, default=(best, 0))
        if not least < best:
            return pairs
        best, (pairs, steps) = least, trials[first]
        record.steps.extend(steps)


def _forms(pairs: Pairs, knowledge: Facts) -> Iterator[Form]:
    """Forms by which the values that are read may be replaced where they are read."""
    relations = knowledge.relations
    read = {t.at_home for _, e in pairs for t in tensors_in(e) if t.name in relations.by_name}
    chosen_by = {divisor for _, e in pairs for divisor in divisors(e)}
    chosen_by |= {compared for _, e in pairs for compared in _compared(e)}
    for value in sorted(read, key=lambda t: relations.position[t.name]):
        if value in relations.solved["logarithm"]:
            equal, by = relations.solved["logarithm"][value]
            why = f"{by.tensor} holds the logarithm of {value}"
            yield from (
                Form("logarithm", why, value, equal, names=names)
                for names in ((), relations.known_to_readers)
            )
        again = _again(value, knowledge, value in chosen_by)
        if again is not None and not _is_named_again(value, pairs, read, knowledge):
            why = f"{value} is cheaper to recompute than to save"
            for form in dict.fromkeys((again, _in_full(again, knowledge))):
                yield Form("unfold", why, value, form)


def _again(value: Tensor, knowledge: Facts, chosen_by: bool) -> Expr | None:
    """The definition of ``value``, where that is as good when it is computed again. A difference
    that is centred when it is saved would lose that; one case of a divisor may be zero, and a
    choice on which another one is made would have to be made in every condition.
    """
    if value in knowledge.relations.definition.outputs:
        return None  # it is at hand
    again, _ = knowledge.relations.solved["definition"].get(value, (None, None))
    chooses = again is not None and chosen_by and again.has(Piecewise)
    return None if chooses or again is None or knowledge.centred_along(value) else again


def _is_named_again(value: Tensor, pairs: Pairs, read: set[Tensor], knowledge: Facts) -> bool:
    """Whether ``value`` is computed again once, under a name (``recomputation.py``): it takes more
    than one operation, and would be written out more than once.
    """
    if sum(times_read(e)[value] for _, e in pairs) < 2:
        return False
    again = computed_from(read, value, knowledge)
    return again is not None and operations_in(again) > 1


def _in_full(e: Expr, knowledge: Facts) -> Expr:
    """``e`` with everything in it unfolded that is as good when it is computed again."""
    compared = _compared(e)
    found = {t: _again(t.at_home, knowledge, t.at_home in compared) for t in tensors_in(e)}
    again = {t: along(form, t) for t, form in found.items() if form is not None}
    return _in_full(written_in(e, again), knowledge) if again else e


@lru_cache(maxsize=8192)
def _compared(e: Expr) -> frozenset[Tensor]:
    """The tensors that conditions in ``e`` compare, where these are choices."""
    return frozenset(t.at_home for side in e.atoms(Compared) for t in tensors_in(side))
