"""The exact formula behind a float: the constant parts of a line of Python."""

from __future__ import annotations

import ast
import builtins
import linecache
import math
import operator
import re
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from types import FrameType, ModuleType

import sympy
from sympy import Expr, Integer, Mul, Rational

from derive.language.float_range import exact_number
from derive.language.functions import TABLE
from derive.language.source.class_source import MISSING, children, file_tree, parsed

DECIMAL = re.compile(r"(\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(e[+-]?\d+)?", re.IGNORECASE)
FEW = 12  # digits of a typed number; computed and rounded ones have more
NEAR = 8  # units in the last place, lost in Python's evaluation
LARGEST_POWER = 1000  # Python evaluates larger powers, but not to all digits
MOST_NAMES = 50  # followed from one line

OPERATORS: dict[type, Callable] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
# Functions of math, numpy and torch by name; SymPy's are themselves.
FUNCTIONS: dict[str, Callable[..., Expr]] = {
    **{name: row.function for row in TABLE if row.arguments == 1 for name in row.in_libraries},
    **{name: getattr(sympy, name) for name in ("sqrt", "cbrt")},
    "log2": lambda x: sympy.log(x, 2),
    "log10": lambda x: sympy.log(x, 10),
    "log1p": lambda x: sympy.log(1 + x),
    "expm1": lambda x: sympy.exp(x) - 1,
    "exp2": lambda x: 2**x,
    "reciprocal": lambda x: 1 / x,
    "square": lambda x: x**2,
    "rsqrt": lambda x: 1 / sympy.sqrt(x),
    "pow": lambda x, p: x**p,
    **dict.fromkeys(("float", "float64", "Float", "Decimal", "S", "sympify"), lambda x: x),
    **dict.fromkeys(("Rational", "Fraction"), lambda p, *q: p / Mul(*q)),
}
NAMED = {"pi": sympy.pi, "e": sympy.E, "tau": 2 * sympy.pi}
LIBRARIES = ("math", "numpy", "torch", "sympy", "builtins", "decimal", "fractions", "_operator")


class Constants:
    """The constant parts of the line that ``frame`` runs, and of the definitions of
    its variables.
    """

    def __init__(self, frame: FrameType):
        self.frame = frame
        self.followed: set[tuple[str, str]] = set()

    def equal_to(self, value: float) -> Expr | None:
        """The constant that has this value up to rounding; None where there is none."""
        frame = self.frame
        tree = file_tree(frame.f_code, frame.f_globals)
        file = File(frame.f_code.co_filename, frame.f_globals, tree, self._value)
        found = [e for node in lines_at(tree, frame.f_lineno) for e in self._parts(node, file)]
        return nearest(found, value)

    def _value(self, name: str) -> object:
        for names in (self.frame.f_locals, self.frame.f_globals):
            if dict.__contains__(names, name):
                return dict.__getitem__(names, name)
        return getattr(builtins, name, MISSING)

    def _parts(self, node: ast.AST, file: File) -> Iterator[Expr]:
        """The values of all constant parts, including those behind variables."""
        e = self.evaluated(node, file)
        if e is not None:
            yield e
        if isinstance(node, (ast.Name, ast.Attribute)) and e is None:
            for of, definition in self._definitions(node, file):
                yield from self._parts(definition, of)
        for inner in children(node):
            yield from self._parts(inner, file)

    def evaluated(self, node: ast.AST, file: File) -> Expr | None:
        """The exact value of a constant expression; None for any other."""
        try:
            e = self._evaluated(node, file)
        except (ArithmeticError, TypeError, ValueError, RecursionError):
            return None
        return e if isinstance(e, Expr) and e.is_number and e.is_real and e.is_finite else None

    def _evaluated(self, node: ast.AST, file: File) -> Expr | None:
        if isinstance(node, ast.Constant):
            return file.literal(node)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._of_name(node, file)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            e = self.evaluated(node.operand, file)
            return e if e is None or isinstance(node.op, ast.UAdd) else -e
        if isinstance(node, ast.BinOp):
            a, b = self.evaluated(node.left, file), self.evaluated(node.right, file)
            if a is None or b is None:
                return None
            if isinstance(node.op, ast.Pow):
                return a**b if abs(b) <= LARGEST_POWER else None
            return OPERATORS[type(node.op)](a, b) if type(node.op) in OPERATORS else None
        if isinstance(node, ast.Call) and not node.keywords:
            return self._called(node, file)
        return None

    def _called(self, node: ast.Call, file: File) -> Expr | None:
        function = file.value(node.func)
        name = getattr(function, "__name__", "")
        module = getattr(function, "__module__", None) or type(function).__module__
        arguments = [self.evaluated(argument, file) for argument in node.args]
        if name not in FUNCTIONS or None in arguments or module.split(".")[0] not in LIBRARIES:
            return None
        return FUNCTIONS[name](*arguments)

    def _of_name(self, node: ast.Name | ast.Attribute, file: File) -> Expr | None:
        """The exact value that defines a name, or None."""
        value = file.value(node)
        if isinstance(value, Expr):
            return value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return None
        owner = file.value(node.value) if isinstance(node, ast.Attribute) else None
        if isinstance(owner, ModuleType) and node.attr in NAMED and owner.__name__ in LIBRARIES:
            return NAMED[node.attr]
        if isinstance(value, int):
            return Integer(value)
        found = [e for of, d in self._definitions(node, file) for e in self._parts(d, of)]
        return nearest(found, value) or decimal_of(value)

    def _definitions(self, node, file: File) -> list[tuple[File, ast.AST]]:
        """Right-hand sides of the assignments to the name, in its own module."""
        name = node.id if isinstance(node, ast.Name) else node.attr
        owner = file.value(node.value) if isinstance(node, ast.Attribute) else None
        key = (file.name, name)
        known = isinstance(file.value(node), (float, list, tuple, dict))
        if not known or key in self.followed or len(self.followed) > MOST_NAMES:
            return []
        self.followed.add(key)
        try:
            where = file if owner is None else File.of(owner)
            return [] if where is None else list(where.definitions(name))
        finally:
            self.followed.discard(key)


class File:
    """A Python file, and the values of its names."""

    def __init__(self, name: str, module: dict, tree: ast.Module, value_of: Callable):
        self.name, self.module, self.tree, self.value_of = name, module, tree, value_of

    @staticmethod
    def of(owner: object) -> File | None:
        """The file of a module, or of a class; None where it has none."""
        named = owner if isinstance(owner, (ModuleType, type)) else type(owner)
        name = named.__name__ if isinstance(named, ModuleType) else named.__module__
        module = sys.modules.get(name)
        file = getattr(module, "__file__", None)
        if not file or name.partition(".")[0] in LIBRARIES:
            return None
        names = vars(module)
        tree = parsed("".join(linecache.getlines(file, names)))
        return File(
            file, names, tree, lambda name: names.get(name, getattr(builtins, name, MISSING))
        )

    def value(self, node: ast.AST) -> object:
        """The value of a name or an attribute; `MISSING` for all else."""
        if isinstance(node, ast.Name):
            return self.value_of(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            if isinstance(owner, Expr) or owner is MISSING:
                return MISSING
            return vars(owner).get(node.attr, MISSING) if hasattr(owner, "__dict__") else MISSING
        return MISSING

    def literal(self, node: ast.Constant) -> Expr | None:
        """A typed number, with all of its digits; of ``Decimal("0.3")`` that in quotes."""
        if isinstance(node.value, bool) or not isinstance(node.value, (int, float, str)):
            return None
        if isinstance(node.value, int):
            return Integer(node.value)
        text = node.value
        if isinstance(node.value, float):
            line = linecache.getline(self.name, node.lineno, self.module).encode()
            text = line[node.col_offset : node.end_col_offset].decode(errors="replace")
        if DECIMAL.fullmatch(text):
            return Rational(Fraction(text))
        return exact_number(node.value) if isinstance(node.value, float) else None

    def definitions(self, name: str) -> Iterator[tuple[File, ast.AST]]:
        for node in assignments(self.tree):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    owner = sys.modules.get(node.module or "") if not node.level else None
                    where = (
                        File.of(owner) if owner and (alias.asname or alias.name) == name else None
                    )
                    if where is not None:
                        yield from where.definitions(alias.name)
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = (n for target in targets for n in ast.walk(target))
            if node.value and any(isinstance(n, ast.Name) and n.id == name for n in names):
                yield self, node.value

    def _imported(self, node: ast.ImportFrom, name: str) -> Iterator[tuple[File, ast.AST]]:
        package = self.module.get("__package__") or ""
        above = package.rsplit(".", node.level - 1)[0] if node.level else ""
        owner = sys.modules.get(".".join(filter(None, (above, node.module))))
        for alias in node.names:
            if (alias.asname or alias.name) == name and (where := File.of(owner)) is not None:
                yield from where.definitions(alias.name)


def nearest(found: list[Expr], value: float) -> Expr | None:
    """The exact number that rounds to ``value``, or nearly does."""
    distances = [(abs(_float(e) - value), i) for i, e in enumerate(found)]
    distance, i = min(distances, default=(math.inf, 0))
    return found[i] if distance <= NEAR * math.ulp(value) else None


def decimal_of(value: float) -> Expr | None:
    """The exact number as typed, if it has few digits; None if it was calculated."""
    digits = Decimal(repr(float(value))).normalize().as_tuple().digits
    return exact_number(value) if len(digits) <= FEW else None


@lru_cache(maxsize=1024)
def _float(e: Expr) -> float:
    try:
        return float(e)
    except OverflowError:
        return math.inf


def lines_at(tree: ast.Module, line: int) -> Iterator[ast.AST]:
    """The statements on a line; for compound ones, the parts of their heads."""
    unread: list[ast.AST] = [tree]
    while unread:
        node = unread.pop()
        for inner in children(node):
            if not isinstance(inner, (ast.stmt, ast.excepthandler, ast.match_case)):
                continue
            if isinstance(inner, ast.stmt) and not inner.lineno <= line <= inner.end_lineno:
                continue
            unread.append(inner)
            if not hasattr(inner, "body"):
                yield inner
            else:
                yield from (part for part in children(inner) if isinstance(part, ast.expr))


@lru_cache(maxsize=8)
def assignments(tree: ast.Module) -> tuple[ast.stmt, ...]:
    kinds = (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.ImportFrom)
    return tuple(node for node in ast.walk(tree) if isinstance(node, kinds))
