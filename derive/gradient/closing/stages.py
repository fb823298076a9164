"""Arrange the statements of the gradients: common parts are computed once, in values that are safe
and cheap.

`stages` is a table of moves, tried in its order. The contract of a move: it receives an
`Arrangement` and returns one that has the same values; every change is a step of the record. It is
kept where nothing is risked more and the whole costs no more.

- *common sums*, *copies*, *multiples*, *gradients*, *products*, *repeats*: a sum that is a gradient
  already, or that two others are made of, and what is written twice, is computed once;
- *other shares*, *stable*: what could overflow or cancel is written in values that do not;
- *improve*: a saved value is replaced where something equal is cheaper (``forms.py``);
- *choose*: where a choice is 0 nothing is divided;
- *compute again*: what follows entry by entry from what is read anyway is not saved
  (``recomputation.py``);
- *insert copies*: a statement that is only another tensor is written as that where it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sympy import Expr, Mul, Piecewise, Pow, exp

from derive.gradient.closing.common_sums import with_common_sums
from derive.gradient.closing.cost import arithmetic
from derive.gradient.closing.factoring import factored
from derive.gradient.closing.facts import Facts
from derive.gradient.closing.forms import improved, with_other_shares
from derive.gradient.closing.recomputation import computed_again
from derive.gradient.closing.risks import Preference, divisors, preference
from derive.gradient.closing.sharing import (
    copies_inserted,
    copies_removed,
    gradients_reused,
    in_order_of_use,
    multiples_reused,
    products_named,
    repeats_named,
)
from derive.gradient.closing.steps import Pairs, Record
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

    @property
    def preference(self) -> Preference:
        return preference(self.pairs, self.knowledge.relations)

    def on(self, pairs: Pairs) -> Arrangement:
        """The same with other statements."""
        return replace(self, pairs=pairs)

    def each(self, rewrite: Callable[[Tensor, Expr, Facts, Record], Expr]) -> Arrangement:
        """The same with every expression rewritten."""
        return self.on([(t, rewrite(t, e, self.knowledge, self.record)) for t, e in self.pairs])


def arranged(start: Arrangement) -> Arrangement:
    """Apply the moves of the table, each kept where nothing is risked more and the whole costs no
    more.
    """
    start = start.on(in_order_of_use(start.pairs))
    for move in stages.values():
        before = len(start.record.steps)
        after = move.make(start)
        if after.pairs == start.pairs:
            continue
        if move.unasked or after.preference <= start.preference:
            start = after
        else:
            del start.record.steps[before:]
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
    stable = knowledge.relations.scales.safe(e)
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


@dataclass(frozen=True)
class Move:
    """A rewriting of an `Arrangement`. ``unasked``: made whatever it costs, for the sake of safety
    or of a recognised form.
    """

    make: Callable[[Arrangement], Arrangement]
    unasked: bool = False


def _repeats(apart: tuple[type, ...] = ()) -> Callable[[Arrangement], Pairs]:
    def named(a: Arrangement) -> Pairs:
        def is_cheaper(now: Pairs, before: Pairs) -> bool:
            return a.on(in_order_of_use(now)).preference <= a.on(before).preference

        return repeats_named(a.pairs, a.taken, a.record, is_cheaper, apart)

    return named


def _move(rewrite: Callable[[Arrangement], Pairs]) -> Move:
    return Move(lambda a: a.on(in_order_of_use(rewrite(a))))


inserting = Move(lambda a: a.on(copies_inserted(a.pairs, a.wanted, a.record)), unasked=True)

stages: dict[str, Move] = {
    "common sums": _move(lambda a: with_common_sums(a.pairs, a.knowledge.relations, a.record)),
    "other shares": Move(
        lambda a: a.on(with_other_shares(a.pairs, a.knowledge.relations, a.record)), unasked=True
    ),
    "copies": _move(lambda a: copies_removed(a.pairs, a.wanted, a.record)),
    "multiples": _move(lambda a: multiples_reused(a.pairs, a.wanted, a.record)),
    "gradients": _move(lambda a: gradients_reused(a.pairs, a.record)),
    "products": _move(lambda a: products_named(a.pairs, a.products, a.flows, a.record)),
    "repeats": _move(_repeats()),
    "improve": _move(lambda a: improved(a.pairs, a.knowledge, a.record)),
    "stable": Move(lambda a: a.each(safe), unasked=True),
    "improve again": _move(lambda a: improved(a.pairs, a.knowledge, a.record)),
    "choose": Move(lambda a: a.each(_chosen), unasked=True),
    "compute again": Move(_computed_again),
    "insert copies": inserting,
    "shorten": Move(lambda a: a.each(_shortened), unasked=True),
    "evaluate once": _move(_repeats(apart=(exp,))),
    "insert copies again": inserting,
}
