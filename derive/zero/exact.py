"""Is an expression identically zero? An exact answer by polynomial arithmetic, without a rule about
gradients.

Everything that is not rational becomes an indeterminate: an exponential of each term of an
exponent, a root with its defining relation ``R**q = base``, a logarithm, a sign with ``s**2 = 1``,
a condition with ``c**2 = c``. What remains is a rational function of independent indeterminates,
and that is zero when its expanded numerator is.

`is_zero` is sound: True is a proof (where the denominators do not vanish). False means that the
numerator did not reduce to zero; for functions with relations that are not modelled here
(trigonometric ones, say) it may be zero all the same.
"""

from __future__ import annotations

import random
from math import lcm, prod

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
    cosh,
    exp,
    expand,
    factor_terms,
    log,
    sign,
    sinh,
    tanh,
)
from sympy.core.function import UndefinedFunction

from derive.language.choices import without_gap
from derive.zero.cases import SignTest, vanishes_by_cases
from derive.zero.fractions import Budget, Fractions, TooLarge
from derive.zero.independent_parts import count_of_terms, independent
from derive.zero.positive import (
    LARGEST_PRIME,
    is_positive,
    log_of_number,
    positive_quotient,
    scaled,
    split_log,
)

PRIME = 2**61 - 1
INFINITE = frozenset({S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity})

# Products of terms for one way of deciding a question: most take some hundred.
WITHIN = (2_000, 20_000, 200_000, None)
TERMS_OF_SYMPY = 10  # that are multiplied in the time of one of SymPy's own


class Indicator(Symbol):
    """0 or 1; of the indicators of one ``group``, each of its own ``place``, at most one is 1.

    The entries of a one-hot of unknown index, which may be that of the largest of some ``values``.
    """

    __slots__ = ("group", "place", "values")

    def __new__(cls, place: int, group: str, values: tuple[Expr, ...] = ()):
        self = Symbol.__xnew__(cls, f"{group}, {place}", integer=True, nonnegative=True)
        self.place, self.group, self.values = place, group, values
        return self

    def __getnewargs_ex__(self):
        return (self.place, self.group, self.values), {}


def _without_squares(e: Expr) -> tuple[Expr, Expr]:
    """What the sign of ``e`` is that of, and indicators that it is multiplied by: a square has
    none, and sign(k*u) = k*sign(u) for a ``k`` of 0 or 1.
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


def is_zero(e: Expr) -> bool:
    """Whether ``e`` is zero for all values of its symbols. Exact; see the module's docstring."""
    return ZeroTest().is_zero(e)


class ZeroTest:
    """The indeterminates met so far; one instance serves many expressions over the same values.

    With ``most`` no more than so many products of terms are made for one question: `TooLarge`.
    """

    def __init__(self):
        self.most: int | None = None
        self.budget = Budget()
        self.known: dict[Expr, Expr] = {}
        self.seen: set[Expr] = set()
        self.zeros: set[Expr] = set()
        self.generators: dict[tuple, list[tuple[tuple, tuple, Symbol]]] = {}
        self.roots: dict[Symbol, tuple[int, Expr]] = {}
        self.scales: dict[Expr, tuple[Expr, Expr]] = {}
        self.definitions: dict[Symbol, Expr] = {}
        self.order: list[Symbol] = []
        self.solutions: dict[Symbol, Expr] = {}
        self.count_solved = 0
        self.signs: set[Symbol] = set()
        self.conditions: set[Symbol] = set()
        self.shares: dict[Expr, int] = {}
        self.marks: dict[Expr, int | None] = {}
        self.picked: dict[str, int] = {}  # the place of the indicator that is 1
        self.random = random.Random(0)

    def is_zero(self, e: Expr) -> bool:
        """Whether ``e`` is zero for all values of its symbols."""
        if e == 0:
            return True
        if not self._note_shares(e):
            return False
        self.budget = Budget(self.most)
        rational = self.rational(e)
        if rational in self.zeros or self._vanishes_in_one_way(e, rational):
            self.zeros.add(rational)
            return True
        if e.has(Piecewise, Abs, sign):
            return vanishes_by_cases(e, SignTest(is_zero, is_positive))
        in_exponentials = e.rewrite((tanh, sinh, cosh), exp) if e.has(tanh, sinh, cosh) else e
        return in_exponentials != e and is_zero(in_exponentials)  # with other shares: a new test

    def _vanishes_in_one_way(self, e: Expr, rational: Expr) -> bool:
        """Whether ``e`` vanishes with its values as they are, solved for others, apart or written
        out: the way in which that takes little may be any of them.
        """
        ways = [
            lambda: self._vanishes_as_it_stands(rational),
            lambda: self._vanishes_by_solutions(rational),
            lambda: self._vanishes_apart(e),
            lambda: self._vanishes_in_full(rational),
        ]
        for most in WITHIN if self.most is None else (self.most,):
            left = []
            for way in ways:
                self.budget = Budget(most)
                try:
                    if way():
                        return True
                except TooLarge:
                    left.append(way)
            if not left:
                return False
            ways = left
        raise TooLarge

    def _note_shares(self, e: Expr) -> bool:
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
                logarithm = _logarithm_of_positive(node.base)
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
        if isinstance(e, exp) or e is S.Exp1:
            return self._exponential(e.as_base_exp()[1])
        if isinstance(e, Pow):
            return self._power(e)
        if isinstance(e, (Abs, sign)):
            return self._signed(e)
        if isinstance(e, Piecewise):
            return self._choice(e)
        if isinstance(e, log):
            if (chosen := _logarithm_chosen(e)) is not None:
                return self.rational(chosen)
            split = split_log(_in_exponentials(e.args[0]))
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
        logarithm = _logarithm_of_positive(base)
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
        """A sum that is divided by, or under a root, under one symbol.

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
        return self.rational(indicators) * (-symbol if flip else symbol)

    def _choice(self, e: Piecewise) -> Expr:
        if not isinstance(whole := without_gap(e), Piecewise):
            return self.rational(whole)
        value: Expr = S.Zero
        for chosen, condition in reversed(e.args):
            if condition is S.true:
                value = self.rational(chosen)
                continue
            holds = self._generator(("condition", type(condition).__name__), condition.args)
            self.conditions.add(holds)
            value = holds * self.rational(chosen) + (1 - holds) * value
        return value

    def _generator(self, kind: tuple, args: tuple) -> Symbol:
        """The indeterminate of a function of ``args``; equal arguments share it, not only alike."""
        args = tuple(self.rational(arg) if isinstance(arg, Expr) else arg for arg in args)
        mark = tuple(self._fingerprint(arg) for arg in args)
        candidates = self.generators.setdefault(kind, [])
        for known, _, symbol in candidates:
            if known == args:
                return symbol
        for known, known_mark, symbol in candidates:
            if self._may_be_equal(mark, known_mark) and all(
                isinstance(a, Expr) and isinstance(b, Expr) and self._vanishes(a - b)
                for a, b in zip(known, args, strict=True)
            ):
                return symbol
        symbol = Dummy(f"g{len(self.order)}")
        candidates.append((args, mark, symbol))
        self.order.append(symbol)
        return symbol

    @staticmethod
    def _may_be_equal(mark: tuple, other: tuple) -> bool:
        pairs = zip(mark, other, strict=False)
        return len(mark) == len(other) and all(a is None or b is None or a == b for a, b in pairs)

    def _fingerprint(self, e) -> int | None:
        """The value modulo a prime, with a random number for every symbol, one that it may have:
        equal for what is equal. None where that cannot be said.

        With roots unlike things may be equal, but what is met here is written in one way; at worst
        two symbols stand for one thing, and a proof fails that could have succeeded.
        """
        if not isinstance(e, Expr):
            return None
        if e not in self.marks:
            self.marks[e] = self._marked(e)
        return self.marks[e]

    def _marked(self, e: Expr) -> int | None:
        if e.is_Rational:
            return e.p * pow(e.q, -1, PRIME) % PRIME if e.q % PRIME else None
        if e in self.definitions:
            return self._fingerprint(self.definitions[e])
        if e.is_Symbol:
            return self._drawn(e)
        if not isinstance(e, (Add, Mul, Pow)):
            return None
        if isinstance(e, Pow):
            base = self._fingerprint(e.base)
            return None if not base or not e.exp.is_Integer else pow(base, int(e.exp), PRIME)
        parts = [self._fingerprint(arg) for arg in e.args]
        if None in parts:
            return None
        result = sum(parts) if isinstance(e, Add) else prod(parts)
        return result % PRIME

    def _drawn(self, symbol: Symbol) -> int:
        """A number that ``symbol`` may stand for: of the indicators of a group one is 1 at most."""
        if symbol in self.signs:
            return self.random.choice((1, PRIME - 1))
        if isinstance(symbol, Indicator):
            return int(self.picked.setdefault(symbol.group, symbol.place) == symbol.place)
        return self.random.randrange(2 if symbol in self.conditions else PRIME)

    def _is_one_of_two(self, symbol: Symbol) -> bool:
        """Whether a symbol stands for a sign, a condition or an indicator: of two numbers one."""
        return symbol in self.signs or symbol in self.conditions or isinstance(symbol, Indicator)

    def _vanishes(self, e: Expr) -> bool:
        """Zero as it stands, or once the symbols of values are replaced by what they stand for."""
        return self._vanishes_as_it_stands(e) or self._vanishes_in_full(e)

    def _vanishes_in_full(self, e: Expr) -> bool:
        return bool(self.definitions) and self._vanishes_as_it_stands(
            self._in_full(e), self._in_full
        )

    def _vanishes_by_solutions(self, e: Expr) -> bool:
        return bool(self.definitions) and self._vanishes_as_it_stands(self._solved(e), self._solved)

    def _vanishes_apart(self, e: Expr) -> bool:
        """Whether every part does that has its own upstream gradients: their sums need not be
        brought over one denominator.
        """
        if not self.definitions:
            return False
        self.budget.spend(TERMS_OF_SYMPY * count_of_terms(e))
        parts = independent(e)
        return parts not in ([], [e]) and all(
            self._vanishes_in_full(self.rational(part)) for part in parts
        )

    def _solved(self, e: Expr) -> Expr:
        """``e`` with the definitions of values solved for something in them, rather than written
        out: what is divided by stays one symbol. From ``v = 1 + g`` follows ``g = v - 1``, and from
        ``v = 1/a + 1/b`` follows ``a = 1/(v - 1/b)``.
        """
        for value, inside in list(self.definitions.items())[self.count_solved :]:
            found = self._solution(value, self._by_solutions(inside))
            self.solutions = {s: e.xreplace(found) for s, e in self.solutions.items()} | found
        self.count_solved = len(self.definitions)
        return self._by_solutions(e)

    def _solution(self, value: Symbol, inside: Expr) -> dict[Symbol, Expr]:
        """``value = inside`` solved for a symbol that one term has, as a factor or divisor."""
        for term in Add.make_args(inside):
            rest = inside - term
            for symbol, power in term.as_powers_dict().items():
                usable = symbol.is_Symbol and power in (1, -1) and not rest.has(symbol)
                if usable and not (symbol in self.roots or self._is_one_of_two(symbol)):
                    return {symbol: ((value - rest) / term * symbol**power) ** power}
        return {}

    def _by_solutions(self, e: Expr) -> Expr:
        return e.xreplace(self.solutions) if self.solutions else e

    def _in_full(self, e: Expr) -> Expr:
        while known := {s: self.definitions[s] for s in e.free_symbols if s in self.definitions}:
            e = e.xreplace(known)
        return e

    def _vanishes_as_it_stands(self, e: Expr, written=lambda base: base) -> bool:
        """Zero as a polynomial; ``written`` says how the base of a root is written."""
        if e.is_number:
            return e == 0
        if self._differs_from_zero(e):
            return False
        symbols = sorted(e.free_symbols, key=lambda s: s.sort_key())
        if not symbols:
            return expand(e) == 0
        fractions = Fractions(symbols, self.budget)
        numerator = self._reduced(fractions.of(e).numerator)
        for _ in range(2 + len(self.roots)):
            if numerator == 0:
                return True
            root = self._root_with_power(numerator)
            if root is None:
                return False
            numerator = self._root_resolved(numerator, root, written, fractions)
        return False

    def _differs_from_zero(self, e: Expr) -> bool:
        """Whether ``e`` is not zero for some numbers in the place of independent indeterminates.

        Most of what is asked for is not zero, and need not be brought over one denominator.
        """
        return bool(self._fingerprint(e)) and self.roots.keys().isdisjoint(e.free_symbols)

    def _reduced(self, polynomial):
        """The polynomial modulo s**2 = 1, c**2 = c, and the relations of indicators."""
        symbols = polynomial.ring.symbols
        special = [(i, s) for i, s in enumerate(symbols) if self._is_one_of_two(s)]
        if not special:
            return polynomial
        result = polynomial.ring.zero
        terms: dict = {}
        for monomial, coefficient in polynomial.terms():
            powers, groups, alive = list(monomial), set(), True
            for i, s in special:
                if not powers[i]:
                    continue
                powers[i] = powers[i] % 2 if s in self.signs else 1
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

    def _root_with_power(self, polynomial) -> Symbol | None:
        """The last root R that the polynomial has to a power of R**q or more."""
        places = {s: i for i, s in enumerate(polynomial.ring.symbols) if s in self.roots}
        most = {s: max(p[i] for p in polynomial.itermonoms()) for s, i in places.items()}
        met = (r for r in reversed(self.order) if r in most and most[r] >= self.roots[r][0])
        return next(met, None)

    def _root_resolved(self, polynomial, root: Symbol, written, fractions: Fractions):
        """The polynomial with R**q replaced by its base, up to a factor that is not zero."""
        share, base = self.roots[root]
        base = written(base)
        fractions = fractions.with_symbols({*polynomial.ring.symbols, *base.free_symbols})
        return self._reduced(fractions.replaced(polynomial, root, share, base))


def _in_exponentials(e: Expr) -> Expr:
    """``e`` with powers of positive numbers as exponentials."""
    return e.replace(
        lambda p: isinstance(p, Pow) and p.base.is_Rational and p.base > 0 and not p.exp.is_number,
        lambda p: exp(expand(p.exp * log_of_number(p.base))),
    )


def _logarithm_of_positive(base: Expr) -> Expr | None:
    """The logarithm, where the form of ``base`` tells that it is positive."""
    base = base if is_positive(base) else positive_quotient(base)
    return None if base is None else split_log(base)


def _logarithm_chosen(e: log) -> Expr | None:
    """The logarithm of an entry that indicators of one group pick, case by case: the indicator
    times the logarithm where it is 1. None where there is no choice, or 0 in a case.
    """
    indicators = [s for s in e.free_symbols if isinstance(s, Indicator)]
    if not indicators:
        return None
    alike = [s for s in indicators if s.group == indicators[0].group]
    others = dict.fromkeys(alike, S.Zero)
    cases = [(s, e.args[0].xreplace({**others, s: S.One})) for s in alike]
    cases.append((1 - Add(*alike), e.args[0].xreplace(others)))
    if any(argument == 0 for _, argument in cases):
        return None
    return Add(*(share * log(argument) for share, argument in cases))
