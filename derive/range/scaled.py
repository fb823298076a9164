"""Numbers too large to be written down: a moderate factor times an exponential that is not taken.

``exp(z)`` overflows where z is large, and so does everything that is made of it; the quotients and
logarithms that a forward takes of it do not. So a value is followed as ``factor*exp(exponent)``:
products add the exponents, a sum takes out the largest of them, and where the exponents cancel, or
under a logarithm, the factor is all that is computed. `identities` has what is used, each with its
condition; ``tests/test_stability.py`` proves every one, and ``forward_plan.py`` proves the result
once more.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import reduce, wraps
from typing import TypeVar

from sympy import (
    Abs,
    Add,
    Basic,
    Expr,
    Function,
    Ge,
    Gt,
    Le,
    Lt,
    Mul,
    Not,
    Piecewise,
    Pow,
    S,
    cosh,
    exp,
    expand,
    log,
    sinh,
)

from derive.language.identity import Identity
from derive.language.nodes import Peak, Reduction, Reshaping, Sum, renamed
from derive.language.symbols import MINUS_INFINITY, Tensor, axes_of, tensors_in
from derive.range.bounds import MODERATE
from derive.range.exponential_quotients import over_positive_sums
from derive.range.exponents import Definitions, extreme, is_extreme
from derive.zero.positive import is_positive, positive_quotient


@dataclass(frozen=True)
class Scaled:
    """The value ``factor*exp(exponent)``."""

    factor: Expr
    exponent: Expr = S.Zero


Answer = TypeVar("Answer")


def _answered_once(
    question: Callable[[Scales, Expr], Answer],
) -> Callable[[Scales, Expr], Answer]:
    """``question`` with its answers remembered, as soon as no new values are made."""

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

    ``give_name`` makes a value of an expression and words for what it is. `learn` is told of every
    value in order; after `finished` no new ones are made.
    """

    def __init__(self, give_name: Callable[[Expr, str], Tensor]):
        self.give_name: Callable[[Expr, str], Tensor] | None = give_name
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
        if scaled.factor.has(Reduction):
            words = f"{tensor.name}_scaled"
            scaled = Scaled(self.name(scaled.factor, words), scaled.exponent)
        self.known[tensor.name] = scaled

    def finished(self) -> Scales:
        """The same, from now on without new values."""
        self.give_name = None
        return self

    def after_forward(self) -> Scales:
        """The same for the backward, which has all values at hand: a logarithm of what it has is
        taken again rather than saved.
        """
        scales = copy(self)
        scales.answers = {}
        scales.named = {e: t for e, t in self.named.items() if not isinstance(e, log)}
        return scales

    def name(self, e: Expr, words: str) -> Expr:
        """The value that ``e`` is, or ``e`` itself where no more values are made."""
        if e in self.named or self.give_name is None:
            return self.named.get(e, e)
        tensor = self.named[e] = self.give_name(e, words)
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
        return Scaled(self._inside(e))

    @_answered_once
    def safe(self, e: Expr) -> Expr:
        """``e`` without exponentials that overflow, as far as they cancel; otherwise as it is."""
        if not self.overflows(e):
            return e
        if isinstance(e, Mul):
            return self._safe_product(e)
        if isinstance(e, Add):
            return _extremes_joined(self._inside(e))
        scaled = self.of(e)
        return self._value(scaled) if self._is_held(scaled.exponent) else self._inside(e)

    def _safe_product(self, e: Mul) -> Expr:
        """The first form that does not overflow: each factor by itself, quotients by a positive
        sum, the exponents added, multiplied out; else one exponential in the place of several.
        """
        inside = self._inside(e)
        if not self.overflows(inside):
            return inside
        over = over_positive_sums(Mul(*map(self.values.unfolded, e.args)))
        if not self.overflows(over):
            return over
        scaled = self.of(e)
        if self._is_held(scaled.exponent) and not self.overflows(scaled.factor):
            return self._value(scaled)
        guarded = self.guarded(e)
        if self._is_held(guarded.exponent) and not self.overflows(guarded.factor):
            return self._value(guarded)
        terms = e.expand(deep=False, power_exp=False, power_base=False, log=False)
        if isinstance(terms, Add):
            safe = Add(*map(self.safe, terms.args))
            if not self.overflows(safe):
                return safe
        growing = [f for f in e.args if self.of(f).exponent != 0]
        several = len(growing) > 1 and not self.overflows(scaled.factor)
        return self._value(scaled) if several else inside

    def _value(self, scaled: Scaled) -> Expr:
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
        """What in ``e`` becomes infinite, or the logarithm of zero, where the value of ``e`` need
        not: values, exponentials and logarithms.

        What is divided by a sum of positive numbers may be infinite there: then it is zero.
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
        """Those of each branch where that is chosen: exp(x) is held where x <= 0."""
        found, passed = set(), []
        for value, condition in e.args:
            holds = [condition, *passed]
            found |= {
                risk
                for risk in self.risks(value)
                if not (isinstance(risk, exp) and any(_limits(risk.exp, c) for c in holds))
            }
            passed.append(Not(condition))
        return found

    def _may_be_none(self, e: Expr) -> bool:
        """Whether ``e`` may be too small to be written down. A sum of terms of an entry's own is
        divided by its largest instead (`over_positive_sums`).
        """
        definition = self.values.definition_of(e) or e
        several = isinstance(definition, Add) and not definition.has(Sum)
        return not several and self.of(e).exponent != 0

    def may_vanish(self, e: Expr) -> bool:
        """Whether ``e`` is a difference, such as 1 - 1/(1 + exp(-x)), of which nothing may be left
        that can be written down.
        """
        quotient = self._quotient(e)
        return quotient != e and self.of(quotient).exponent != 0

    def _inside(self, e: Expr) -> Expr:
        if isinstance(e, Tensor) or not e.args:
            return e
        if isinstance(e, (Reduction, Reshaping)):
            return e.on(self.safe(e.operand)) if isinstance(e, (Sum, Reshaping)) else e
        if isinstance(e, Piecewise):
            return e.func(*((self.safe(value), condition) for value, condition in e.args))
        if not isinstance(e, (Add, Mul, Pow, Function)):
            return e
        return e.func(*map(self.safe, e.args))

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

    # -- the rules, one for each kind of node -----------------------------------

    def _tensor(self, e: Tensor) -> Scaled:
        scaled = self.known.get(e.name)
        if scaled is None:
            return Scaled(e)
        met = dict(zip(e.home, e.axes, strict=True))
        return Scaled(renamed(scaled.factor, met), renamed(scaled.exponent, met))

    def _exponential(self, e: exp) -> Scaled:
        exponent = self.values.unfolded(e.exp)
        return Scaled(e) if self._stays_moderate(exponent) else Scaled(S.One, exponent)

    @_answered_once
    def _stays_moderate(self, exponent: Expr) -> bool:
        """Whether an exponent is at most zero, and zero somewhere in its row: an entry minus the
        largest. What is negative by its sign alone may be so everywhere, and all exponentials 0.
        """
        largest_is_zero = self.values.is_nonpositive(exponent) and not exponent.is_nonpositive
        return largest_is_zero or self._is_moderate(exponent)

    @_answered_once
    def _is_held(self, exponent: Expr) -> bool:
        """Whether the exponential of it is a number that is not too large."""
        return self.values.is_nonpositive(exponent) or self.values.bounds(exponent).high <= MODERATE

    def _is_moderate(self, exponent: Expr) -> bool:
        return self.values.bounds(exponent).is_moderate

    def _hyperbolic(self, e: cosh) -> Scaled:
        return self.of(e.rewrite(exp))

    def _product(self, e: Mul) -> Scaled:
        parts = [self.of(factor) for factor in e.args]
        exponent = expand(Add(*(part.exponent for part in parts)))
        return Scaled(Mul(*(part.factor for part in parts)), exponent)

    def _power(self, e: Pow) -> Scaled:
        base = self.of(e.base)
        if base.exponent == 0 or not (e.exp.is_Integer or is_positive(base.factor)):
            return Scaled(self._inside(e))
        return Scaled(base.factor**e.exp, expand(base.exponent * e.exp))

    def _sum_of_terms(self, e: Add) -> Scaled:
        parts = [self.of(term) for term in e.args]
        exponents = list(dict.fromkeys(part.exponent for part in parts))
        if exponents == [0]:
            return Scaled(Add(*(part.factor for part in parts)))
        if len(exponents) == 1:
            return Scaled(Add(*(part.factor for part in parts)), exponents[0])
        if not all(map(is_positive, e.args)):
            whole = self._quotient(e)
            return Scaled(Add(*map(self.safe, e.args))) if whole == e else self.of(whole)
        weights = [Add(*(part.factor for part in parts if part.exponent == k)) for k in exponents]
        exponents = [self._without_choice(k, "exponent") for k in exponents]
        largest = reduce(self._larger, exponents)
        if largest is None:
            return Scaled(Add(*map(self.safe, e.args)))
        decided = largest in exponents
        if len(exponents) == 2 and weights[0] == weights[1] and not decided:
            return Scaled(weights[0] * (1 + exp(-Abs(exponents[0] - exponents[1]))), largest)
        pairs = zip(weights, exponents, strict=True)
        return Scaled(Add(*(w * exp(k - largest) for w, k in pairs)), largest)

    def _larger(self, a: Expr | None, b: Expr) -> Expr | None:
        """The larger of two exponents; None where a choice in them can be given no name."""
        if a is not None and self.values.is_nonpositive(b - a):
            return a
        if a is not None and self.values.is_nonpositive(a - b):
            return b
        a = None if a is None else self._without_choice(a, "larger_exponent")
        return None if a is None or a.has(Piecewise) or b.has(Piecewise) else extreme(a, b)

    def _without_choice(self, e: Expr, words: str) -> Expr:
        """``e``, under a name where it holds a choice: so no choice asks for another."""
        return self.name(e, words) if e.has(Piecewise) else e

    def _sum_along(self, e: Sum) -> Scaled:
        operand = self.of(e.operand)
        carried = [axis for axis in e.axes if axis in axes_of(operand.exponent)]
        if not carried:
            return Scaled(e.on(operand.factor), operand.exponent)
        if self._stays_moderate(operand.exponent):
            return Scaled(e.on(self._value(operand)))
        words = getattr(operand.exponent, "name", "exponent")
        terms = Add.make_args(operand.exponent)
        varying = Add(*(term for term in terms if axes_of(term) & {*carried}))
        top = varying
        for axis in carried:
            top = Peak.over(top, [axis])
        top = self.name(top, f"{words}_max") + operand.exponent - varying
        difference = self.name(operand.exponent - top, f"{words}_shifted")
        shifted = self.name(exp(difference), f"exp_{words}_shifted")
        return Scaled(e.on(operand.factor * shifted), top)

    def _choice(self, e: Piecewise) -> Scaled:
        """Only where there is nothing but 0 to choose instead."""
        others = [value for value, _ in e.args if value != 0]
        scaled = self.of(others[0]) if len(others) == 1 < len(e.args) else Scaled(S.One)
        if scaled.exponent == 0:
            return Scaled(self._inside(e))
        words = getattr(scaled.exponent, "name", "exponent")
        chosen = Piecewise(*((scaled.exponent if v != 0 else MINUS_INFINITY, c) for v, c in e.args))
        factor = scaled.factor
        if factor != 1:
            factor = Piecewise(*((factor if v != 0 else v, c) for v, c in e.args))
        return Scaled(factor, self.name(chosen, f"{words}_chosen"))

    def _logarithm(self, e: log) -> Scaled:
        argument = self.of(e.args[0])
        scaled = argument
        if argument.exponent == 0:
            scaled = self.of(self._quotient(e.args[0]))
        if scaled.exponent == 0:
            return Scaled(log(argument.factor))
        rest = _split(scaled.factor).replace(_is_of_exponentials, self._named_logarithm)
        return Scaled(rest + self.named.get(scaled.exponent, scaled.exponent))

    def _named_logarithm(self, e: log) -> Expr:
        """log(1 + exp(-|x|)) under one name, wherever it is met."""
        words = "_".join(dict.fromkeys(t.name for t in tensors_in(e)))
        return self.name(e, f"{words}_log_term" if len(words) < 30 else "log_term")

    def _quotient(self, e: Expr) -> Expr:
        """A difference such as 1 - 1/(1 + exp(-x)) as the quotient of positive sums that it is."""
        whole = self.values.unfolded(e)
        if whole.has(Reduction, Reshaping, Piecewise) or not whole.has(exp, cosh):
            return e
        if is_positive(whole):
            return whole
        multiplied = expand(whole)
        return multiplied if is_positive(multiplied) else positive_quotient(whole) or e


def _extremes_joined(e: Expr) -> Expr:
    """``e`` with max(a, b) + min(a, b) = a + b used, and like terms under logarithms collected."""
    for node in sorted(e.atoms(Piecewise), key=lambda node: node.sort_key()):
        if is_extreme(node):
            values = [value for value, _ in node.args]
            other = extreme(*values, largest=False)
            joined = expand(e.xreplace({node: Add(*values) - other}))
            if joined.count_ops() < e.count_ops():
                e = joined
    return e


def _split(e: Expr) -> Expr:
    """The logarithm of a product of positive factors, one by one."""
    if isinstance(e, Mul) and all(map(is_positive, e.args)):
        return Add(*map(_split, e.args))
    if isinstance(e, Pow) and is_positive(e.base):
        return e.exp * _split(e.base)
    content, primitive = e.primitive() if isinstance(e, Add) else (S.One, e)
    if content != 1:
        return log(content) + _split(primitive)
    return e.exp if isinstance(e, exp) else log(e)


def _limits(exponent: Expr, condition: Basic) -> bool:
    """Whether an exponent is at most a number where the condition holds."""
    if not isinstance(condition, (Ge, Gt, Le, Lt)):
        return False
    return expand(exponent - condition.lts + condition.gts).is_number


def _is_of_exponentials(e: Expr) -> bool:
    return isinstance(e, log) and e.has(exp) and not e.has(Reduction)


# The contract: ``rewrite(scales, e)`` gives factor and exponent with e = factor*exp(exponent).
identities: dict[type, Identity] = {
    Tensor: Identity("v = f*exp(k)", "that is the value v", Scales._tensor),
    exp: Identity("exp(u) = 1*exp(u)", "always", Scales._exponential),
    cosh: Identity("cosh(u) = (exp(u) + exp(-u))/2", "always", Scales._hyperbolic),
    Mul: Identity("a*exp(j) * b*exp(k) = a*b*exp(j + k)", "always", Scales._product),
    Pow: Identity("(a*exp(k))**r = a**r*exp(r*k)", "r is whole, or a is positive", Scales._power),
    Add: Identity(
        "a*exp(j) + b*exp(k) = (a*exp(j - m) + b*exp(k - m))*exp(m)",
        "m is the larger of j and k; for a = b the bracket is a*(1 + exp(-|j - k|))",
        Scales._sum_of_terms,
    ),
    Sum: Identity(
        "Sum(a*exp(k), C) = Sum(a*exp(k - m), C)*exp(m)",
        "m = Max(k, C), or k where it does not vary along C",
        Scales._sum_along,
    ),
    Piecewise: Identity(
        "Piecewise((a*exp(k), c), (0, True)) = "
        "Piecewise((a, c), (0, True))*exp(Piecewise((k, c), (-oo, True)))",
        "always; where a is 1 it may stay 1, for exp(-oo) is 0",
        Scales._choice,
    ),
    log: Identity("log(a*exp(k)) = log(a) + k", "a is positive", Scales._logarithm),
}
