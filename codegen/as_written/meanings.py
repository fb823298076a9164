"""Numeric meanings of the names that a class body takes from its module.

Everything that it calls is Python: the user's own functions are called with numbers, too, and
their names from SymPy or the notation are looked up here as well.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Mapping
from types import CellType, FunctionType, MethodType, ModuleType

from sympy import Basic

from codegen.as_written.entries import NumberEntries, Unreadable
from codegen.as_written.functions import of_sympy
from derive.language.declarations import Declaration
from derive.language.errors import NOTATION
from derive.language.source.class_source import names_in
from derive.language.symbols import Axis

OURS = ("sympy", NOTATION.partition(".")[0], "gradform")


class Meanings:
    """Numeric counterparts of a module's values: ``table`` holds the words of the notation,
    ``called`` calls another forward.
    """

    def __init__(self, table: Mapping, called: Callable, sizes: Mapping[Axis, int]):
        self.table, self.called, self.sizes = table, called, sizes
        self.memo: dict[int, object] = {}

    def __call__(self, value: object) -> object:
        """The numeric counterpart of a value of the user's module."""
        key = id(value)
        if key not in self.memo:
            self.memo[key] = value  # for self-references
            self.memo[key] = self._translated(value)
        return self.memo[key]

    def _translated(self, value: object) -> object:
        found = self.table.get(value) if callable(value) and _hashable(value) else None
        if found is not None:
            return found
        if isinstance(value, type) and hasattr(value, "definition"):
            return functools.partial(self.called, value)
        if isinstance(value, ModuleType):
            return _Module(value, self)
        if isinstance(value, functools.partial):
            return functools.partial(self(value.func), *value.args, **value.keywords)
        if isinstance(value, MethodType):
            return MethodType(self(value.__func__), value.__self__)
        inner = getattr(value, "__wrapped__", value)
        if isinstance(inner, FunctionType) and not _is_ours(inner):
            return self._function(inner)
        if callable(value) and _is_ours(value) and not isinstance(value, Basic):
            declares = isinstance(value, type) and issubclass(value, Declaration | Axis)
            return value if declares else of_sympy(value, self.sizes)
        if type(value) in (list, tuple):
            return type(value)(map(self, value))
        if type(value) is dict:
            return {name: self(v) for name, v in value.items()}
        return value

    def _function(self, function: FunctionType) -> FunctionType:
        """A function of the user's, with the names in it replaced by their numeric counterparts."""
        names: dict[str, object] = {"__builtins__": BUILTINS}
        cells = tuple(CellType() for _ in function.__closure__ or ())
        code = function.__code__
        made = FunctionType(code, names, function.__name__, function.__defaults__, cells or None)
        made.__kwdefaults__ = function.__kwdefaults__
        self.memo[id(function)] = made
        for name in names_in(code):
            if name in function.__globals__:
                names[name] = self(function.__globals__[name])
        for cell, own in zip(cells, function.__closure__ or (), strict=True):
            cell.cell_contents = self(own.cell_contents)
        return made


class _Module:
    """A module whose names have their numeric counterparts."""

    def __init__(self, module: ModuleType, means: Meanings):
        self._module, self._means = module, means

    def __getattr__(self, name: str) -> object:
        return self._means(getattr(self._module, name))


def _isinstance(value: object, kinds: object) -> bool:
    if not isinstance(value, NumberEntries):
        return isinstance(value, kinds)
    several = kinds if isinstance(kinds, tuple) else (kinds,)
    if any(isinstance(k, type) and issubclass(k, Basic) for k in several):
        raise Unreadable("it asks what kind of formula a tensor is")
    return False


BUILTINS = {
    **vars(builtins),
    "print": lambda *values, **how: None,
    "isinstance": _isinstance,
}


def _is_ours(value: object) -> bool:
    module = getattr(value, "__module__", None) or type(value).__module__
    return module.partition(".")[0] in OURS and not module.startswith(f"{NOTATION}.math")


def _hashable(value: object) -> bool:
    return getattr(type(value), "__hash__", None) is not None
