"""The statements of the gradients, arranged: what they share is computed once, in values that are
safe and cheap.

`stages` is run in its order. The contract of a stage: it receives an `Arrangement` and returns one
that has the same values; every change is a step of the record.

- *share*: a sum that is a gradient already, or that two others are made of, is computed once;
- *improve*: a saved value is replaced where something equal is cheaper (``alternatives.py``);
- *stable*: what could overflow is written in values that do not (``scaled.py``);
- *choose*: where a choice is 0 nothing is divided;
- *compute again*: what follows entry by entry from what is read anyway is not saved
  (``recomputation.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sympy import Expr, Mul, Piecewise, Pow

from derive.closing.alternatives import improved
from derive.closing.common_sums import with_common_sums
from derive.closing.cost import arithmetic
from derive.closing.factoring import factored
from derive.closing.facts import Facts
from derive.closing.logarithms import picked_logarithms
from derive.closing.recomputation import computed_again
from derive.closing.risks import divisors
from derive.closing.shares import with_other_shares
from derive.closing.sharing import evaluated_once, shared
from derive.closing.steps import Pairs, Record
from derive.language.nodes import OneHot
from derive.language.operations import operations_in
from derive.language.symbols import Tensor
from derive.language.traversal import everywhere


@dataclass(frozen=True)
class Arrangement:
    """The statements ``pairs``, of which those of ``wanted`` gradients stay whatever happens.

    ``products`` may be named in a gradient that they `flows` to; ``taken`` are the names that stand
    for something else, and ``again`` says which value a statement computes again.
    """

    pairs: Pairs
    knowledge: Facts
    record: Record
    wanted: set[Tensor]
    products: dict[Tensor, Expr]
    flows: Callable[[Tensor, Tensor], bool]
    taken: set[str]
    again: Mapping[Tensor, Tensor] = field(default_factory=dict)

    def on(self, pairs: Pairs) -> Arrangement:
        """The same with other statements."""
        return replace(self, pairs=pairs)

    def each(self, rewrite: Callable[[Tensor, Expr, Facts, Record], Expr]) -> Arrangement:
        """The same with every expression rewritten."""
        return self.on([(t, rewrite(t, e, self.knowledge, self.record)) for t, e in self.pairs])


def arranged(start: Arrangement) -> Arrangement:
    """What the last of the stages gives."""
    for stage in stages.values():
        start = stage(start)
    return start


def factored_out(e: Expr, target: Tensor, record: Record) -> Expr:
    why = "common factors move outside"
    return record.add(target, "factor", e, factored(e), why)


def _shortened(target: Tensor, e: Expr, knowledge: Facts, record: Record) -> Expr:
    """``e`` factored once more, where that is no more to do: a value that was written out may have
    factors that cancel. A one-hot is worth more as a factor of a term, which an index replaces.
    """
    after = factored(e)
    more = (arithmetic(after), operations_in(after)) > (arithmetic(e), operations_in(e))
    return e if more or e.has(OneHot) else factored_out(e, target, record)


def safe(target: Tensor, e: Expr, knowledge: Facts, record: Record) -> Expr:
    """``e`` in values that do not overflow, where there is such a form."""
    picked = picked_logarithms(e, knowledge.relations)
    stable = knowledge.relations.scales_after.safe(picked)
    stable = e if stable == e else factored(stable)
    return record.add(target, "scale", e, stable, "no exponential can overflow")


def _chosen(target: Tensor, e: Expr, knowledge: Facts, record: Record) -> Expr:
    """``e`` without quotients of choices, one of which is 0."""
    why = "no division where the choice is 0"
    return record.add(target, "choice", e, everywhere(e, _quotient_chosen), why)


def _quotient_chosen(node: Expr) -> Expr | None:
    """``Piecewise((a, c), (0, True))/v`` as ``Piecewise((a/v, c), (0, True))``: 0/0 is no 0."""
    factors = Mul.make_args(node)
    choices = [f for f in factors if isinstance(f, Piecewise)]
    quotients = [f for f in factors if divisors(f) and isinstance(f, Pow)]
    if len(choices) != 1 or not quotients or not any(value == 0 for value, _ in choices[0].args):
        return None
    inside = ((value * Mul(*quotients), condition) for value, condition in choices[0].args)
    rest = (f for f in factors if f not in choices and f not in quotients)
    return Mul(*rest, Piecewise(*inside))


def _computed_again(a: Arrangement) -> Arrangement:
    pairs, again = computed_again(a.pairs, a.taken, a.knowledge, a.record)
    return replace(a, pairs=pairs, again=again)


stages: dict[str, Callable[[Arrangement], Arrangement]] = {
    "common sums": lambda a: a.on(with_common_sums(a.pairs, a.knowledge.relations, a.record)),
    "other shares": lambda a: a.on(with_other_shares(a.pairs, a.knowledge.relations, a.record)),
    "share": lambda a: a.on(shared(a.pairs, a.wanted, a.products, a.taken, a.flows, a.record)),
    "improve": lambda a: a.on(improved(a.pairs, a.knowledge, a.record)),
    "stable": lambda a: a.each(safe),
    "improve again": lambda a: a.on(improved(a.pairs, a.knowledge, a.record)),
    "choose": lambda a: a.each(_chosen),
    "compute again": _computed_again,
    "shorten": lambda a: a.each(_shortened),
    "evaluate once": lambda a: a.on(evaluated_once(a.pairs, a.taken, a.record)),
}
