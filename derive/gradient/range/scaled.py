"""Numbers that may overflow: a moderate factor times an exponential that is not taken.

``exp(z)`` overflows where z is large, and so does everything that is made of it; the quotients and
logarithms that a forward takes of it do not. So a value is followed as ``factor*exp(exponent)``:
products add the exponents, a sum takes out the largest of them, and where the exponents cancel, or
under a logarithm, the factor is all that is computed. ``scale_rules.py`` has the identities that
are used; ``forward_plan.py`` proves the result once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TypeVar

from sympy import Add, Expr, Function, Mul, Not, Piecewise, Pow, S, cosh, exp, expand, log, sinh

from derive.gradient.range.bounds import MODERATE
from derive.gradient.range.exponential_quotients import over_positive_sums
from derive.gradient.range.exponents import Definitions, extremes_joined, limits
from derive.gradient.range.following import Scaled
from derive.gradient.range.scale_rules import identities
from derive.language.called import LONGEST_NAME, names_of, words_of
from derive.language.nodes import Reduction, Reindexing, Sum, Whole
from derive.language.symbols import Tensor, tensors_in
from derive.proof.zero.positive import is_positive, positive_quotient

Answer = TypeVar("Answer")


def _answered_once(
    question: Callable[[Scales, Expr], Answer],
) -> Callable[[Scales, Expr], Answer]:
    """Memoize ``question`` once no new values are made."""

    @wraps(question)
    def answered(self: Scales, e: Expr) -> Answer:
        if self.give_name is not None:
            return question(self, e)
        answers = self.answers.setdefault(question.__name__, {})
        if e not in answers:
            answers[e] = question(self, e)
        return answers[e]

    return answered


class Scales:
    """The values of a forward as factors times exponentials.

    ``give_name`` makes a value of an expression and names for what it is, the best one first.
    `learn` is told of every value in order; after `finished` no new ones are made.
    """

    def __init__(self, give_name: Callable[[Expr, Iterable[str]], Tensor]):
        self.give_name: Callable[[Expr, Iterable[str]], Tensor] | None = give_name
        self.definitions: dict[str, Expr] = {}
        self.values = Definitions(self.definitions)
        self.known: dict[str, Scaled] = {}
        self.made: dict[str, Tensor] = {}
        self.named: dict[Expr, Tensor] = {}
        self.answers: dict[str, dict[Expr, object]] = {}

    def learn(self, tensor: Tensor, e: Expr) -> None:
        """Take note of the value ``tensor = e``, where an exponential can be taken out of it."""
        self.definitions[tensor.name] = e
        scaled = self.of(e)
        if scaled.exponent == 0:
            return
        if scaled.factor.has(Reduction, Whole):
            names = _names_over(tensor, scaled)
            scaled = Scaled(self.name(scaled.factor, names), scaled.exponent)
        self.known[tensor.name] = scaled

    def finished(self) -> Scales:
        """The same scales, with no new values from now on."""
        self.give_name = None
        return self

    def name(self, e: Expr, names: Iterable[str]) -> Expr:
        """The value that ``e`` is, or ``e`` itself where no more values are made."""
        if e in self.named or self.give_name is None:
            return self.named.get(e, e)
        tensor = self.named[e] = self.give_name(e, names)
        if tensor.name not in self.definitions:
            self.definitions[tensor.name] = e
            self.made[tensor.name] = tensor
        return tensor

    @_answered_once
    def of(self, e: Expr) -> Scaled:
        """``e`` as a factor times an exponential."""
        for kind, identity in identities.items():
            if isinstance(e, kind):
                return identity.rewrite(self, e)
        return Scaled(self.inside(e))

    @_answered_once
    def safe(self, e: Expr) -> Expr:
        """``e`` without exponentials that overflow, as far as they cancel; otherwise as it is."""
        if not self.overflows(e):
            return e
        if isinstance(e, Mul):
            return self._safe_product(e)
        if isinstance(e, Add):
            return extremes_joined(self.inside(e))
        scaled = self.of(e)
        return self.value_of(scaled) if self._is_held(scaled.exponent) else self.inside(e)

    def _safe_product(self, e: Mul) -> Expr:
        """The first form that does not overflow: each factor by itself, quotients by a positive
        sum, the exponents added, multiplied out; else one exponential instead of several.
        """
        inside = self.inside(e)
        if not self.overflows(inside):
            return inside
        over = over_positive_sums(Mul(*map(self.values.unfolded, e.args)))
        if not self.overflows(over):
            return over
        scaled = self.of(e)
        if self._is_held(scaled.exponent) and not self.overflows(scaled.factor):
            return self.value_of(scaled)
        guarded = self.guarded(e)
        if self._is_held(guarded.exponent) and not self.overflows(guarded.factor):
            return self.value_of(guarded)
        terms = e.expand(deep=False, power_exp=False, power_base=False, log=False)
        if isinstance(terms, Add):
            safe = Add(*map(self.safe, terms.args))
            if not self.overflows(safe):
                return safe
        growing = [f for f in e.args if self.of(f).exponent != 0]
        several = len(growing) > 1 and not self.overflows(scaled.factor)
        return self.value_of(scaled) if several else inside

    def value_of(self, scaled: Scaled) -> Expr:
        """The value itself, with the exponential under its name if it has one."""
        exponential = exp(self.named.get(scaled.exponent, scaled.exponent))
        return scaled.factor * self.named.get(exponential, exponential)

    def overflows(self, e: Expr) -> bool:
        """Whether something in ``e`` becomes infinite, or the logarithm of zero, where the value
        of ``e`` need not.
        """
        return bool(self.risks(e))

    @_answered_once
    def risks(self, e: Expr) -> set[Expr]:
        """Values, exponentials and logarithms in ``e`` that may become infinite, or the logarithm
        of zero, although ``e`` need not.

        The reciprocal of a positive sum is no risk: where the sum is infinite, it is zero.
        """
        if isinstance(e, Tensor):
            scaled = self.known.get(e.name)
            held = scaled is None or self._is_held(scaled.exponent)
            return set() if held or self._is_moderate(e) else {e}
        if isinstance(e, exp):
            forms = e.exp, self.values.unfolded(e.exp)
            return set() if any(map(self._is_held, forms)) else {e}
        if isinstance(e, (cosh, sinh)):
            return {e}
        if isinstance(e, Pow) and e.exp.is_negative and self._may_be_none(e.base):
            return {e.base}
        if isinstance(e, Pow) and e.exp.is_negative and is_positive(e.base):
            return set()
        if isinstance(e, log):
            inside = self.values.bounds(e.args[0])
            if inside.is_away_from_zero and inside.is_finite:
                return self.risks(e.args[0])
            return {e} if self.of(e).factor != e else set()
        if isinstance(e, Piecewise):
            return self._risks_of_choice(e)
        return set().union(*(self.risks(arg) for arg in e.args if isinstance(arg, Expr)))

    def _risks_of_choice(self, e: Piecewise) -> set[Expr]:
        """The risks of each branch where that is chosen: exp(x) is held where x <= 0."""
        found, passed = set(), []
        for value, condition in e.args:
            holds = [condition, *passed]
            found |= {
                risk
                for risk in self.risks(value)
                if not (isinstance(risk, exp) and any(limits(risk.exp, c) for c in holds))
            }
            passed.append(Not(condition))
        return found

    def _may_be_none(self, e: Expr) -> bool:
        """Whether ``e`` may underflow. A sum of terms of an entry's own is
        divided by its largest instead (`over_positive_sums`).
        """
        definition = self.values.definition_of(e) or e
        several = isinstance(definition, Add) and not definition.has(Sum)
        several |= isinstance(definition, cosh)
        return not several and self.of(e).exponent != 0

    def may_vanish(self, e: Expr) -> bool:
        """Whether ``e`` is a difference, such as 1 - 1/(1 + exp(-x)), that may underflow or round
        to 0.
        """
        quotient = self.quotient(e)
        return quotient != e and self.of(quotient).exponent != 0

    def inside(self, e: Expr) -> Expr:
        if isinstance(e, Tensor) or not e.args:
            return e
        if isinstance(e, Whole):
            return e.through(self.safe)
        if isinstance(e, (Reduction, Reindexing)):
            return e.on(self.safe(e.operand)) if isinstance(e, (Sum, Reindexing)) else e
        if isinstance(e, Piecewise):
            return e.func(*((self.safe(value), condition) for value, condition in e.args))
        if not isinstance(e, (Add, Mul, Pow, Function)):
            return e
        return e.func(*(self.safe(arg) if isinstance(arg, Expr) else arg for arg in e.args))

    @_answered_once
    def guarded(self, e: Expr) -> Scaled:
        """a*exp(k)/(b*exp(k) + g) = a/(b + g), where a is 0 wherever g is not: g keeps from
        dividing by a sum of nothing. Whether a is 0 there, the proof of the line decides.
        """
        parts = []
        for base, power in (factor.as_base_exp() for factor in Mul.make_args(e)):
            terms = Add.make_args(self.values.definition_of(base) or base)
            guards = [term for term in terms if self._is_guard(term)]
            others = self.of(Add(*(term for term in terms if term not in guards)))
            if guards and power.is_Integer and others.exponent != 0:
                guarded = (others.factor + Add(*guards)) ** power
                parts.append(Scaled(guarded, power * others.exponent))
            else:
                parts.append(self.of(base**power))
        exponent = expand(Add(*(part.exponent for part in parts)))
        return Scaled(Mul(*(part.factor for part in parts)), exponent)

    def _is_guard(self, term: Expr) -> bool:
        """Whether ``term`` is a choice between numbers, 0 among them, that does not ask for what
        may be too large or too small.
        """
        term = self.values.definition_of(term) or term
        values = [value for value, _ in term.args] if isinstance(term, Piecewise) else [S.One]
        asks_safely = not any(t.name in self.known for t in tensors_in(term))
        return 0 in values and all(value.is_number for value in values) and asks_safely

    @_answered_once
    def stays_moderate(self, exponent: Expr) -> bool:
        """Whether an exponent is at most zero, and zero somewhere in its row: an entry minus the
        largest. What is negative by its sign alone may be so everywhere, and all exponentials 0.
        """
        largest_is_zero = self.values.is_nonpositive(exponent) and not exponent.is_nonpositive
        return largest_is_zero or self._is_moderate(exponent)

    @_answered_once
    def _is_held(self, exponent: Expr) -> bool:
        """Whether the exponential of ``exponent`` is a number that is not too large."""
        return self.values.is_nonpositive(exponent) or self.values.bounds(exponent).high <= MODERATE

    def _is_moderate(self, exponent: Expr) -> bool:
        return self.values.bounds(exponent).is_moderate

    def quotient(self, e: Expr) -> Expr:
        """A difference such as 1 - 1/(1 + exp(-x)) as the quotient of positive sums that it is."""
        whole = self.values.unfolded(e)
        if whole.has(Reduction, Reindexing, Whole, Piecewise) or not whole.has(exp, cosh):
            return e
        if is_positive(whole):
            return whole
        multiplied = expand(whole)
        return multiplied if is_positive(multiplied) else positive_quotient(whole) or e


def _names_over(tensor: Tensor, scaled: Scaled) -> Iterable[str]:
    """Names for the factor of ``tensor``, which is that value over an exponential."""
    exponent = getattr(scaled.exponent, "name", None) or words_of(scaled.exponent)
    over = f"{tensor.name}_over_exp_{exponent}"
    over = over if exponent and len(over) <= LONGEST_NAME else f"{tensor.name}_over_its_largest"
    return names_of(scaled.factor, tensor.name, over)
