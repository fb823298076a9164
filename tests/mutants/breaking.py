"""Ways of breaking a function: what it returns is replaced or made wrong, as its annotation says.

A function is broken where it stands (its code is exchanged), so everybody who imported it has the
broken one. That is done in a process of its own and never undone.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import textwrap
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace

from sympy import Expr
from sympy.polys.rings import PolyElement

from codegen.program.values import Plus, Value
from derive.gradient.range.following import Scaled
from derive.language.symbols import Tensor
from derive.proof.zero.fractions import Fraction

Wrong = Callable[..., object]  # of the function that was right, and its arguments
UNDOUBLED = {
    "str",
    "int",
    "bool",
    "None",
    "set",
    "list",
    "frozenset",
    "tuple",
    "dict",
    "Mapping",
    "Collection",
    "Preference",
}
EMPTY = (list, tuple, set, frozenset, dict)
changed = False  # whether a broken function has given anything else than the right one


@dataclass(frozen=True)
class Mutant:
    """One way of breaking one function, and the tests of which one must fail."""

    name: str
    watchers: tuple[str, ...]
    apply: Callable[[], None]


def functions_of(module_name: str) -> dict[str, types.FunctionType]:
    """All functions and methods that are written in a module, by their qualified names."""
    module = importlib.import_module(module_name)
    found: dict[str, types.FunctionType] = {}
    for owner in (module, *(c for c in vars(module).values() if inspect.isclass(c))):
        if owner is not module and owner.__module__ != module_name:
            continue
        if getattr(owner, "_is_protocol", False):  # it says what others are to do
            continue
        for thing in vars(owner).values():
            function = _plain(thing)
            if function is not None and function.__code__.co_filename == module.__file__:
                found[function.__qualname__] = function
    return found


def _plain(thing) -> types.FunctionType | None:
    """The function inside of a property, a method or a cache."""
    if isinstance(thing, functools.cached_property):
        thing = thing.func
    elif isinstance(thing, property):
        thing = thing.fget
    elif isinstance(thing, (staticmethod, classmethod)):
        thing = thing.__func__
    thing = inspect.unwrap(thing) if callable(thing) else thing
    return thing if isinstance(thing, types.FunctionType) else None


def exchange(function: types.FunctionType, wrong: Wrong) -> None:
    """Let ``function`` do what ``wrong`` does, which is given the right one."""
    right = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    right.__kwdefaults__ = function.__kwdefaults__
    key = f"_mutant_of_{function.__qualname__}"
    function.__globals__[key] = functools.partial(wrong, right)
    cells = ", ".join(function.__code__.co_freevars)
    body = f"    {cells}\n" if cells else ""
    source = f"def f(*args, **kwargs):\n{body}    return globals()[{key!r}](*args, **kwargs)\n"
    if cells:
        source = f"def outer({cells}):\n{textwrap.indent(source, '    ')}    return f\n"
    made: dict = {}
    exec(source, made)
    code = made["outer"](*([None] * len(function.__code__.co_freevars))) if cells else made["f"]
    function.__defaults__ = function.__kwdefaults__ = None
    function.__code__ = code.__code__


def rewrite(function: types.FunctionType, old: str, new: str) -> None:
    """Let ``function`` have ``new`` in its text where it has ``old``, which it has once."""
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(old) != 1:
        raise ValueError(f"{function.__qualname__} has {source.count(old)} times {old!r}")
    source = source[source.index("def ") :].replace(old, new)
    made: dict = {}
    exec(
        compile(source, f"<mutant of {function.__qualname__}>", "exec"), function.__globals__, made
    )
    function.__code__ = made[function.__name__].__code__


def wrongs(function: types.FunctionType) -> Iterator[tuple[str, Wrong]]:
    """What it may be replaced by, in words and as code, by the annotation of what it returns."""
    returned = str(function.__annotations__.get("return", ""))
    if returned == "bool":
        yield "always", lambda right, *args, **kwargs: _noted(True)
        yield "never", lambda right, *args, **kwargs: _noted(False)
        return
    special = function.__name__.startswith("__")
    if special or returned in ("None", "str", "int") or returned.startswith("Itera"):
        return
    kinds = [str(kind) for name, kind in function.__annotations__.items() if name != "return"]
    if _needed(returned, function.__globals__.get(returned)) in (None, *kinds):
        yield "off", lambda right, *args, **kwargs: _nothing(right, returned, args, kwargs)
    if not UNDOUBLED.issuperset(re.findall(r"\w+", returned)) or not returned:
        yield "wrong", lambda right, *args, **kwargs: _twice(right(*args, **kwargs))


def _needed(returned: str, kind) -> str | None:
    """What a function has to be given to have something to return where it does nothing; None
    where an empty collection will do, or what is not annotated.
    """
    if returned in ("float", "complex"):
        return returned
    if returned in ("Scaled", "Symbol"):
        return "Expr"
    return returned if inspect.isclass(kind) and not issubclass(kind, EMPTY) else None


def _noted(given, right=None):
    """``given``, and whether that is another thing than what is ``right``."""
    global changed
    changed = changed or given is not right
    return given


def _twice(result):
    doubled = _doubled(result)
    return result if doubled == result else _noted(doubled)


def _nothing(right, returned: str, args, kwargs):
    """What a function gives that has nothing to do."""
    if "None" in returned:
        return _noted(None, right(*args, **kwargs))
    values = args[1:] if inspect.getfullargspec(right).args[:1] == ["self"] else args
    result = right(*args, **kwargs)
    kind = Value if isinstance(result, Value) else type(result)
    same = next((a for a in values if isinstance(a, kind) and type(a) is not str), None)
    if isinstance(result, Expr):
        operand = next((a for a in values if isinstance(a, Expr)), result)
        return _noted(operand if returned else None, result)
    if isinstance(result, Scaled):
        return _noted(Scaled(next(a for a in values if isinstance(a, Expr))), result)
    if isinstance(result, EMPTY) or same is not None:
        nothing = type(result)() if same is None else same
        return result if nothing == result else _noted(nothing, result)
    return result


def _doubled(result):
    """An expression, or those in a collection or a record, times 2."""
    if isinstance(result, Value):
        return Plus(((result, False), (result, False)), dims=result.dims)
    is_number = isinstance(result, (float, complex, PolyElement))
    if is_number or (isinstance(result, Expr) and not result.is_Boolean):
        return 2 * result
    if isinstance(result, dict):
        return {key: _doubled(value) for key, value in result.items()}
    if type(result) in (list, set, frozenset):
        return type(result)(map(_doubled, result))
    if type(result) is tuple and result:
        *_, at = [i for i, e in enumerate(result) if not is_dataclass(e)] or [len(result) - 1]
        return (*result[:at], _doubled(result[at]), *result[at + 1 :])
    if isinstance(result, Fraction):
        return Fraction(2 * result.numerator, result.denominator)
    return _doubled_record(result) if is_dataclass(result) else result


def _doubled_record(record):
    """A record with one field times 2: the first that is neither its name nor another record."""
    for field in fields(record):
        value = getattr(record, field.name)
        is_record = is_dataclass(value) and not isinstance(value, Value)
        if not field.init or is_record or isinstance(value, Tensor):
            continue
        if (doubled := _doubled(value)) != value:
            return replace(record, **{field.name: doubled})
    return record
