"""Classify the parts of a line of Python: tensors and formulas, or plain values."""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import BuiltinFunctionType

from sympy import Add, Basic, Mul, Number, Piecewise, Pow, Symbol
from sympy.core.function import Application
from sympy.core.relational import Relational
from sympy.logic.boolalg import Boolean
from sympy.sets.sets import Set

from derive.language.array_node import ArrayNode
from derive.language.declarations import Declaration
from derive.language.distributions import NONE, distribution_of
from derive.language.errors import NOTATION
from derive.language.source.class_source import MISSING, children
from derive.language.symbols import Tensor, tensors_in

# SymPy classes that build formulas; functions that transform formulas are not among them. By base
# class.
MAKES = (Application, Relational, Boolean, Add, Mul, Pow, Number, Piecewise, Symbol, ArrayNode, Set)
MAKERS = ("sqrt", "cbrt", "root", "real_root", "sympify", "S", "expand", "Rational")
# Python builtins that inspect or pass on formulas without evaluating them.
HARMLESS = (
    *("abs", "pow", "isinstance", "issubclass", "type", "print", "repr", "str", "format", "id"),
    *("hash", "getattr", "hasattr", "callable", "slice", "object", "super", "vars", "dir"),
    *("tuple", "list", "dict", "set", "frozenset"),
)
COUNTS = ("len", "isinstance", "issubclass", "type", "repr", "str", "format", "id", "hash")
COUNTS += ("hasattr", "callable", "dir")
ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
COLLECTIONS = (ast.Tuple, ast.List, ast.Set)
INFORMATION = ("name", "length", "axes", "home", "role")


@dataclass(frozen=True)
class BodySoFar:
    """The class body so far: its file, its tensors and statements in order, all names it assigns,
    and the lines inside loops.
    """

    file: str
    tensors: Mapping[str, Tensor]
    statements: Sequence  # (name, expression) each
    assigned: Collection[str]
    looped: Collection[int] = ()

    def read_by(self, name: str) -> list[Tensor]:
        """The tensors that the definition of a statement uses; none for an input."""
        found = next((s.expression for s in self.statements if s.name == name), None)
        return [] if found is None else [*tensors_in(found)]


class LineReader:
    """Classifies parts of a line in a ``body``, where all names have values, or in a called
    function, where ``tensors`` and ``collections`` of them are known by name.
    """

    def __init__(
        self,
        value_of: Callable[[str], object],
        body: BodySoFar,
        tensors: frozenset[str] = frozenset(),
        collections: frozenset[str] = frozenset(),
        depth: int = 0,
    ):
        self.value_of, self.body = value_of, body
        self.tensors, self.collections = tensors, collections
        self.depth = depth  # of nested calls, 0 in the class body

    def value(self, node: ast.AST) -> object:
        """The value of a name, or of an attribute of a non-tensor; `MISSING` for all else."""
        if isinstance(node, ast.Name) and node.id not in self.tensors | self.collections:
            return self.value_of(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            if owner is not MISSING and not is_symbolic(owner):
                try:
                    return getattr(owner, node.attr, MISSING)
                except Exception:  # a property raised: the line itself will raise it
                    return MISSING
        return MISSING

    def is_tensor(self, node: ast.AST) -> bool:
        """Whether ``node`` is a tensor, an axis, a formula or a condition in them."""
        if isinstance(node, ast.Name):
            return node.id in self.tensors or is_symbolic(self.value(node))
        if isinstance(node, ast.Call):
            function = self.value(node.func)
            if getattr(function, "__name__", "") in COUNTS and is_pythons(function):
                return False
            return any(map(self.is_tensor, arguments(node)))
        if isinstance(node, ast.Attribute):
            return is_symbolic(self.value(node)) or (
                node.attr not in INFORMATION and self.is_tensor(node.value)
            )
        if isinstance(node, ast.Subscript):
            return self.holds(node.value)
        if isinstance(node, ast.Compare) and not all(isinstance(o, ORDERS) for o in node.ops):
            return False  # Python's own answer
        if isinstance(node, (*COLLECTIONS, *COMPREHENSIONS, ast.Dict, ast.Lambda)):
            return False
        if isinstance(node, ast.IfExp):
            return self.is_tensor(node.body) or self.is_tensor(node.orelse)
        return any(map(self.is_tensor, children(node)))

    def holds(self, node: ast.AST) -> bool:
        """Whether a value is a tensor, or a collection that contains one."""
        if isinstance(node, COLLECTIONS):
            return any(map(self.holds, node.elts))
        if isinstance(node, COMPREHENSIONS):
            return any(map(self.holds, ast.iter_child_nodes(node)))
        if isinstance(node, ast.Name) and node.id in self.collections:
            return True
        if isinstance(node, ast.Call) and not self.is_tensor(node):
            return (
                any(map(self.holds, arguments(node)))
                and getattr(self.value(node.func), "__name__", "") not in COUNTS
            )
        return self.is_tensor(node) or _any_symbolic(self.value(node))


def is_symbolic(value: object) -> bool:
    """Whether a Python value is a formula or a condition in tensors and axes."""
    if isinstance(value, (Symbol, ArrayNode, Declaration)):
        return True
    return isinstance(value, Basic) and _has_symbols(value)


@lru_cache(maxsize=4096)
def _has_symbols(value: Basic) -> bool:
    return isinstance(value, (Symbol, ArrayNode)) or any(map(_has_symbols, value.args))


def _any_symbolic(value: object) -> bool:
    if isinstance(value, (list, tuple, set, frozenset)):
        return any(is_symbolic(v) or _any_symbolic(v) for v in value)
    return is_symbolic(value)


def arguments(node: ast.Call) -> list[ast.AST]:
    return [*node.args, *(k.value for k in node.keywords)]


def makes_formulas(function: object, file: str) -> bool:
    """Whether a function called with tensors in ``file`` returns a formula."""
    name, package = getattr(function, "__name__", ""), package_of(function)
    if isinstance(function, type) and issubclass(function, Basic):
        return issubclass(function, MAKES)
    if package == "builtins":
        return name in HARMLESS
    if package == "sympy":
        return name in MAKERS
    return package == NOTATION or not is_library(function, file)


def is_library(function: object, file: str) -> bool:
    """Whether a function belongs to a library, not to the distribution of ``file``."""
    package = package_of(function)
    if package in (NOTATION, "sympy") or package in sys.stdlib_module_names:
        return package != "__main__"
    if isinstance(function, BuiltinFunctionType):
        return True
    defined = getattr(sys.modules.get(module_of(function)), "__file__", None) or ""
    return distribution_of(defined) not in (NONE, distribution_of(file))


def package_of(function: object) -> str:
    """The package that is imported for a function; `NOTATION` for what gradform has to write with,
    wherever that package is.
    """
    module = module_of(function)
    return NOTATION if module.startswith(f"{NOTATION}.") else module.partition(".")[0]


def module_of(function: object) -> str:
    return getattr(function, "__module__", None) or type(function).__module__


def is_pythons(function: object) -> bool:
    return getattr(builtins, getattr(function, "__name__", ""), None) is function


def function_of(value: object) -> object:
    """The underlying function of a method or a decorated function."""
    inner = inspect.unwrap(value) if callable(value) else value
    return getattr(inner, "__func__", inner)
