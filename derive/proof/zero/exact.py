"""Is an expression identically zero? An exact answer by polynomial arithmetic, without a rule about
gradients.

Everything that is not rational becomes an indeterminate: an exponential of each term of an
exponent, a root with its defining relation ``R**q = base``, a logarithm, a sign with ``s**3 = s``,
a condition with ``c**2 = c``. What remains is a rational function of independent indeterminates,
and that is zero when its expanded numerator is.

`is_zero` is sound: True is a proof (where the denominators do not vanish). False means that the
numerator did not reduce to zero; for functions with relations that are not modelled here
(trigonometric ones, say) it may be zero all the same.
"""

from __future__ import annotations

from sympy import (
    Abs,
    Add,
    Expr,
    Integer,
    Mul,
    Piecewise,
    Symbol,
    asinh,
    atanh,
    cosh,
    erf,
    erfc,
    exp,
    expand,
    log,
    sign,
    sinh,
    tanh,
)

from derive.language.choices import without_masks
from derive.language.traversal import parts_of
from derive.proof.zero.cases import SignTest, vanishes_by_cases
from derive.proof.zero.fractions import Fractions, TermBudget, TooLarge
from derive.proof.zero.independent_parts import count_of_terms, independent
from derive.proof.zero.indeterminates import INFINITE, Indeterminates
from derive.proof.zero.indicator import Indicator
from derive.proof.zero.positive import is_positive

# Products of terms for one way of deciding a question: most take some hundred.
WITHIN = (2_000, 20_000, 200_000, None)
WRITTEN_OUT = (((tanh, sinh, cosh), exp), ((asinh, atanh), log), ((erfc,), erf))
TERMS_OF_SYMPY = 10  # that are multiplied in the time of one of SymPy's own


def is_zero(e: Expr) -> bool:
    """Whether ``e`` is zero for all values of its symbols. Exact; see the module's docstring."""
    return ZeroTest().is_zero(e)


def symbols_of(e: Expr) -> set[Symbol]:
    """The symbols of ``e``, in which a part that is solved for others may stand a million times."""
    return {part for part in parts_of(e) if part.is_Symbol}


class ZeroTest:
    """One instance serves many expressions over the same values: indeterminates are shared.

    With ``most`` no more than so many products of terms are made for one question: `TooLarge`.
    """

    def __init__(self):
        self.met = Indeterminates(self._vanishes)
        self.most: int | None = None
        self.budget = TermBudget()
        self.zeros: set[Expr] = set()
        self.solutions: dict[Symbol, Expr] = {}
        self.count_solved = 0

    def is_zero(self, e: Expr) -> bool:
        """Whether ``e`` is zero for all values of its symbols."""
        e = without_masks(e)
        if e == 0:
            return True
        if not self.met.note_shares(e):
            return False
        self.budget = TermBudget(self.most)
        rational = self.met.rational(e)
        if rational in self.zeros or self._vanishes_in_one_way(e, rational):
            self.zeros.add(rational)
            return True
        if e.has(Piecewise, Abs, sign):
            return vanishes_by_cases(e, SignTest(is_zero, is_positive))
        in_others = e
        for functions, other in WRITTEN_OUT:
            in_others = in_others.rewrite(functions, other) if e.has(*functions) else in_others
        return in_others != e and is_zero(in_others)  # with other shares: a new test

    def _vanishes_in_one_way(self, e: Expr, rational: Expr) -> bool:
        """Whether ``e`` vanishes with its values as they are, solved for others, apart, written out
        or index by index: the way in which that takes little may be any of them.
        """
        ways = [
            lambda: self._vanishes_as_it_stands(rational),
            lambda: self._vanishes_by_solutions(rational),
            lambda: self._vanishes_apart(e),
            lambda: self._vanishes_in_full(rational),
            lambda: self._vanishes_by_index(e if e.has(Piecewise) else self._in_full(rational)),
        ]
        for most in WITHIN if self.most is None else (self.most,):
            left = []
            for way in ways:
                self.budget = TermBudget(most)
                try:
                    if way():
                        return True
                except TooLarge:
                    left.append(way)
            if not left:
                return False
            ways = left
        raise TooLarge

    def _vanishes(self, e: Expr) -> bool:
        """Zero as it stands, or with the symbols of values replaced by their definitions."""
        return self._vanishes_as_it_stands(e) or self._vanishes_in_full(e)

    def _vanishes_in_full(self, e: Expr) -> bool:
        return bool(self.met.definitions) and self._vanishes_as_it_stands(
            self._in_full(e), self._in_full
        )

    def _vanishes_by_solutions(self, e: Expr) -> bool:
        return bool(self.met.definitions) and self._vanishes_as_it_stands(
            self._solved(e), self._solved
        )

    def _vanishes_apart(self, e: Expr) -> bool:
        """Whether every part with its own upstream gradients vanishes: their sums need not be
        brought over one denominator.
        """
        if not self.met.definitions:
            return False
        self.budget.spend(TERMS_OF_SYMPY * count_of_terms(e))
        parts = independent(e)
        return parts not in ([], [e]) and all(
            self._vanishes_in_full(self.met.rational(part)) for part in parts
        )

    def _vanishes_by_index(self, e: Expr) -> bool:
        """Whether ``e`` vanishes for every index with indicators, case by case: a choice by how
        many entries have an index is decided there.
        """
        return any(isinstance(s, Indicator) for s in symbols_of(e)) and self._vanishes_in_cases(e)

    def _vanishes_in_cases(self, e: Expr) -> bool:
        groups = {s.group for s in symbols_of(e) if isinstance(s, Indicator)}
        if e in INFINITE or e.has(*INFINITE):
            return False
        if not groups:
            return self._vanishes_as_it_stands(self._in_full(self.met.rational(e)))
        group = min(groups)
        alike = [s for s in symbols_of(e) if isinstance(s, Indicator) and s.group == group]
        self.budget.spend(TERMS_OF_SYMPY * (1 + len(alike)))
        cases = ({s: Integer(s == one) for s in alike} for one in (None, *alike))
        return all(self._vanishes_in_cases(e.xreplace(case)) for case in cases)

    def _solved(self, e: Expr) -> Expr:
        """``e`` with the definitions of values solved for something in them, rather than written
        out: what is divided by stays one symbol. From ``v = 1 + g`` follows ``g = v - 1``, and from
        ``v = 1/a + 1/b`` follows ``a = 1/(v - 1/b)``.
        """
        for value, inside in list(self.met.definitions.items())[self.count_solved :]:
            found = self._solution(value, self._by_solutions(inside))
            self.solutions = {s: e.xreplace(found) for s, e in self.solutions.items()} | found
        self.count_solved = len(self.met.definitions)
        return self._by_solutions(e)

    def _solution(self, value: Symbol, inside: Expr) -> dict[Symbol, Expr]:
        """``value = inside`` solved for a symbol that one term has, as a factor or divisor; not
        where another factor may be 0 at any time, as a condition may: nothing follows there.
        """
        for term in Add.make_args(inside):
            rest = inside - term
            if any(map(self.met.is_one_of_two, symbols_of(term))):
                continue
            for symbol, power in term.as_powers_dict().items():
                usable = symbol.is_Symbol and power in (1, -1) and not rest.has(symbol)
                if usable and symbol not in self.met.roots:
                    return {symbol: ((value - rest) / term * symbol**power) ** power}
        return {}

    def _by_solutions(self, e: Expr) -> Expr:
        return e.xreplace(self.solutions) if self.solutions else e

    def _in_full(self, e: Expr) -> Expr:
        while known := {
            s: self.met.definitions[s] for s in symbols_of(e) if s in self.met.definitions
        }:
            e = e.xreplace(known)
        return e

    def _vanishes_as_it_stands(self, e: Expr, written=lambda base: base) -> bool:
        """Zero as a polynomial; ``written`` says how the base of a root is written."""
        if e.is_number:
            return e == 0
        if self._differs_from_zero(e):
            return False
        symbols = sorted(symbols_of(e), key=lambda s: s.sort_key())
        if not symbols:
            return expand(e) == 0
        fractions = Fractions(symbols, self.budget)
        numerator = self._reduced(fractions.of(e).numerator)
        for _ in range(2 + len(self.met.roots)):
            if numerator == 0:
                return True
            root = self._root_with_power(numerator)
            if root is None:
                return False
            numerator = self._root_resolved(numerator, root, written, fractions)
        return False

    def _differs_from_zero(self, e: Expr) -> bool:
        """Whether ``e`` is not zero for some numbers instead of independent indeterminates.

        Most expressions asked about are not zero, and need no common denominator.
        """
        return bool(self.met.fingerprints.of(e)) and self.met.roots.keys().isdisjoint(symbols_of(e))

    def _reduced(self, polynomial):
        """The polynomial modulo s**2 = 1, c**2 = c, k*u = u where k is 1 unless u is 0, and the
        relations of indicators.
        """
        symbols = polynomial.ring.symbols
        beside = self._factors_beside(symbols)
        special = [(i, s) for i, s in enumerate(symbols) if self.met.is_one_of_two(s)]
        if not special:
            return polynomial
        result = polynomial.ring.zero
        terms: dict = {}
        for monomial, coefficient in polynomial.terms():
            powers, groups, alive = list(monomial), set(), True
            for i, s in special:
                if not powers[i]:
                    continue
                powers[i] = powers[i] % 2 if s in self.met.signs else 1
                if i in beside and all(map(monomial.__getitem__, beside[i])):
                    powers[i] = 0
                if isinstance(s, Indicator):
                    alive = alive and s.group not in groups
                    groups.add(s.group)
            if alive:
                key = tuple(powers)
                terms[key] = terms.get(key, 0) + coefficient
        for key, coefficient in terms.items():
            if coefficient:
                result[key] = coefficient
        return result

    def _factors_beside(self, symbols) -> dict[int, list[int]]:
        """By the place of a symbol that is 1 unless a product is 0: the places of its factors."""
        place = {s: i for i, s in enumerate(symbols)}
        found = {}
        for mark in place.keys() & self.met.nonzero.keys():
            factors = Mul.make_args(self.met.nonzero[mark])
            bases = [factor.as_base_exp()[0] for factor in factors if not factor.is_number]
            if bases and all(base in place for base in bases):
                found[place[mark]] = [place[base] for base in bases]
        return found

    def _root_with_power(self, polynomial) -> Symbol | None:
        """The last root R that the polynomial has to a power of R**q or more."""
        places = {s: i for i, s in enumerate(polynomial.ring.symbols) if s in self.met.roots}
        most = {s: max(p[i] for p in polynomial.itermonoms()) for s, i in places.items()}
        met = (r for r in reversed(self.met.order) if r in most and most[r] >= self.met.roots[r][0])
        return next(met, None)

    def _root_resolved(self, polynomial, root: Symbol, written, fractions: Fractions):
        """The polynomial with R**q replaced by its base, up to a factor that is not zero."""
        share, base = self.met.roots[root]
        base = written(base)
        fractions = fractions.with_symbols({*polynomial.ring.symbols, *base.free_symbols})
        return self._reduced(fractions.replaced(polynomial, root, share, base))
