"""What torch and numpy compute entry by entry, as lines of the notation.

An entry of `operations` makes a line that gives what they give: it receives the arguments as they
were typed, each a `Part`, and returns code; beside it stand the names of its arguments, in torch's
order.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from derive.source.line_reader import Reader
from derive.source.python_operators import is_number

ALONE = (ast.Name, ast.Call, ast.Attribute)
NAMES_OF_OPERANDS = ("input", "self", "a", "x1", "tensor")
OTHER_NAMES = {"a_min": "min", "a_max": "max", "x2": "other", "y": "other", "b": "other"}


class Part(str):
    """A part of a line: as an operand ``o``, and as a condition ``holds``."""

    o: str
    holds: str

    @classmethod
    def of(cls, node: ast.AST, reader: Reader) -> Part:
        self = cls(ast.unparse(node))
        number = isinstance(node, ast.Constant)
        self.o = self if number or isinstance(node, ALONE) else f"({self})"
        self.holds = f"Ne({self}, 0)" if is_number(node, reader) else self
        return self


def _chosen(*branches: tuple[str, str]) -> str:
    return f"Piecewise({', '.join(f'({value}, {condition})' for value, condition in branches)})"


def where(condition: Part, x: Part, other: Part) -> str:
    return _chosen((x, condition.holds), (other, "True"))


def clamped(x: Part, min: Part | None = None, max: Part | None = None) -> str:
    low = [(min, f"{x.o} < {min.o}")] if min and min != "None" else []
    high = [(max, f"{x.o} > {max.o}")] if max and max != "None" else []
    return _chosen(*low, *high, (x, "True"))


# What makes the line, the names of its arguments, and those of torch and numpy for it.
_OPERATIONS: dict[tuple[Callable[..., str], str], str] = {
    (where, "condition x other"): "where",
    (clamped, "x min max"): "clamp clip",
    (clamped, "x min"): "clamp_min",
    (lambda x, max: clamped(x, max=max), "x max"): "clamp_max",
    (lambda x, other: _chosen((x, f"{x.o} > {other.o}"), (other, "True")), "x other"): (
        "maximum fmax"
    ),
    (lambda x, other: _chosen((x, f"{x.o} < {other.o}"), (other, "True")), "x other"): (
        "minimum fmin"
    ),
    (lambda x, mask, value: _chosen((value, mask.holds), (x, "True")), "x mask value"): (
        "masked_fill"
    ),
    (lambda x, other: f"{x.o} + {other.o}", "x other"): "add",
    (lambda x, other: f"{x.o} - {other.o}", "x other"): "sub subtract",
    (lambda x, other: f"{x.o} * {other.o}", "x other"): "mul multiply",
    (lambda x, other: f"{x.o} / {other.o}", "x other"): "div divide true_divide",
    (lambda x, exponent: f"{x.o}**{exponent.o}", "x exponent"): "pow power float_power",
    (lambda x: f"-{x.o}", "x"): "neg negative",
    (lambda x: f"{x.o}**2", "x"): "square",
    (lambda x: f"1 / sqrt({x})", "x"): "rsqrt",
    (lambda x: f"1 / {x.o}", "x"): "reciprocal",
    (lambda x: f"Abs({x})", "x"): "abs absolute fabs",
    (lambda x: f"log(1 + {x.o})", "x"): "log1p",
    (lambda x: f"exp({x}) - 1", "x"): "expm1",
    (lambda x: f"log({x}, 2)", "x"): "log2",
    (lambda x: f"log({x}, 10)", "x"): "log10",
    (lambda x: f"2**{x.o}", "x"): "exp2",
}
operations = {
    name: (make, tuple(arguments.split()))
    for (make, arguments), names in _OPERATIONS.items()
    for name in names.split()
}


def beside(parts: Sequence[ast.AST]) -> str:
    """How several tensors become one, along a new axis."""
    texts = [(ast.unparse(part), isinstance(part, ALONE)) for part in parts]
    operands = [text if alone else f"({text})" for text, alone in texts]
    code = " + ".join(f"OneHot({i}, State) * {operand}" for i, operand in enumerate(operands))
    return f'write {code}, with State = Axis("State", {len(parts)})'


def entrywise(name: str, x: list[ast.AST], call: ast.Call, reader: Reader) -> str:
    """The line for a call of an operation, on the tensor in ``x`` where it is a method; '' where it
    is none of them, or not called as they are.
    """
    make, names = operations.get(name, (None, ()))
    if make is None:
        return ""
    in_order = sorted(names, key=lambda n: n != "x") if x else names
    given: Mapping[str, ast.AST] = dict(zip(in_order, [*x, *call.args], strict=False))
    for keyword in call.keywords:
        named = "x" if keyword.arg in NAMES_OF_OPERANDS else keyword.arg
        given[OTHER_NAMES.get(named, named)] = keyword.value
    try:
        return make(**{n: Part.of(node, reader) for n, node in given.items()})
    except TypeError:
        return ""
