"""Decimals in a text that round an exact constant of the forward.

In: a text, and a chain with constants. Out: the decimals, each with its constant.

``0.7978845608028654`` stands for sqrt(2/pi). It is not equal, so a formula with it is not exactly
the gradient; but the formula is right up to rounding if the same text with the constant is proved.
The constant is a guess; the proof is of the complete text with it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from sympy import Expr, Integer, Mul, Rational, preorder_traversal

from derive.gradient.chain.chain import Chain
from derive.language.formulas.text import formula

FEWEST_DIGITS = 7  # shorter decimals do not count as rounded
DOUBLE_DIGITS, DOUBLE, SINGLE_DIGITS, SINGLE = 15, 2.0**-52, 9, 2.0**-24  # of torch's floats
PRECISION = 40  # digits of a constant
LARGEST_FACTOR = 64  # largest numerator and denominator of a rational multiple
POWERS = (0, 1, -1, 2, -2, 3, -3)  # tried for each irrational number in the forward
MOST_NUMBERS = 3  # irrational numbers in a product
LITERAL = re.compile(r"(?<![\w.])(\d*\.\d+|\d+\.)(?:[eE]([+-]?\d+))?(?![\w.])")


@dataclass(frozen=True)
class RoundedLiteral:
    """A ``literal`` that rounds ``constant``, to so many ``digits``."""

    literal: str
    constant: Expr
    digits: int

    def __str__(self) -> str:
        return f"{self.literal} is {formula(self.constant)}, rounded to {self.digits} digits"


def rounded_constants(text: str, chain: Chain) -> list[RoundedLiteral]:
    """The long decimals of a text that round constants of the forward, or simple multiples
    of them.
    """
    long = {m[0]: m for m in LITERAL.finditer(text) if _digits_of(m[1]) >= FEWEST_DIGITS}
    if not long:
        return []
    known = [(c, Fraction(str(c.evalf(PRECISION)))) for c in _constants(chain)]
    found = (_meant(literal, match, known) for literal, match in long.items())
    return [rounded for rounded in found if rounded is not None]


def with_constants(text: str, found: Iterable[RoundedLiteral]) -> tuple[str, dict[str, Expr]]:
    """The text with names in place of these decimals, and the values of the names."""
    names: dict[str, Expr] = {}
    for number, rounded in enumerate(found):
        name = f"constant_{number}"
        while name in text:
            name += "_"
        text = LITERAL.sub(lambda m, r=rounded, n=name: n if m[0] == r.literal else m[0], text)
        names[name] = rounded.constant
    return text, names


def _digits_of(mantissa: str) -> int:
    return len(mantissa.replace(".", "").strip("0"))


def _meant(
    literal: str, match: re.Match, known: list[tuple[Expr, Fraction]]
) -> RoundedLiteral | None:
    """The constant with the simplest factor that the decimal may round; None if it is exact."""
    value, digits = Fraction(literal), _digits_of(match[1])
    unit = Fraction(10) ** (int(match[2] or 0) - len(match[1].partition(".")[2]))
    found = []
    for constant, exact in known:
        factor = (value / exact).limit_denominator(LARGEST_FACTOR)
        meant = factor * exact
        if not 0 < factor.numerator <= LARGEST_FACTOR or _can_be_typed(constant, meant, unit):
            continue
        relative = float(abs(value / meant - 1))
        within = abs(value - meant) < unit
        if within or _is_held(digits, relative):
            agree = math.floor(-math.log10(relative)) if relative else digits
            size = factor.numerator * factor.denominator + constant.count_ops()
            shown = digits if within else min(digits, agree)
            found.append((size, formula(constant), constant, factor, shown))
    if not found or any(exact == value for _, exact in known):
        return None
    _, _, constant, factor, shown = min(found, key=lambda f: f[:2])
    return RoundedLiteral(literal, Rational(factor.numerator, factor.denominator) * constant, shown)


def _can_be_typed(constant: Expr, meant: Fraction, unit: Fraction) -> bool:
    """Whether the typed digits can represent the constant exactly; another value is then
    a mistake.
    """
    return bool(constant.is_Rational) and (meant / unit).denominator == 1


def _is_held(digits: int, relative: float) -> bool:
    """Whether no float of torch's is closer to the constant."""
    single = digits <= SINGLE_DIGITS and relative <= SINGLE
    return single or (digits >= DOUBLE_DIGITS and relative <= DOUBLE)


def _constants(chain: Chain) -> list[Expr]:
    """1, the constants in the forward and its gradients, and products of their
    irrational factors.
    """
    formulas = [s.expression for s in chain.definition.statements]
    formulas += [a.expression for a in chain.adjoints]
    whole = dict.fromkeys(c for e in formulas for c in _numbers_in(e))
    bases = dict.fromkeys(base for c in whole for base in _irrational(c))
    bases = list(bases)[:MOST_NUMBERS]
    powers = product(POWERS, repeat=len(bases))
    made = [Mul(*(b**k for b, k in zip(bases, some, strict=True))) for some in powers]
    typed = [c for c in whole if c.is_Rational and c.q > LARGEST_FACTOR]
    pairs = (a * b for a, b in product([*typed, Integer(1)], [*made, *typed]))
    positive = (abs(c) for c in (Integer(1), *whole, *pairs) if c != 0)
    return list(dict.fromkeys(c for c in positive if not c.is_Integer or c == 1))


def _numbers_in(e: Expr) -> Iterator[Expr]:
    for node in preorder_traversal(e):
        if isinstance(node, Expr) and node.is_number and node.is_real and node.is_finite:
            yield node
        elif isinstance(node, Mul):
            yield Mul(*(f for f in node.args if f.is_number and f.is_real))


def _irrational(constant: Expr) -> Iterator[Expr]:
    for factor in Mul.make_args(constant):
        base, power = factor.as_base_exp()
        if not factor.is_Rational:
            yield base ** abs(power) if power.is_Rational else factor
