"""Rewrites of calls that the notation lacks: torch and numpy functions, tensor methods, modules
such as ``nn.Tanh()(x)``, undefined names.
"""

from __future__ import annotations

import ast
import re
import sys

from derive.language.errors import NOTATION
from derive.language.source.class_source import MISSING
from derive.language.source.dimensions import dimensions_named, goes_along, unmoved
from derive.language.source.entrywise import beside, entrywise
from derive.language.source.line_reader import (
    LineReader,
    arguments,
    is_library,
    is_pythons,
    makes_formulas,
    package_of,
)
from derive.language.source.products import product
from derive.language.source.spellings import (
    DECLARATIONS,
    HAS,
    NODES,
    in_the_gallery,
    in_the_notation,
    is_pointwise,
    spellings,
)

RANDOM, CREATES, SIDE_BY_SIDE = (spellings[name] for name in ("rand", "tensor", "stack"))
DERIVATIVE = spellings["diff"]
OPERANDS = 2  # of a derivative: function and variable
ARRAYS = (CREATES, spellings["arange"], spellings["eye"])
ALIKE = ("inplace", "training")  # arguments that do not change the value
DRAWS = ("random", "numpy.random")


def rewrite_of(call: ast.Call, function: object, reader: LineReader) -> str:
    """The replacement line, or an explanation; '' for a call that the notation supports.
    ``function`` is `MISSING` for a method or an undefined name.
    """
    call = as_plain(call)
    name = name_of(call, function)
    if name in (*NODES, *DECLARATIONS):
        return ""
    method = is_method(call, reader)
    x = [call.func.value] if method else []
    found = dimensions_named(call, function, reader)
    found = found or product(name, [*x, *call.args], reader)
    if found:
        return found
    if spellings.get(name) == DERIVATIVE and len(of := [*x, *call.args]) == OPERANDS:
        return _gradient(*of)
    operands = [ast.unparse(unmoved(each)) for each in [*x, *call.args]]
    if is_pointwise(name) and name not in spellings:
        return in_sympy(name, ", ".join(operands), reader)
    tensors = [ast.unparse(a) for a in [*x, *call.args] if reader.is_tensor(a)]
    others = [ast.unparse(a) for a in call.args if _is_parameter(a)]
    others += [ast.unparse(k) for k in call.keywords if k.arg not in ALIKE]
    found = in_the_gallery(name, tensors, others) if name not in spellings else ""
    if not found and (code := entrywise(name, x, call, reader)):
        return f"write {code}"
    if spellings.get(name) == SIDE_BY_SIDE and len(parts := getattr(call.args[0], "elts", ())) > 1:
        return f"{beside(parts)}: side by side along a new axis"
    found = found or in_the_notation(name)
    return "" if found == HAS else found


def _gradient(of: ast.AST, by: ast.AST) -> str:
    """The ``Gradient`` equivalent to torch's gradient of a sum, or to SymPy's
    entrywise derivative.
    """
    each = by.elts if isinstance(by, (ast.List, ast.Tuple)) else [by]
    written = (f"Gradient({ast.unparse(of)}, {ast.unparse(x)})" for x in each)
    return f"write {' and '.join(written)}"


def in_sympy(name: str, operands: str, reader: LineReader) -> str:
    """The equivalent SymPy call, with its import if missing."""
    known = package_of(reader.value_of(name)) == "sympy"
    return f"write {name}({operands})" + ("" if known else f", with: from sympy import {name}")


def _is_parameter(node: ast.AST) -> bool:
    """Whether an argument is a number."""
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def is_method(call: ast.Call, reader: LineReader) -> bool:
    """Whether it is called as a method of a tensor."""
    function = call.func
    return isinstance(function, ast.Attribute) and reader.is_tensor(unmoved(function.value))


def as_plain(call: ast.Call) -> ast.Call:
    """``nn.Softplus()(x)`` as ``nn.softplus(x)``, with the arguments of both."""
    inner = call.func
    if not (isinstance(inner, ast.Call) and isinstance(inner.func, (ast.Name, ast.Attribute))):
        return call
    key = "id" if isinstance(inner.func, ast.Name) else "attr"
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", getattr(inner.func, key)).lower()
    function = (
        ast.Name(snake, ast.Load())
        if key == "id"
        else ast.Attribute(inner.func.value, snake, ast.Load())
    )
    parameters = [a for a in inner.args if isinstance(getattr(a, "value", None), float)]
    dims = inner.args if goes_along(snake) else parameters  # other parameters are sizes
    return ast.Call(function, [*call.args, *dims], [*call.keywords, *inner.keywords])


def name_of(call: ast.Call, function: object) -> str:
    """The name of a called function, as typed or as defined."""
    typed = getattr(call.func, "attr", getattr(call.func, "id", ""))
    own = getattr(function, "__name__", "")
    return own if own and typed not in spellings and function is not MISSING else typed


def works_on(function: object) -> str:
    """Why a library function cannot be called with tensors."""
    package = package_of(function)
    if package == "sympy":
        return "that works on how a formula is written, and a statement is a name in it"
    if is_pythons(function):
        return f"Python's {function.__name__} takes numbers, and a tensor is a formula here"
    return "that computes with numbers, and a tensor is a formula here"


def works_on_numbers(node: ast.Call, function: object, reader: LineReader) -> bool:
    """Whether a function for plain numbers is called with formulas, directly or in a list."""
    if makes_formulas(function, reader.body.file):
        return False
    package = package_of(function)
    pythons = package in ("builtins", "sympy") or package in sys.stdlib_module_names
    return any(
        reader.is_tensor(unmoved(a)) or (not pythons and reader.holds(a)) for a in arguments(node)
    )


def no_formula(function: object, call: ast.Call, reader: LineReader) -> tuple[str, str] | None:
    """The problem and remedy for a library call without mathematics, which draws a number or makes
    an array. None for any other call.
    """
    if function is MISSING or not is_library(function, reader.body.file):
        return None
    name, package = name_of(call, function), package_of(function)
    homes = (getattr(function, "__module__", None), type(_owner(function)).__module__)
    drawn = any(f"{home}.".startswith(f"{draws}.") for home in homes for draws in DRAWS)
    if drawn or (package not in ("sympy", NOTATION, "builtins") and spellings.get(name) == RANDOM):
        return "this draws a number once, when the file is read", str(RANDOM)
    if package not in ("torch", "numpy", "jax") or spellings.get(name) not in ARRAYS:
        return None
    first = call.args[0] if call.args else None
    number = first.value if isinstance(first, ast.Constant) else None
    if len(call.args) == 1 and isinstance(number, (int, float)) and name.endswith(("or", "ray")):
        return "this makes an array, and the mathematics has numbers", f"write {number}"
    return "this makes an array, and the mathematics has none", str(spellings[name])


def _owner(function: object) -> object:
    return getattr(function, "__self__", None)
