"""Other ways of writing a finished closed form: each is tried, and kept where it is cheaper.

In: the statements of a closed form. Out: the same statements, in which a value of the forward may
have been replaced by an equal expression. Every rewriting is a step of the record.

- *unfold*: what is plain arithmetic of inputs, or of values that are saved anyway, is cheaper to
  compute again than to save;
- *logarithm*: from ``y = m + log(s)`` follows ``exp(x - m)/s = exp(x - y)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from sympy import Add, Expr, Function, Mul, Piecewise, Pow, atan, cos, erf, exp, sin, tanh

from derive.closing.facts import Facts
from derive.closing.recomputation import computed_from, times_read
from derive.closing.risks import divisors, preference
from derive.closing.steps import Pairs, Record, Step
from derive.closing.sum_rules import reshaped_back
from derive.language.choices import Compared, written_in
from derive.language.nodes import ArgMax, ArrayNode, Max, Sum, along
from derive.language.operations import is_evaluated, operations_in
from derive.language.symbols import Tensor, axes_of, is_constant, tensors_in
from derive.language.traversal import everywhere
from derive.values.naming import Value
from derive.values.relations import Relations

BOUNDED = (atan, cos, erf, sin, tanh)


@dataclass(frozen=True)
class Rewriting:
    """One way of writing all statements otherwise; ``rewrite`` takes the expression of each."""

    rule: str
    why: str
    rewrite: Callable[[Expr], Expr]


@lru_cache(maxsize=8192)  # a search for names meets the same ones again
def _in_place_of(value: Tensor, definition: Expr, e: Expr) -> Expr:
    """``e`` with ``value`` written out."""
    met = [t for t in tensors_in(e) if t.name == value.name]
    if not met:
        return e
    whole = written_in(e, {t: along(definition, t) for t in met})
    return everywhere(whole, lambda node: reshaped_back(node, None))


@lru_cache(maxsize=8192)
def _compared(e: Expr) -> frozenset[Tensor]:
    """The tensors that conditions in ``e`` compare, where these are choices."""
    return frozenset(t.at_home for side in e.atoms(Compared) for t in tensors_in(side))


def improved(pairs: Pairs, knowledge: Facts, record: Record) -> Pairs:
    """``pairs`` rewritten again and again in the way that saves most, until none saves anything."""
    relations = knowledge.relations
    best = preference(pairs, relations)
    while True:
        trials = [_tried(pairs, rewriting) for rewriting in _rewritings(pairs, knowledge)]
        reached = [(preference(tried, relations), i) for i, (tried, _) in enumerate(trials)]
        least, first = min(reached, default=(best, 0))
        if not least < best:
            return pairs
        best, (pairs, steps) = least, trials[first]
        record.steps.extend(steps)


def _tried(pairs: Pairs, rewriting: Rewriting) -> tuple[Pairs, list[Step]]:
    """The statements after ``rewriting``, and its steps."""
    trial, rule, why = Record(), rewriting.rule, rewriting.why
    tried = [(t, trial.add(t, rule, e, rewriting.rewrite(e), why)) for t, e in pairs]
    return tried, trial.steps


def _rewritings(pairs: Pairs, knowledge: Facts) -> Iterator[Rewriting]:
    relations = knowledge.relations
    read = {t.at_home for _, e in pairs for t in tensors_in(e) if t.name in relations.by_name}
    dividing = {divisor for _, e in pairs for divisor in divisors(e)}
    deciding = {compared for _, e in pairs for compared in _compared(e)}
    for value in sorted(read, key=lambda t: relations.position[t.name]):
        for logarithm, (equal, by) in relations.solved["logarithm"].items():
            if logarithm.args[0].name == value.name:
                yield from _logarithms(logarithm.args[0], equal, by, knowledge)
        if _is_named_again(value, pairs, read, knowledge):
            continue
        if _is_computed_again(value, value in dividing, knowledge, value in deciding):
            once = relations.unfolded(value)
            for definition in dict.fromkeys((once, _in_full(once, knowledge))):
                yield _unfolding(value, definition)


def _is_named_again(value: Tensor, pairs: Pairs, read: set[Tensor], knowledge: Facts) -> bool:
    """Whether ``value`` is computed again once, under a name (``recomputation.py``): it takes more
    than one operation, and would be written out more than once.
    """
    if sum(times_read(e)[value] for _, e in pairs) < 2:
        return False
    again = computed_from(read, value, knowledge)
    return again is not None and operations_in(again) > 1


def _unfolding(value: Tensor, definition: Expr) -> Rewriting:
    why = f"{value} is cheaper to recompute than to save"
    return Rewriting("unfold", why, lambda e: _in_place_of(value, definition, e))


def _in_full(e: Expr, knowledge: Facts) -> Expr:
    """``e`` with everything in it unfolded that is as good when it is computed again."""
    known = [t for t in tensors_in(e) if t.name in knowledge.relations.by_name]
    compared = _compared(e)
    again = [
        t for t in known if _is_computed_again(t.at_home, False, knowledge, t.at_home in compared)
    ]
    unfolded = written_in(e, {t: knowledge.relations.unfolded(t) for t in again})
    return _in_full(unfolded, knowledge) if again else e


def _is_computed_again(
    value: Tensor, divides: bool, knowledge: Facts, compared: bool = False
) -> bool:
    """Whether the definition of ``value`` is safe to do again, and as good.

    A difference that is centred when it is saved would lose that, and one case of a divisor may be
    zero. A choice on which another one is made would have to be made in every condition.
    A function that has a name of its own is computed by the forward anyway.
    """
    relations = knowledge.relations
    e = relations.unfolded(value)
    chooses = (divides or compared) and e.has(Piecewise)
    named = value.name in relations.definition.by_name
    evaluated = named and any(map(is_evaluated, e.atoms(Function)))
    return is_safe(e) and not chooses and not evaluated and not knowledge.centred_along(value)


@lru_cache(maxsize=8192)
def is_safe(e: Expr) -> bool:
    """Built of +, -, *, whole powers, division by constants, comparisons, and functions that are
    bounded: computed again, it is the same and finite.
    """
    powers = all(
        is_constant(p) or (p.exp.is_Integer and (p.exp > 0 or is_constant(p.base)))
        for p in e.atoms(Pow)
    )
    functions = (f for f in e.atoms(Function) if is_evaluated(f))
    return powers and all(isinstance(f, BOUNDED) for f in functions) and not e.has(Sum, Max, ArgMax)


def _logarithms(
    divisor: Tensor, logarithm: Expr, value: Value, knowledge: Facts
) -> Iterator[Rewriting]:
    """``exp(u)*s**k = exp(u + k*log(s))`` for a reduction ``s``, with the exponent written out or
    under its name, or as the value that this is; then the same where no exponential stands by.

    A sum of a few terms is as cheap to compute again, and loses nothing: ``u + k*log(s)`` is
    rounded as ``u`` is.
    """
    relations = knowledge.relations

    def written_out(exponent: Expr) -> Expr:
        return exponent.expand(deep=False)

    def merged(exponent: Expr) -> Expr:
        return exp(written_out(exponent))

    def named(exponent: Expr) -> Expr:
        return exp(relations.with_values(written_out(exponent)))

    def recognised(exponent: Expr) -> Expr:
        whole = exp(relations.with_values(relations.with_parts(written_out(exponent))))
        return relations.inversions.get(whole, whole)

    def alone(e: Expr) -> Expr:
        return e.xreplace({divisor: exp(written_out(logarithm))})

    why = f"{value.tensor} holds the logarithm of {divisor}"
    reduced = relations.unfolded(divisor).has(Sum)
    for finished in (merged, named, recognised) if reduced else ():
        yield Rewriting(
            "logarithm",
            why,
            lambda e, finished=finished: everywhere(
                e, lambda node: _exponentials_merged(node, divisor, logarithm, finished)
            ),
        )
    if axes_of(logarithm) <= axes_of(divisor) and _depends_on_others(divisor, relations):
        yield Rewriting("logarithm", why, alone)


def _depends_on_others(value: Tensor, relations: Relations) -> bool:
    """Whether other entries are needed for an entry: such a value cannot be computed again where it
    is read.
    """
    e = relations.unfolded(value)
    known = (t for t in tensors_in(e) if t.name in relations.by_name)
    return e.has(ArrayNode) or any(_depends_on_others(t, relations) for t in known)


def _exponentials_merged(
    node: Expr, divisor: Tensor, logarithm: Expr, finished: Callable[[Expr], Expr]
) -> Expr | None:
    """A product of exponentials and a power of ``divisor`` as one exponential."""
    factors = Mul.make_args(node)
    exponent = Add(*(f.exp for f in factors if isinstance(f, exp)))
    power = node.as_powers_dict().get(divisor, 0) if isinstance(node, Mul) else 0
    if power == 0 or exponent == 0 or not axes_of(logarithm) <= axes_of(exponent):
        return None
    rest = Mul(*(f for f in factors if not isinstance(f, exp))) * divisor**-power
    return rest * finished(exponent + power * logarithm)
