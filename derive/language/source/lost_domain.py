"""Lines of a class body that are undefined as typed where SymPy's simplified form is defined.

SymPy simplifies ``exp(log(x))`` to x, which is right wherever both are defined; torch's line is NaN
for negative x. Every line is therefore evaluated at a few numbers, operation by operation, as torch
would. A condition is reported only with such numbers.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator
from itertools import product
from random import Random

import sympy
from sympy import Basic, Dummy, Expr, Integer, Piecewise, Rational, S, Tuple
from sympy.logic.boolalg import Boolean

from derive.language.array_node import ArrayNode
from derive.language.at_numbers import needs_of_sizes, sizes_for, truth_at, value_at
from derive.language.errors import NOTATION, NotationError
from derive.language.float_range import exact_number
from derive.language.formulas.text import formula
from derive.language.functions import ABOVE, KNOWN, NOT_BELOW
from derive.language.nodes import Broadcast, Max, Min, Rename, Sum
from derive.language.source.class_source import MISSING, children, nodes_in
from derive.language.source.line_reader import LineReader, package_of
from derive.language.symbols import Axis, Tensor

NUMBERS = (S(0), S(-1), S.Half, S(2), -S.Half, S(1))
MOST_POINTS = 150  # limits the time to a few milliseconds per line
NEAR = 1e-9  # relative; of numbers of 16 digits

POSITIVE, NOT_NEGATIVE, NOT_ZERO = ABOVE, NOT_BELOW, "!="
HOLDS: dict[str, Callable] = {
    POSITIVE: operator.gt,
    NOT_NEGATIVE: operator.ge,
    NOT_ZERO: operator.ne,
}
ARITHMETIC: dict[type, Callable] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
ORDERED = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}
OPERATORS = ARITHMETIC | {ast.Div: operator.truediv, ast.Pow: operator.pow, ast.USub: operator.neg}
# The condition under which a function is defined, on its argument.
NEEDS: dict[str, tuple[str, Callable[[Expr], Expr]]] = {
    **{name: row.domain for name, row in KNOWN.items() if row.domain},
    **dict.fromkeys(("sqrt", "cbrt", "root"), (NOT_NEGATIVE, lambda e: e)),
}
EXTREMES = {Max: max, Min: min}
INSIDE = (Sum, *EXTREMES, Broadcast, Rename)  # NaN in an operand propagates
Need = tuple[str, Expr]


class TypedLine:
    """A ``line`` of Python that evaluated to ``value``; ``reader`` resolves its names."""

    def __init__(self, line: ast.expr, value: Expr, reader: LineReader):
        self.line, self.value, self.reader = line, value, reader
        self.values: dict[int, Basic | None] = {}

    def lost(self) -> list[str]:
        """Conditions under which the typed line equals SymPy's form, each violated at some point
        where that form is defined; empty if nothing is lost.
        """
        needed = dict(self._needs())
        open_needs = {n: need for n, need in needed.items() if not _is_kept(need, self.value)}
        if not open_needs:
            return []
        found: dict[Need, None] = {}
        for point in self._points(need[1] for need in open_needs.values()):
            ours = _number(self.value, point)
            if not math.isfinite(ours):
                continue
            try:
                typed = self._typed(self.line, point)
            except (ArithmeticError, TypeError, ValueError):
                continue
            if math.isfinite(typed) and abs(typed - ours) <= NEAR * (1 + abs(ours)):
                continue
            found |= {_shortest(n): None for n in open_needs.values() if not _holds(n, point)}
        strict = {e for kind, e in found if {(NOT_NEGATIVE, e), (NOT_ZERO, e)} <= found.keys()}
        found = {(POSITIVE, e) if e in strict else (kind, e): None for kind, e in found}
        return [f"{formula(e)} {kind} 0" for kind, e in found]

    def _needs(self) -> Iterator[tuple[ast.AST, Need]]:
        """Each operation of the line with the condition under which it is defined."""
        for node in nodes_in(self.line):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
                yield from self._need(node, NOT_ZERO, self._value(node.right))
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
                yield from self._need_of_power(node, node.left, node.right)
            elif isinstance(node, ast.Call) and node.args:
                name = self._function(node)
                if name == "Pow" and len(node.args) == 2:
                    yield from self._need_of_power(node, *node.args)
                elif name in NEEDS and isinstance(e := self._value(node.args[0]), Expr):
                    kind, operand = NEEDS[name]
                    yield from self._need(node, kind, operand(e))

    def _need_of_power(self, node, base: ast.AST, exponent: ast.AST):
        power = self._value(exponent)
        if not isinstance(power, Expr) or (power.is_integer and power.is_nonnegative):
            return
        kind = NOT_ZERO if power.is_integer else NOT_NEGATIVE if power.is_positive else POSITIVE
        yield from self._need(node, kind, self._value(base))

    def _need(self, node, kind: str, e) -> Iterator[tuple[ast.AST, Need]]:
        given = {POSITIVE: "is_positive", NOT_NEGATIVE: "is_nonnegative", NOT_ZERO: "is_nonzero"}
        known = not isinstance(e, Expr) or getattr(e, given[kind])
        if not known and (e.atoms(Tensor) or e.is_number):
            yield node, (kind, e)

    def _function(self, node: ast.Call) -> str:
        """The name of a called SymPy or notation function."""
        function = self.reader.value(node.func)
        ours = package_of(function) in ("sympy", NOTATION) and not hasattr(function, "definition")
        return getattr(function, "__name__", "") if ours else ""

    def _value(self, node: ast.AST) -> Basic | None:
        """The value of a part of the line; None if it calls a function of the user's."""
        if id(node) not in self.values:
            try:
                value = self._evaluated(node)
            except (ArithmeticError, TypeError, ValueError, AttributeError, NotationError):
                value = MISSING  # of a part only: the line itself was run
            value = Integer(value) if isinstance(value, int) else value
            self.values[id(node)] = value if isinstance(value, Basic) else None
        return self.values[id(node)]

    def _evaluated(self, node: ast.AST) -> object:
        """The value of a formula; only arithmetic and SymPy functions are executed."""
        if isinstance(node, ast.Constant):
            if isinstance(node.value, bool):
                return sympy.true if node.value else sympy.false
            return exact_number(node.value) if isinstance(node.value, (int, float)) else MISSING
        if isinstance(node, (ast.Name, ast.Attribute)):
            value = self.reader.value(node)
            return exact_number(value) if isinstance(value, float) else value
        function = getattr(node, "func", None)
        inner = (p for p in children(node) if p is not function and not isinstance(p, ast.cmpop))
        parts = [self._evaluated(part) for part in inner]
        if any(part is MISSING for part in parts):
            return MISSING
        if isinstance(node, (ast.Tuple, ast.List)):
            return tuple(parts)
        if isinstance(node, (ast.BinOp, ast.UnaryOp)) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](*parts)
        if isinstance(node, ast.Compare) and len(parts) == 2 and type(node.ops[0]) in ORDERED:
            return ORDERED[type(node.ops[0])](*parts)
        if isinstance(node, ast.Call) and not node.keywords and self._function(node):
            return self.reader.value(node.func)(*parts)
        return MISSING

    def _points(self, operands) -> Iterator[dict[Expr, Expr]]:
        """Numbers for the leaves of the value and the operands, with valid sizes."""
        parts = (self.value, *operands)
        leaves = sorted(set().union(*map(_leaves, parts)), key=str)
        axes = [leaf for leaf in leaves if isinstance(leaf, Axis)]
        needs = [need for part in parts for need in needs_of_sizes(part)]
        leaves, random = [leaf for leaf in leaves if leaf not in axes], Random(0)
        choices = [[n for n in NUMBERS if _allowed(leaf, n)] for leaf in leaves]
        drawn = product(*choices)
        if math.prod(map(len, choices)) > MOST_POINTS:
            drawn = (tuple(map(random.choice, choices)) for _ in range(MOST_POINTS))
        for point in drawn:
            if (sizes := sizes_for(needs, axes, random)) is not None:
                yield dict(zip(leaves, point, strict=True)) | sizes

    # As torch computes it

    def _typed(self, node: ast.AST, point) -> float:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._typed(node.operand, point)
        if isinstance(node, ast.BinOp):
            a, b = self._typed(node.left, point), self._typed(node.right, point)
            if isinstance(node.op, ast.Div):
                return _quotient(a, b)
            if isinstance(node.op, ast.Pow):
                return _power(a, b)
            if type(node.op) in ARITHMETIC:
                return ARITHMETIC[type(node.op)](a, b)
        if isinstance(node, ast.Call) and node.args:
            return self._called(node, point)
        return _number(self._value(node), point)

    def _called(self, node: ast.Call, point) -> float:
        name, function = self._function(node), self.reader.value(node.func)
        if function is Piecewise:
            return self._chosen(node, point)
        if function in EXTREMES and not isinstance(self._value(node.args[-1]), Axis):
            several = [self._typed(argument, point) for argument in node.args]
            return math.nan if any(map(math.isnan, several)) else EXTREMES[function](several)
        if function in INSIDE and not math.isfinite(self._typed(node.args[0], point)):
            return math.nan
        if name == "Pow" and len(node.args) == 2:
            return _power(*(self._typed(argument, point) for argument in node.args))
        pointwise = isinstance(function, type) and issubclass(function, sympy.Function)
        if not (pointwise and len(node.args) == 1) and name not in ("sqrt", "cbrt"):
            return _number(self._value(node), point)
        x = self._typed(node.args[0], point)
        if name == "log":
            return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan
        if name == "exp":
            return math.inf if x == math.inf else math.exp(x)
        if name in ("sqrt", "cbrt"):
            return _power(x, 1 / 2 if name == "sqrt" else 1 / 3)
        return _number(function(sympy.Float(x)), {}) if math.isfinite(x) else math.nan

    def _chosen(self, node: ast.Call, point) -> float:
        for pair in node.args:
            if not isinstance(pair, ast.Tuple) or len(pair.elts) != 2:
                raise ValueError("not read")
            condition = self._value(pair.elts[1])
            holds = None if condition is None else truth_at(condition, point)
            if holds is None:
                raise ValueError("not decided")
            if holds:
                return self._typed(pair.elts[0], point)
        return math.nan


def _leaves(e: Basic) -> set[Expr]:
    """Terms that are assigned numbers: tensors, sizes, and whole array nodes."""
    if isinstance(e, (Tensor, Axis, ArrayNode, Dummy)):
        return {e}
    return set().union(*map(_leaves, e.args)) if isinstance(e, (Expr, Boolean, Tuple)) else set()


def _allowed(leaf: Expr, number: Rational) -> bool:
    known = {"is_positive": number > 0, "is_nonnegative": number >= 0, "is_nonzero": number != 0}
    known["is_integer"] = number.is_integer
    return all(holds or getattr(leaf, name) is not True for name, holds in known.items())


def _is_kept(need: Need, value: Expr) -> bool:
    """Whether SymPy's form of the line contains an operation with the same condition."""
    kind, e = need
    powers = [p for p in value.atoms(sympy.Pow) if not p.exp.is_Integer or p.exp.is_negative]
    logarithms = {node.args[0] for node in value.atoms(sympy.log)}
    if kind != NOT_ZERO:
        return e in logarithms | {p.base for p in powers if not p.exp.is_Integer}
    divisors = logarithms | {_plain(p.base) for p in powers if not p.exp.is_positive}
    return all(
        f.is_nonzero or {_plain(f), _plain(f.as_base_exp()[0])} & divisors
        for f in sympy.Mul.make_args(e)
    )


def _shortest(need: Need) -> Need:
    """``x != 0`` for ``2*sqrt(x) != 0``, and ``x > 0`` for ``2*x > 0``."""
    kind, e = need
    number, rest = e.as_coeff_Mul()
    if kind != NOT_ZERO:
        return kind, rest if number.is_positive else e
    base, power = _plain(e).as_base_exp()
    return kind, base if power.is_positive else _plain(e)


def _plain(e: Expr) -> Expr:
    """``e`` without its coefficient, equal for ``e`` and ``-e``."""
    e = e.primitive()[1]
    return -e if e.could_extract_minus_sign() else e


def _holds(need: Need, point) -> bool:
    number = _number(need[1], point)
    return math.isfinite(number) and HOLDS[need[0]](number, 0)


def _number(e: Basic | None, point) -> float:
    """The value of ``e`` at a point, or NaN."""
    if not isinstance(e, Expr):
        raise ValueError("not read")
    try:
        value = value_at(e, point)
    except ValueError:  # SymPy has no erfinv(2)
        return math.nan
    return math.nan if value is None else float(sympy.N(value))


def _quotient(a: float, b: float) -> float:
    if b == 0:
        return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a)
    return a / b


def _power(a: float, b: float) -> float:
    if a == 0 and b < 0:
        return math.inf
    if a < 0 and math.isfinite(b) and b % 1:
        return math.nan
    return a**b
