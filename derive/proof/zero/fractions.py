"""Fractions of polynomials whose denominators stay in factors, so that their sums stay small."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from sympy import QQ, Add, Expr, Mul, Symbol, ring

from derive.proof.zero.products import product


class Fraction:
    """numerator / product of factors**power; the denominator stays in factors, so that sums stay
    small.
    """

    __slots__ = ("denominator", "numerator")

    def __init__(self, numerator, denominator):
        self.numerator, self.denominator = numerator, denominator


class TooLarge(ArithmeticError):
    """More products of terms were needed than allowed."""


class TermBudget:
    """Number of products of two terms that may still be made: any where ``left`` is None."""

    def __init__(self, left: int | None = None):
        self.left = left

    def spend(self, products: int) -> None:
        """Take these products off the budget. Raises `TooLarge` when it is exceeded."""
        if self.left is not None:
            self.left -= products
            if self.left < 0:
                raise TooLarge


class Fractions:
    """Arithmetic of fractions of polynomials, from a SymPy expression of +, *, and whole powers,
    within a ``budget``.
    """

    def __init__(self, symbols: Sequence[Symbol], budget: TermBudget):
        self.budget = budget
        self.ring, *_ = ring(symbols, QQ)
        self.generator = dict(zip(self.ring.symbols, self.ring.gens, strict=True))
        self.place = {symbol: i for i, symbol in enumerate(self.ring.gens)}
        self.known: dict[Expr, Fraction] = {}

    def with_symbols(self, more: Iterable[Symbol]) -> Fractions:
        """The same in these symbols too."""
        new = sorted(set(more) - set(self.ring.symbols), key=lambda s: s.sort_key())
        return Fractions([*self.ring.symbols, *new], self.budget) if new else self

    def replaced(self, polynomial, symbol: Symbol, share: int, value: Expr):
        """The polynomial with ``value`` for ``symbol**share``, times a power of the denominator of
        that.
        """
        polynomial, place = polynomial.set_ring(self.ring), self.ring.symbols.index(symbol)
        parts: dict[int, object] = {}
        for powers, coefficient in polynomial.terms():
            whole, left = divmod(powers[place], share)
            part = parts.setdefault(whole, self.ring.zero)
            part[(*powers[:place], left, *powers[place + 1 :])] = coefficient
        value, most = self.of(value), max(parts)
        result = self.ring.zero
        for whole, part in parts.items():
            above = self._multiplied(part, self._power(value.numerator, whole))
            lacking = {f: power * (most - whole) for f, power in value.denominator.items()}
            result += self._times(above, lacking)
        return result

    def of(self, e: Expr) -> Fraction:
        if e not in self.known:
            self.known[e] = self._of(e)
        return self.known[e]

    def _of(self, e: Expr) -> Fraction:
        if e.is_Rational:
            return Fraction(self.ring.ground_new(QQ(e.p, e.q)), {})
        if e.is_Symbol:
            return Fraction(self.generator[e], {})
        if isinstance(e, Add):
            return self._sum([self.of(arg) for arg in e.args])
        if isinstance(e, Mul):
            result = Fraction(self.ring.one, {})
            for arg in e.args:
                result = self._product(result, self.of(arg))
            return result
        base = self.of(e.base)
        power = int(e.exp)
        if power < 0:
            base, power = self._inverse(base), -power
        return Fraction(
            self._power(base.numerator, power), {f: p * power for f, p in base.denominator.items()}
        )

    def _sum(self, terms: list[Fraction]) -> Fraction:
        """Add terms over the same sums first: they may cancel before other denominators."""
        alike: dict[frozenset, list[Fraction]] = {}
        for term in terms:
            sums_in_it = frozenset(factor for factor in term.denominator if len(factor) > 1)
            alike.setdefault(sums_in_it, []).append(term)
        sums = map(self._over_common_denominator, alike.values())
        return self._over_common_denominator([part for part in sums if part.numerator])

    def _over_common_denominator(self, terms: list[Fraction]) -> Fraction:
        if len(terms) == 1:
            return terms[0]
        common: dict = {}
        for term in terms:
            for factor, power in term.denominator.items():
                common[factor] = max(common.get(factor, 0), power)
        total = self.ring.zero
        for term in terms:
            lacking = {f: power - term.denominator.get(f, 0) for f, power in common.items()}
            total += self._times(term.numerator, lacking)
        return Fraction(total, common)

    def _product(self, a: Fraction, b: Fraction) -> Fraction:
        denominator = dict(a.denominator)
        for factor, power in b.denominator.items():
            denominator[factor] = denominator.get(factor, 0) + power
        return Fraction(self._multiplied(a.numerator, b.numerator), denominator)

    def _multiplied(self, a, b):
        self.budget.spend(len(a) * len(b))
        return product(a, b)

    def _power(self, polynomial, power: int):
        if len(polynomial) < 2 or power < 2:
            return polynomial**power
        return reduce(self._multiplied, [polynomial] * power)

    def _inverse(self, a: Fraction) -> Fraction:
        if a.numerator == 0:
            raise ZeroDivisionError("the denominator is identically zero")
        numerator = self._times(self.ring.one, a.denominator)
        content, primitive = a.numerator.primitive()
        if len(primitive) > 1:
            return Fraction(numerator * (1 / content), {primitive: 1})
        (monomial,), coefficient = list(primitive.itermonoms()), primitive.LC
        factors = {g: p for g, p in zip(self.ring.gens, monomial, strict=True) if p}
        return Fraction(numerator * (1 / (content * coefficient)), factors)

    def _times(self, polynomial, factors: dict):
        """The polynomial times the product of factors**power; those that are symbols, at once."""
        monomial = list(self.ring.zero_monom)
        for factor, power in factors.items():
            if factor in self.place:
                monomial[self.place[factor]] += power
            elif power:
                polynomial = self._multiplied(polynomial, self._power(factor, power))
        return polynomial.mul_monom(tuple(monomial))
