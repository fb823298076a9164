"""Pointwise values, and their leaves: numbers, sizes, arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from derive.language.notation.layout import Layout


@dataclass(frozen=True)
class Value:
    """A computed value; ``dims`` are its dimensions, aligned at the right as in broadcasting."""

    dims: Layout = field(kw_only=True, default=())


@dataclass(frozen=True)
class Number(Value):
    """An exact number."""

    value: Fraction


@dataclass(frozen=True)
class Constant(Value):
    """A named number (``pi``), or the root or exponential of numbers, as SymPy writes it, with its
    value.
    """

    text: str
    value: float


@dataclass(frozen=True)
class SizeOf(Value):
    """The length of an axis, under its name in the code."""

    name: str


@dataclass(frozen=True)
class Quotient(Value):
    """The length of a part of the axis called ``flat``: its length divided by that of the other
    parts, ``by`` in words. Raises unless it is an integer.
    """

    dividend: Value
    divisor: Value
    flat: str
    by: str


@dataclass(frozen=True)
class WholeQuotient(Value):
    """A size divided by another, rounded down."""

    dividend: Value
    divisor: Value


@dataclass(frozen=True)
class Derived(Value):
    """The length of an axis by a ``formula`` of others: ``dividend`` over ``divisor``. Raises
    unless it is an integer above 0.
    """

    dividend: Value
    divisor: Value
    formula: str


@dataclass(frozen=True)
class LengthOf(Value):
    """The length of a dimension of an argument."""

    tensor: str
    along: int


@dataclass(frozen=True)
class Load(Value):
    """A tensor or a scalar argument, by its name."""

    name: str


@dataclass(frozen=True)
class Plus(Value):
    """The sum of terms; each with True where it is subtracted."""

    terms: tuple[tuple[Value, bool], ...]


@dataclass(frozen=True)
class Times(Value):
    """A product from left to right: each factor with True where it divides, but the first
    multiplies.
    """

    factors: tuple[tuple[Value, bool], ...]


@dataclass(frozen=True)
class MulAdd(Value):
    """``addend + left*right``, or ``addend - left*right`` where ``negative``, in one operation;
    ``left`` may be a number.
    """

    addend: Value
    left: Value
    right: Value
    negative: bool


@dataclass(frozen=True)
class Power(Value):
    base: Value
    exponent: Value


@dataclass(frozen=True)
class Apply(Value):
    """A pointwise function, by its SymPy name, of an operand and further arguments."""

    function: str
    operand: Value
    others: tuple[Value, ...] = ()


@dataclass(frozen=True)
class Pullback(Value):
    """The gradient at the argument of a function: ``upstream`` times the derivative of ``function``
    there.

    ``function`` is its SymPy name, or 'Pow'. A target that has a function for the derivative
    computes it from ``argument`` and ``output`` (None where they are not available), the others
    from ``derivative``.
    """

    function: str
    upstream: Value
    argument: Value | None
    output: Value | None
    derivative: Value


@dataclass(frozen=True)
class Compare(Value):
    """A pointwise comparison such as ``left < right``; ``relation`` is the sign."""

    left: Value
    relation: str
    right: Value


@dataclass(frozen=True)
class Combine(Value):
    """Pointwise ``and``, ``or`` and ``not`` of conditions."""

    operator: str
    operands: tuple[Value, ...]


@dataclass(frozen=True)
class Choose(Value):
    """``yes`` where the condition holds, else ``no``, pointwise."""

    condition: Value
    yes: Value
    no: Value


@dataclass(frozen=True)
class Extreme(Value):
    """The pointwise larger of two, or the smaller if not ``largest``; NaN where one of them is."""

    largest: bool
    left: Value
    right: Value


@dataclass(frozen=True)
class Clamp(Value):
    """The operand, raised to ``low`` and then lowered to ``high``: numbers, or None for no bound.
    NaN stays NaN.
    """

    operand: Value
    low: Value | None
    high: Value | None


@dataclass(frozen=True)
class Gate(Value):
    """``value`` where ``measure`` is above ``threshold``, a number, or is NaN; else 0."""

    value: Value
    measure: Value
    threshold: Value


@dataclass(frozen=True)
class Bend(Value):
    """``value`` where ``measure`` is above 0, else that times ``slope``, a number."""

    value: Value
    measure: Value
    slope: Value


@dataclass(frozen=True)
class Slope(Value):
    """``value`` where ``measure`` is above 0, else that times ``scale * exp(measure)``."""

    value: Value
    measure: Value
    scale: Value
