"""Replace nonrational parts by indeterminates: expressions as rational functions of those.

An exponential of each term of an exponent, a root with its defining relation ``R**q = base``, a
logarithm, a sign as ``s*k`` with ``s**2 = 1`` and ``k**2 = k`` (0 where it is 0), a condition as
indicators of the sign that it asks for, an indicator of a group of which one at most is 1. Equal
arguments share an indeterminate, whatever they are written like.
"""

from __future__ import annotations

from collections.abc import Callable
from math import lcm

from sympy import (
    Abs,
    Add,
    Dummy,
    Expr,
    Function,
    Integer,
    Mul,
    Piecewise,
    Pow,
    Rational,
    S,
    Symbol,
    exp,
    expand,
    factor_terms,
    log,
    sign,
)
from sympy.core.function import UndefinedFunction

from derive.language.choices import without_gap
from derive.proof.zero.conditions import Signs, holding
from derive.proof.zero.fingerprints import Fingerprints
from derive.proof.zero.indicator import Indicator, by_place, is_one_hot
from derive.proof.zero.positive import (
    LARGEST_PRIME,
    in_exponentials,
    is_positive,
    log_of_number,
    logarithm_of_positive,
    scaled,
    split_log,
)

INFINITE = frozenset({S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity})


def _without_squares(e: Expr) -> tuple[Expr, Expr]:
    """Split off squares and indicators, which have no sign: ``e`` has the sign of the first, times
    the second; a square has none, and sign(k*u) = k*sign(u) for a ``k`` of 0 or 1.
    """
    odd, indicators = [], []
    for factor in Mul.make_args(factor_terms(e) if isinstance(e, (Add, Mul)) else e):
        base, power = factor.as_base_exp()
        if isinstance(factor, Indicator):
            indicators.append(factor)
        elif not (base.is_real and power.is_Integer):
            odd.append(factor)
        elif power % 2:
            odd.append(base)
    return Mul(*odd), Mul(*indicators)


class Indeterminates:
    """The indeterminates met so far, by their expressions. ``vanishes`` decides whether two
    arguments are equal, by their difference.
    """

    def __init__(self, vanishes: Callable[[Expr], bool]):
        self.vanishes = vanishes
        self.known: dict[Expr, Expr] = {}
        self.seen: set[Expr] = set()
        self.generators: dict[tuple, list[tuple[tuple, tuple, Symbol]]] = {}
        self.roots: dict[Symbol, tuple[int, Expr]] = {}
        self.scales: dict[Expr, tuple[Expr, Expr]] = {}
        self.definitions: dict[Symbol, Expr] = {}
        self.order: list[Symbol] = []
        self.signs: set[Symbol] = set()
        self.conditions: set[Symbol] = set()
        self.nonzero: dict[Symbol, Expr] = {}  # 1 where the expression is not 0, else 0
        self.shares: dict[Expr, int] = {}
        self.fingerprints = Fingerprints(
            self.definitions, self.signs, self.conditions, self.nonzero
        )

    def note_shares(self, e: Expr) -> bool:
        """The common denominator of the powers in which every base, and every term of an
        exponent, is met. False, and nothing noted, where ``e`` holds an infinity.
        """
        met, unseen = set(), [e]
        while unseen:
            node = unseen.pop()
            if node in INFINITE:
                return False
            if node not in self.seen and node not in met:
                met.add(node)
                unseen.extend(node.args)
        for node in met:
            if isinstance(node, exp):
                self._note_exponent(node.exp)
            elif isinstance(node, Pow) and node.exp.is_Rational and not node.exp.is_Integer:
                factor, rest = scaled(node.base)
                self._note_share(("root", rest), node.exp.q)
                for exponential in factor.atoms(exp):  # comes out of the root
                    self._note_exponent(exponential.exp * node.exp)
            elif isinstance(node, Pow) and not node.exp.is_Rational:
                logarithm = logarithm_of_positive(node.base)
                if logarithm is not None:
                    self._note_exponent(node.exp.as_coeff_Add()[1] * logarithm)
        self.seen |= met
        return True

    def _note_exponent(self, exponent: Expr) -> None:
        for term in Add.make_args(expand(exponent)):
            coefficient, rest = term.as_coeff_Mul()
            if coefficient.is_Rational:
                self._note_share(("exp", rest), coefficient.q)

    def _note_share(self, what, share: int) -> None:
        self.shares[what] = lcm(self.shares.get(what, 1), share)

    def rational(self, e: Expr) -> Expr:
        """``e`` as a rational expression in indeterminates."""
        if e not in self.known:
            self.known[e] = self._rational(e)
        return self.known[e]

    def _rational(self, e: Expr) -> Expr:
        if e.is_Rational or e.is_Symbol:
            return e
        if isinstance(e, (Add, Mul)):
            return e.func(*map(self.rational, e.args))
        if isinstance(e, (exp, log)) and (chosen := by_place(e)) is not None:
            return self.rational(chosen)
        if isinstance(e, exp) or e is S.Exp1:
            return self._exponential(e.as_base_exp()[1])
        if isinstance(e, Pow):
            return self._power(e)
        if isinstance(e, (Abs, sign)):
            return self._signed(e)
        if isinstance(e, Piecewise):
            return self._choice(e)
        if isinstance(e, log):
            split = split_log(in_exponentials(e.args[0]))
            if split != e:
                return self.rational(split)
        if isinstance(e, Function) and not isinstance(type(e), UndefinedFunction):
            return self._generator((type(e).__name__,), e.args)
        return self._generator(("opaque", e), (S.Zero,))

    def _exponential(self, exponent: Expr) -> Expr:
        factors = []
        exponent = exponent.replace(log, lambda u: log_of_number(u) if u.is_Rational else log(u))
        for term in Add.make_args(expand(exponent)):
            coefficient, rest = term.as_coeff_Mul()
            if not coefficient.is_Rational:
                coefficient, rest = S.One, term
            share = lcm(self.shares.get(("exp", rest), 1), coefficient.q)
            factors.append(self._generator(("exp", share), (rest,)) ** Integer(coefficient * share))
        return Mul(*factors)

    def _power(self, e: Pow) -> Expr:
        base, power = e.args
        if power.is_Integer:
            return (self._value(base) if power.is_negative else self.rational(base)) ** power
        if power.is_Rational:
            if base.is_Rational and base > 0 and len(base.factors(limit=LARGEST_PRIME)) > 1:
                return self._root_of_positive(base, power)
            factor, rest = scaled(base)
            known, base = self.scales.setdefault(rest, (factor, base))
            share = lcm(self.shares.get(("root", rest), 1), power.q)
            root = self._generator(("root", share), (base,))
            self.roots.setdefault(root, (share, self._value(base)))
            return root ** Integer(power * share) * self._root_of_positive(factor / known, power)
        whole, rest = power.as_coeff_Add()
        if rest == 0 or not whole.is_Rational:
            whole, rest = S.Zero, power
        outside = S.One if whole == 0 else self.rational(base**whole)
        logarithm = logarithm_of_positive(base)
        if logarithm is not None:
            return outside * self._exponential(rest * logarithm)
        return outside * self._generator(("power",), (base, rest))

    def _root_of_positive(self, e: Expr, power: Rational) -> Expr:
        """``e**power`` for a product of a number, exponentials and symbols, all positive, factor
        by factor.
        """
        number, rest = e.as_coeff_Mul()
        factors = [*number.factors(limit=LARGEST_PRIME).items(), *rest.as_powers_dict().items()]
        return Mul(*(self.rational(f ** (p * power)) for f, p in factors))

    def _value(self, base: Expr) -> Expr:
        """One symbol for a sum that is divided by, or under a root.

        While the symbol will do, nothing needs to be known of it: that keeps polynomials small.
        """
        inside = self.rational(base)
        if not isinstance(inside, Add):
            return inside
        symbol = self._generator(("value",), (base,))
        self.definitions.setdefault(symbol, inside)  # the first speaks of earlier values alone
        return symbol

    def _signed(self, e: Expr) -> Expr:
        inside, indicators = _without_squares(e.args[0])
        flip = inside.could_extract_minus_sign()
        inside = -inside if flip else inside
        symbol: Expr = S.One
        if inside != 1:
            symbol = self._generator(("sign",), (inside,))
            self.signs.add(symbol)
        if isinstance(e, Abs):
            return symbol * self.rational(-e.args[0] if flip else e.args[0])
        return self.rational(indicators) * self._nonzero(e.args[0]) * (-symbol if flip else symbol)

    def _nonzero(self, e: Expr) -> Expr:
        """1 where no factor of ``e`` is 0, else 0: a sign is 1 or -1 times that."""
        marks = []
        for factor in Mul.make_args(factor_terms(e) if isinstance(e, (Add, Mul)) else e):
            base = factor.as_base_exp()[0]
            if isinstance(factor, Indicator) or base.is_nonzero or is_positive(base):
                continue
            base = -base if base.could_extract_minus_sign() else base
            mark = self._generator(("nonzero",), (base,))
            self.nonzero.setdefault(mark, self.rational(base))
            marks.append(mark)
        return Mul(*marks)

    def _choice(self, e: Piecewise) -> Expr:
        if not isinstance(whole := without_gap(e), Piecewise):
            return self.rational(whole)
        value: Expr = S.Zero
        for chosen, condition in reversed(e.args):
            if condition is S.true:
                value = self.rational(chosen)
                continue
            holds = holding(condition, self._signs, self._condition)
            value = holds * self.rational(chosen) + (1 - holds) * value
        return value

    def _condition(self, condition) -> Symbol:
        holds = self._generator(("condition", type(condition).__name__), condition.args)
        self.conditions.add(holds)
        return holds

    def _signs(self, difference: Expr) -> Signs:
        """Indicators of ``difference`` above 0, below 0, and equal to 0."""
        if is_one_hot(difference):
            return difference, S.Zero, 1 - difference
        if is_one_hot(-difference):
            return S.Zero, -difference, 1 + difference
        inside = difference.primitive()[1]
        flip = inside.could_extract_minus_sign()
        symbol = self._generator(("compared",), (-inside if flip else inside,))
        above, below, zero = (Indicator(k, f"sign of {symbol.dummy_index}") for k in range(3))
        return (below, above, zero) if flip else (above, below, zero)

    def _generator(self, kind: tuple, args: tuple) -> Symbol:
        """The indeterminate of a function of ``args``; equal arguments share it, not only alike."""
        args = tuple(self.rational(arg) if isinstance(arg, Expr) else arg for arg in args)
        mark = tuple(self.fingerprints.of(arg) for arg in args)
        candidates = self.generators.setdefault(kind, [])
        for known, _, symbol in candidates:
            if known == args:
                return symbol
        for known, known_mark, symbol in candidates:
            if self.fingerprints.may_be_equal(mark, known_mark) and all(
                isinstance(a, Expr) and isinstance(b, Expr) and self.vanishes(a - b)
                for a, b in zip(known, args, strict=True)
            ):
                return symbol
        symbol = Dummy(f"g{len(self.order)}")
        candidates.append((args, mark, symbol))
        self.order.append(symbol)
        return symbol

    def is_one_of_two(self, symbol: Symbol) -> bool:
        """Whether a symbol stands for a sign, a condition or an indicator: of two numbers one."""
        kinds = (self.signs, self.conditions, self.nonzero)
        return isinstance(symbol, Indicator) or any(symbol in kind for kind in kinds)
