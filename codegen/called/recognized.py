"""Recognize a torch function that was imported before, without tracing it again.

The digest covers its code, its defaults and everything it refers to: plain values, and the user's
functions, recursively. Torch is represented by its version, and so are stateless parts of the
standard library.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType

from codegen.files.digest import digest

PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))
# Covered by the version in `machinery_hash`, and stateless.
VERSIONED = {"torch", "builtins", "math", "cmath", "operator", "functools", "itertools", "typing"}


class _Unknown(Exception):
    """A reference without a digest: a tensor, a module of the user's, or any other object."""


def digest_of(function: Callable, *asked: object) -> str | None:
    """A digest of a function and of the options ``asked``; None if the function could change
    without changing any of this.
    """
    met: dict[int, int] = {}
    try:
        parts = [*_function(function, met), *(w for value in asked for w in _value(value, met))]
    except (_Unknown, RecursionError, ValueError):
        return None
    return digest(*parts)


def _function(function: object, met: dict[int, int]) -> Iterator[str]:
    if not isinstance(function, FunctionType):
        raise _Unknown
    if id(function) in met:  # recursive
        yield f"function {met[id(function)]}"
        return
    met[id(function)] = len(met)
    code = function.__code__
    yield function.__name__
    yield function.__doc__ or ""
    yield from _code(code)
    yield from _value((function.__defaults__, function.__kwdefaults__), met)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        yield name
        yield from _value(cell.cell_contents, met)
    for name in sorted(_names(code)):
        if name in function.__globals__:
            yield name
            yield from _value(function.__globals__[name], met)


def _code(code: CodeType) -> Iterator[str]:
    """The content of a code object: its computation, without its file and lines."""
    if any(i.opname.startswith("IMPORT") for i in dis.get_instructions(code)):
        raise _Unknown
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    yield f"{code.co_code.hex()} {names} {code.co_flags} {code.co_argcount} "
    yield f"{code.co_kwonlyargcount} {code.co_posonlyargcount}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        else:
            yield f"{type(constant).__name__} {_ordered(constant)}"


def _ordered(constant: object) -> str:
    """The text of a constant; sets are sorted, as their order varies between processes."""
    return repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)


def _names(code: CodeType) -> set[str]:
    inner = (c for c in code.co_consts if isinstance(c, CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _value(value: object, met: dict[int, int]) -> Iterator[str]:
    """The digest's parts for a value. Raises `_Unknown`."""
    if type(value) in PLAIN:
        yield f"{type(value).__name__} {value!r}"
    elif type(value) in (tuple, list):
        yield f"{type(value).__name__} {len(value)}"
        for item in value:
            yield from _value(item, met)
    elif type(value) is dict:
        yield f"dict {len(value)}"
        for item in value.items():
            yield from _value(item, met)
    elif _is_versioned(value):
        name = getattr(value, "__qualname__", None) or getattr(value, "__name__", repr(value))
        yield f"{getattr(value, '__module__', '')} {name}"
    else:
        yield from _function(value, met)


def _is_versioned(value: object) -> bool:
    """True if a value belongs to torch or Python, as installed. A function belongs to the module
    that its code was read from: ``functools.wraps`` gives it another's ``__module__``.
    """
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0] in VERSIONED
    if type(value).__module__ == "torch" and type(value).__name__ in ("dtype", "device", "layout"):
        return True
    if isinstance(value, FunctionType):
        home = value.__globals__.get("__name__")
    else:
        is_named = isinstance(value, (type, BuiltinFunctionType))
        home = value.__module__ if is_named else ""
    return (home or "").partition(".")[0] in VERSIONED
