"""The vocabulary of torch that is read: operations, attributes, modules and dtypes, as tables.

A word in none of them is refused; nothing is looked up in torch or in Python.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sympy import Eq, Ge, Gt, Integer, Le, Lt, Ne

from derive.claims.reading.arrays import shared, within
from derive.claims.reading.broadcasting import added
from derive.claims.reading.operations.dtypes import Dtype, converted
from derive.claims.reading.operations.empties import empties
from derive.claims.reading.operations.entries import Operation
from derive.claims.reading.operations.functions import functions
from derive.claims.reading.operations.making import making
from derive.claims.reading.operations.numpys import ATTRIBUTES as NUMPYS_ATTRIBUTES
from derive.claims.reading.operations.numpys import linalg, numpys
from derive.claims.reading.operations.picking import picking
from derive.claims.reading.operations.shaping import (
    axis_of_size,
    matrix_transposed,
    shape_of,
    shaping,
    transposed,
)
from derive.claims.reading.refusals import SHOWN_NAME, SIMILAR, Refusal, printable
from derive.claims.reading.values import (
    BOOL,
    COUNT,
    FLOAT,
    INT,
    NUMBER,
    TENSOR,
    Space,
    TextValue,
    entries,
    infinity,
    number,
)
from derive.language.torch_ops.refused import refused

NUMPY, LINALG, SPECIAL = "numpy", "linalg", "special"
OPERATIONS: dict[str, Operation] = {
    **functions,
    **shaping,
    **making,
    **picking,
    **shared,
    **empties,
}
# Functions with another meaning in F or as methods, or only defined there.
IN_F, OF_TENSORS = within("F"), within("Tensor")
IN_MODULES = {NUMPY: {**OPERATIONS, **numpys}, LINALG: {**within(LINALG), **linalg}}
IN_MODULES |= {SPECIAL: within(SPECIAL), "fft": {}}
MODULES = {
    "torch": "torch",
    "F": "F",
    "torch.nn.functional": "F",
    "nn.functional": "F",
    "math": "math",
    "np": NUMPY,
    "numpy": NUMPY,
    **dict.fromkeys(("torch.linalg", "np.linalg", "numpy.linalg"), LINALG),
    **dict.fromkeys(("torch.special", "special"), SPECIAL),
    **dict.fromkeys(("torch.fft", "np.fft", "numpy.fft"), "fft"),
}
OF_FLOATS = ("float", "float16", "float32", "float64", "double", "half", "bfloat16")
DTYPES: dict[str, Dtype] = {
    **dict.fromkeys(OF_FLOATS, Dtype(FLOAT)),
    **dict.fromkeys(("long", "int64", "int", "int32"), Dtype(INT)),
    "bool": Dtype(BOOL),
}
RELATIONS: dict[type, Callable] = {
    ast.Lt: Lt,
    ast.LtE: Le,
    ast.Gt: Gt,
    ast.GtE: Ge,
    ast.Eq: Eq,
    ast.NotEq: Ne,
}


ATTRIBUTES: dict[str, Callable[[Space, TextValue], Any]] = {
    "T": transposed,
    "mT": matrix_transposed,
    "shape": shape_of,
    "data": lambda space, x: x,
    "dtype": lambda space, x: Dtype(x.dtype),
    "device": lambda space, x: Dtype(),
    "ndim": lambda space, x: number(len(x.dims)),
}


def attribute(space: Space, name: str) -> Callable[[Space, TextValue], Any] | None:
    """The attribute ``x.name``, in torch or numpy."""
    found = NUMPYS_ATTRIBUTES.get(name) if space.numpy else None
    return found or ATTRIBUTES.get(name)


def filled_with(space: Space, x: TextValue, filler: TextValue | None = None) -> TextValue:
    """``x.fill_(...)`` and the like: ``x`` with other entries, converted to its dtype."""
    filler = converted(space, filler or number(0), x.dtype)
    return entries(added(space, TextValue(Integer(0), x.dims), filler), x.dtype)


FILLS = {"zero_": 0, "fill_": 1, "copy_": 1}  # the number of their arguments


MOST_COUNTED = 16  # dimensions


@dataclass(frozen=True)
class Builtin:
    """A Python builtin of one argument."""

    apply: Callable[[Space, Any], TextValue]
    usage: str


INFINITE = {"inf": 1, "infinity": 1, "-inf": -1, "-infinity": -1}


def _counted(space: Space, end) -> Any:
    """``range(3)`` as three numbers, ``range(n)`` as the positions along an axis."""
    end = tensor_or_number(end, BUILTINS["range"].usage)
    if end.kind == NUMBER and end.expression.is_Integer and 0 <= end.expression <= MOST_COUNTED:
        return tuple(map(number, range(int(end.expression))))
    return TextValue(Integer(0), (axis_of_size(space, end, ()),), COUNT)


def _as_tuple(space: Space, items) -> tuple:
    if not isinstance(items, tuple):
        raise Refusal("this is not a supported tuple", "write the numbers out: (0, 1)")
    return items


def _length(space: Space, x) -> TextValue:
    if not isinstance(x, TextValue) or not x.dims:
        raise Refusal("only tensors have a length here", "write len(x) of a tensor")
    return number(space.size(x.dims[0]))


def _float(space: Space, x) -> TextValue:
    if isinstance(x, str) and x in INFINITE:
        space.infinite = True
        return infinity(INFINITE[x])
    if not isinstance(x, TextValue) or x.dims or x.kind not in (NUMBER, TENSOR):
        raise Refusal("float takes a number", "leave it out")
    return entries(x, FLOAT)


def tensor_or_number(x, usage: str) -> TextValue:
    if isinstance(x, TextValue):
        return x
    raise Refusal("this is neither a tensor nor a number", f"write {usage}")


BUILTINS = {
    "range": Builtin(_counted, "range(n)"),
    "tuple": Builtin(_as_tuple, "tuple(range(x.ndim - 1))"),
    "list": Builtin(_as_tuple, "list(range(x.ndim - 1))"),
    "len": Builtin(_length, "len(x)"),
    "float": Builtin(_float, "float(x)"),
}


def operation(module: str, name: str, node: ast.AST | None = None) -> Operation:
    """The entry for a function of a module."""
    form = "F" if module == "F" else "torch"
    known = IN_MODULES.get(module, OPERATIONS)
    found = (IN_F.get(name) if form == "F" else None) or known.get(name)
    if found is None or form not in found.forms:
        problem = f"{printable(name)} is not a supported function"
        full = f"{module}_{name}" if module in (LINALG, SPECIAL, "fft") else name
        if full in refused:
            why, remedy = refused[full]
            raise Refusal(f"{problem}: {why}", remedy, node)
        raise Refusal(problem, allowed(name, form, known), node)
    return found


def allowed(name: str, form: str, operations: Mapping[str, Operation] = OPERATIONS) -> str:
    known = sorted(n for n, operation in operations.items() if form in operation.forms)
    known += sorted(ATTRIBUTES) if form == "method" else []
    return meant(name, known)


def meant(name: str, known: list[str]) -> str:
    """The likely intended word, or all known words."""
    close = difflib.get_close_matches(name[:SHOWN_NAME], known, n=1, cutoff=SIMILAR)
    return f"did you mean {close[0]}?" if close else f"supported: {', '.join(known)}"
