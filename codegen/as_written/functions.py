"""Numeric versions of SymPy's functions, by their SymPy names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

import torch
from torch import Tensor

from codegen.as_written.entries import NumberEntries, Unreadable, entries_of, together
from codegen.targets.torch.interpret import torch_function
from derive.language.symbols import Axis

Sizes = Mapping[Axis, int]

COMPARISONS = {
    **dict.fromkeys(("Eq", "Equality"), torch.eq),
    **dict.fromkeys(("Ne", "Unequality"), torch.ne),
    **dict.fromkeys(("Lt", "StrictLessThan"), torch.lt),
    **dict.fromkeys(("Le", "LessThan"), torch.le),
    **dict.fromkeys(("Gt", "StrictGreaterThan"), torch.gt),
    **dict.fromkeys(("Ge", "GreaterThan"), torch.ge),
}
LOGIC = {"And": torch.logical_and, "Or": torch.logical_or, "Xor": torch.logical_xor}
# Those that torch does not have.
NAMED: dict[str, Callable[..., Tensor]] = {
    "abs": torch.abs,
    "gamma": lambda x: torch.where(x > 0, torch.lgamma(x).exp(), torch.nan),
    "erfi": lambda x: torch.full_like(x, torch.nan),
    "cbrt": lambda x: x.sign() * x.abs() ** (1 / 3),
    "log": lambda x, base=None: x.log() if base is None else x.log() / base.log(),
    "root": lambda x, n: x ** (1 / n),
    "real_root": lambda x, n: x.sign() * x.abs() ** (1 / n),
    "Pow": torch.pow,
    "sqrt": torch.sqrt,
    "cot": lambda x: 1 / x.tan(),
    "sec": lambda x: 1 / x.cos(),
    "csc": lambda x: 1 / x.sin(),
    "coth": lambda x: 1 / x.tanh(),
    "sech": lambda x: 1 / x.cosh(),
    "csch": lambda x: 1 / x.sinh(),
    "Detach": torch.Tensor.detach,
}
SAME = ("sympify", "S", "expand", "_sympify")  # return the same formula in another form


def of_sympy(function: Callable, sizes: Sizes) -> Callable:
    """A version of a SymPy function that also takes numbers; without tensors it calls SymPy."""
    name = getattr(function, "__name__", "")

    def applied(*values: object, **options: object) -> object:
        if not any(map(_holds, values)):
            return function(*values, **options)
        if name == "Piecewise":
            return chosen(values, sizes)
        if name in SAME:
            return values[0]
        if name in COMPARISONS:
            return together(COMPARISONS[name], *values, sizes=sizes)
        if name in LOGIC:
            return reduce(lambda a, b: together(LOGIC[name], a, b, sizes=sizes), values)
        if name == "Not":
            return ~entries_of(values[0], sizes)
        if name in ("Add", "Mul"):
            step = torch.add if name == "Add" else torch.mul
            return reduce(lambda a, b: together(step, a, b, sizes=sizes), values)
        found = NAMED.get(name) or torch_function(name)
        if found is None:
            raise Unreadable(f"{name} of numbers")
        return together(found, *values, sizes=sizes)

    return applied


def _holds(value: object) -> bool:
    return isinstance(value, NumberEntries) or (
        isinstance(value, tuple) and any(map(_holds, value))
    )


def chosen(branches: tuple, sizes: Sizes) -> NumberEntries:
    """The first value whose condition holds."""
    result = None
    for value, condition in reversed(branches):
        if result is None:
            everywhere = entries_of(condition, sizes)
            result = together(lambda v, c: v.double(), value, everywhere, sizes=sizes)
        else:
            result = together(torch.where, condition, value, result, sizes=sizes)
    return result
