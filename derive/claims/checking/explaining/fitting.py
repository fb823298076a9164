"""Rewrite a claim in terms of the forward's values, matching parts by value to 50 digits.

The same gradient can be written in many ways: ``x.var(0)``, raw moments, a softmax in place of
named steps. Such a part is recognized by its value at random points of several sizes, not by its
form. This only explains a difference that has been established exactly elsewhere; it decides
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product
from math import prod

import mpmath
from sympy import Expr, Integer, Mul, Rational, sqrt

from derive.claims.checking.numbers.arithmetic import Floating, Undefined, Unevaluable
from derive.claims.checking.numbers.evaluation import Evaluation, Point
from derive.claims.checking.numbers.points import random_points
from derive.claims.checking.numbers.tables import BELOW
from derive.gradient.chain.chain import Chain
from derive.language.nodes import ArrayNode, Sum
from derive.language.notation.definition import Definition
from derive.language.symbols import Tensor, axes_of, is_constant, tensors_in

SHORT = 6  # operations of a readable function of sizes

DIGITS = 30  # significant digits, of the 50 computed
in_full_precision = mpmath.workdps(50)
SAMPLES = 4  # points of the same sizes
MOST_PRODUCTS = 12  # products of the right terms to combine
LARGEST_DIVISOR = 64  # in a number that a person would write
MOST_AXES = 5  # powers of up to this many sizes are tried
TINY = mpmath.mpf(10) ** -20  # relative
ROUGHLY = 1e-9  # the same, of float64


class ValueNames:
    """The named values of a forward, recognized by their numbers."""

    def __init__(self, chain: Chain):
        self.chain = chain
        self._named: dict[Expr, Expr] = {}
        self.points = random_points(chain.definition)

    @cached_property
    def evaluations(self) -> list[Evaluation]:
        """Evaluations of the forward at several sizes, each with its own random data."""
        return self._evaluated(self.points)

    @cached_property
    def samples(self) -> list[list[Evaluation]]:
        """Evaluations of the forward with several data sets for each of the sizes."""
        definition = self.chain.definition
        more = [random_points(definition, seed) for seed in range(1, SAMPLES)]
        return list(zip(self.evaluations, *map(self._evaluated, more), strict=True))

    def _evaluated(self, points: Sequence[Point]) -> list[Evaluation]:
        return [Evaluation(self.chain, point, Floating()) for point in points]

    @cached_property
    def known(self) -> Mapping[tuple, tuple[Expr, list]]:
        """Values and their reciprocals; of equal ones the first."""
        found: dict[tuple, tuple[Expr, list]] = {}
        definition = self.chain.definition
        for tensor in [*definition.inputs, *(s.tensor for s in definition.statements)]:
            if tensor.role == "label":
                continue
            for named in (tensor, 1 / tensor):
                direction = self.direction(named)
                if direction is not None:
                    found.setdefault(direction[0], (named, direction[1]))
        return found

    def named(self, e: Expr) -> Expr:
        """``e`` with each largest part that equals a value of the forward, up to a function of
        sizes, replaced by that value.
        """
        if e not in self._named:
            self._named[e] = self._with_names(e)
        return self._named[e]

    def _with_names(self, e: Expr) -> Expr:
        if isinstance(e, Tensor) or not tensors_in(e) or is_constant(e):
            return e
        forward_only = all(t.role != "adjoint" for t in tensors_in(e))
        if forward_only and (value := self._value(e)) is not None:
            return value
        if isinstance(e, ArrayNode):
            return e.on(self.named(e.operand)) if isinstance(e, Sum) else e
        if isinstance(e, Mul) and not forward_only:
            inner = [f for f in e.args if all(t.role != "adjoint" for t in tensors_in(f))]
            rest = [self.named(f) for f in e.args if f not in inner]
            return Mul(*rest, self.named(Mul(*inner)))
        return e.func(*map(self.named, e.args))

    @in_full_precision
    def _value(self, e: Expr) -> Expr | None:
        direction = self.direction(e)
        if direction is None or direction[0] not in self.known:
            return None
        named, scales = self.known[direction[0]]
        ratios = [ours / theirs for ours, theirs in zip(direction[1], scales, strict=True)]
        factor = size_function(self.chain.definition, self.points, ratios)
        return None if factor is None else factor * named

    @in_full_precision
    def direction(self, e: Expr):
        """A key shared by all multiples of ``e``, and the factor at every point; else None."""
        axes = self.chain.definition.in_order(axes_of(e)) if axes_of(e) else ()
        pattern, scales = [tuple(axes)], []
        for evaluation in self.evaluations:
            try:
                entries = list(evaluation.entries(e, axes).values())
            except (Undefined, Unevaluable):
                return None
            scale = next((v for v in entries if v != 0), None)
            if scale is None or BELOW in entries:
                return None
            scales.append(scale)
            pattern += [mpmath.nstr(v / scale, DIGITS) for v in entries]
        return tuple(pattern), scales


def fitted(
    names: ValueNames, of: Tensor, claimed: Expr, products: Sequence[Expr]
) -> dict[Expr, Expr] | None:
    """``claimed`` as a combination of ``products`` whose coefficients are functions of sizes; None
    if there is none.
    """
    if not products or len(products) > MOST_PRODUCTS:
        return None
    solutions = []
    for evaluations in names.samples:
        try:
            solution = _solution(evaluations, of, claimed, products)
        except (Undefined, Unevaluable, ZeroDivisionError):
            return None
        if solution is None:
            return None
        solutions.append(solution)
    coefficients = [
        size_function(names.chain.definition, names.points, [s[k] for s in solutions])
        for k in range(len(products))
    ]
    if None in coefficients:
        return None
    return {p: c for p, c in zip(products, coefficients, strict=True) if c != 0}


@in_full_precision
def _solution(evaluations, of, claimed, products):
    rows, right = [], []
    for evaluation in evaluations:
        columns = [evaluation.entries(e, of.home) for e in (*products, claimed)]
        for index in columns[0]:
            *row, value = (column[index] for column in columns)
            rows.append(row)
            right.append(value)
    matrix, vector = mpmath.matrix(rows), mpmath.matrix(right)
    if len(rows) < len(products):
        return None
    solution = mpmath.lu_solve(matrix, vector)
    largest = max(map(abs, right), default=0) or 1
    residual = matrix * solution - vector
    return list(solution) if max(map(abs, residual)) < largest * TINY else None


SIZE_FACTORS = (
    lambda n: n**0,
    lambda n: n,
    lambda n: 1 / n,
    lambda n: n - 1,
    lambda n: 1 / (n - 1),
    lambda n: (n - 1) / n,
    lambda n: n / (n - 1),
    lambda n: n**2,
    lambda n: 1 / n**2,
    lambda n: n + 1,
    lambda n: 1 / (n + 1),
    lambda n: n * (n - 1),
    lambda n: 1 / (n * (n - 1)),
    lambda n: n - 2,
    lambda n: 1 / (n - 2),
    lambda n: (n - 2) / (n - 1),
    lambda n: (n - 2) / n,
    lambda n: (n - 1) ** 2,
    lambda n: (n - 1) ** -2,
    lambda n: n / (n - 1) ** 2,
    lambda n: n**2 / (n - 1) ** 2,
)


@in_full_precision
def size_function(definition: Definition, points: Sequence[Point], values) -> Expr | None:
    """A rational multiple of a simple function of sizes, or its root, with these values at the
    points; None if none is found.
    """
    found = _rational_function(definition, points, values)
    if found is None and len({value > 0 for value in values}) == 1:
        squared = _rational_function(definition, points, [value**2 for value in values])
        found = squared and sqrt(squared) * (1 if values[0] > 0 else -1)
    return found


def _rational_function(definition: Definition, points: Sequence[Point], values) -> Expr | None:
    if all(abs(v) < TINY for v in values):
        return Integer(0)
    axes = definition.independent_axes[:MOST_AXES]
    sizes = [[Fraction(dict(point.sizes)[axis.name]) for axis in axes] for point in points]
    at_sizes = [[[_value_at(f, n) for f in SIZE_FACTORS] for n in at] for at in sizes]
    rough = list(map(float, values))
    for chosen in _size_functions(len(axes)):
        scales = (
            prod(of_axis[k] for of_axis, k in zip(at, chosen, strict=True)) for at in at_sizes
        )
        if not _all_near(v / scale for v, scale in zip(rough, scales, strict=True) if scale):
            continue
        functions, ratios = [SIZE_FACTORS[k] for k in chosen], []
        for at, value in zip(sizes, values, strict=True):
            try:
                scale = prod(f(n) for f, n in zip(functions, at, strict=True))
                ratios.append(value * scale.denominator / scale.numerator)
            except ZeroDivisionError:
                continue  # n - 2 is 0 at n = 2
        same = len(ratios) > 2 and all(abs(r - ratios[0]) < TINY * abs(r) for r in ratios)
        if same and (number := _rational(ratios[0])) is not None:
            return number * Mul(*(f(a) for f, a in zip(functions, axes, strict=True)))
    return None


def _value_at(function: Callable, size: Fraction) -> float:
    """The value of a function at a size; 0 where it divides by zero."""
    try:
        return float(function(size))
    except ZeroDivisionError:
        return 0


def _all_near(numbers: Iterator[float]) -> bool:
    """Whether all are equal within float64; two usually suffice to tell."""
    first = next(numbers, 0)
    return all(abs(n - first) <= ROUGHLY * abs(first) for n in numbers)


@lru_cache
def _size_functions(axes: int) -> list[tuple[int, ...]]:
    """One factor for each axis, at most two of them other than 1; the simplest first."""
    orders = product(range(len(SIZE_FACTORS)), repeat=axes)
    few = [order for order in orders if sum(k > 0 for k in order) <= 2]
    return sorted(few, key=sum)


def _rational(value) -> Rational | None:
    """The fraction with a small denominator equal to ``value``."""
    for q in range(1, LARGEST_DIVISOR):
        p = mpmath.nint(value * q)
        if p != 0 and abs(value * q - p) < TINY * abs(p):
            return Rational(int(p), q)
    return None


def is_simple_size_function(e: Expr) -> bool:
    """Whether ``e`` consists of numbers and sizes, and is short enough to print."""
    return e.count_ops() <= SHORT and not e.atoms(Tensor)
