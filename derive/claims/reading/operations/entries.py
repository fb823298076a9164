"""Shared parts of the operation tables: an entry, its arguments, its dimensions.

The contract of an entry. It is a function of the `Space` and of torch's own arguments under torch's
names, so that positional and keyword arguments are bound by Python's rules. It receives tensors and
numbers as `TextValue`, and ``None``, bools, strings and tuples as they are. It returns a
`TextValue`, a view with the storage of its argument, or an `Extremes`. It raises `Refusal` for what
it cannot read and `Mismatch` for shapes that do not fit.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sympy import Expr

from derive.claims.reading.refusals import Mismatch, Refusal
from derive.claims.reading.values import MASK, NUMBER, TENSOR, Extent, Space, TextValue, held_as

NUMPYS_WORDS = {"axis": "dim", "keepdims": "keepdim"}
WITHOUT_MEANING = (
    "dtype",
    "device",
    "layout",
    "requires_grad",
    "memory_format",
    "pin_memory",
    "inplace",
)
LARGEST_INTEGER = 10**6  # of a dimension or another whole number among arguments


@dataclass(frozen=True)
class Extremes:
    """The result of ``x.max(dim)``: a pair (values, indices)."""

    values: TextValue
    indices: TextValue


@dataclass(frozen=True)
class Operation:
    """One torch operation. ``forms`` are the ways to call it: 'method', 'torch', 'F'."""

    compute: Callable[..., Any]
    forms: frozenset[str]

    def lacks_dim(self, arguments: Sequence, keywords: Mapping[str, Any]) -> bool:
        """Whether the dimension is missing in a call that must name one."""
        due = inspect.signature(self.compute).parameters.get("dim")
        needed = due and due.annotation == "Dim" and due.default is due.empty
        return bool(needed) and len(arguments) == 1 and not {"dim", "axis"} & {*keywords}

    def apply(self, name: str, space: Space, arguments: Sequence, keywords: Mapping[str, Any]):
        signature = inspect.signature(self.compute)
        row = getattr(self.compute, "row", None)
        words = NUMPYS_WORDS | (dict(row.aten) if row else {})
        keywords = {  # numpy's keywords, which torch accepts too
            own if own in signature.parameters else k: value
            for k, value in keywords.items()
            for own in [words.get(k, k)]
        }
        several = next(
            (p.name for p in signature.parameters.values() if p.kind is p.VAR_POSITIONAL), ""
        )
        if several in keywords:  # flip(x, dims=(0,))
            arguments = (*arguments, keywords.pop(several))
        try:
            bound = signature.bind(space, *arguments, **keywords)
        except TypeError as error:
            raise Refusal(f"{name}: {error}", f"supported is {usage(name, signature)}") from None
        for parameter, value in bound.arguments.items():
            wanted = signature.parameters[parameter].annotation
            if wanted == "Value | None" and value is None:
                continue
            if wanted in ("TextValue", "TextValue | None") and not isinstance(value, TextValue):
                raise Refusal(
                    f"{name}: {parameter} is {described(value)}, not a tensor or a number",
                    f"supported is {usage(name, signature)}",
                )
        return self.compute(*bound.args, **bound.kwargs)


def usage(name: str, signature: inspect.Signature) -> str:
    shown = []
    for parameter in list(signature.parameters.values())[1:]:
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name in WITHOUT_MEANING:
            continue
        text = (
            f"*{parameter.name}" if parameter.kind is parameter.VAR_POSITIONAL else parameter.name
        )
        default = parameter.default
        shown.append(text if default is parameter.empty else f"{text}={default}")
    return f"{name}({', '.join(shown)})"


def described(value) -> str:
    """Describe an argument for a message."""
    if isinstance(value, TextValue):
        return f"a {value.kind} of shape {value.shape}" if value.kind != NUMBER else "a number"
    kinds = {Extremes: "a pair (values, indices)", tuple: "a tuple", str: "text"}
    return kinds.get(type(value), str(value) if isinstance(value, bool) else "a dtype")


def entry(table: dict[str, Operation], *names: str, forms: str = "method torch"):
    """Register the decorated function in ``table`` under ``names``."""

    def register(compute):
        for name in names:
            table[name] = Operation(compute, frozenset(forms.split()))
        return compute

    return register


def integer(value, what: str) -> int:
    """A Python integer written as a literal."""
    if isinstance(value, TextValue) and value.kind == NUMBER and value.expression.is_Integer:
        whole = int(value.expression)
        if abs(whole) <= LARGEST_INTEGER:
            return whole
    raise Refusal(f"{what} is {described(value)}, not an integer", "write it as a number: 0, 1, -1")


def truth(value, what: str) -> bool:
    if isinstance(value, bool):
        return value
    raise Refusal(f"{what} is {described(value)}", "write True or False")


def position(space: Space, x: TextValue, dim, what: str = "dim", extra: int = 0) -> int:
    """The index of a dimension, counted from the front; ``extra`` dimensions are still to
    be added.
    """
    space.by_position = True
    place, rank = integer(dim, what), len(x.dims) + extra
    if not -rank <= place < rank:
        raise Refusal(
            f"there is no dimension {place} in the shape {x.shape}",
            f"dimensions are counted from 0 to {rank - 1}, or from -1 backwards"
            if rank
            else "it has no dimension",
        )
    return place % rank


def positions(space: Space, x: TextValue, dim) -> list[int]:
    """The indices that ``dim`` means: one, several, or all of them for None."""
    if dim is None:
        return list(range(len(x.dims)))
    places = [position(space, x, one) for one in (dim if isinstance(dim, tuple) else (dim,))]
    if len(set(places)) != len(places):
        raise Refusal("the same dimension is given twice", "name each dimension once")
    return places


def tensor(x: TextValue, what: str = "this") -> TextValue:
    """``x``, if arithmetic and torch's methods apply to it."""
    if x.kind not in (TENSOR, MASK):
        words = {NUMBER: "a Python number", "index": "an index", "count": "a range"}
        raise Refusal(f"{what} is {words[x.kind]}, not a tensor", "write the operation on a tensor")
    return x


def reduced(
    space: Space,
    x: TextValue,
    dim,
    keepdim,
    build: Callable[[Expr, list], Expr],
    extent: Extent | None = None,
    dtype: str | None = None,
) -> TextValue:
    """``build(expression, axes)`` with the dimensions ``dim`` removed, or kept with size 1.

    Long: torch's own arguments, and their conversion.
    """
    keepdim = truth(keepdim, "keepdim")
    places = positions(space, tensor(x), dim)
    gone = [x.dims[place] for place in places if x.dims[place] is not None]
    kept = (
        None if place in places else axis
        for place, axis in enumerate(x.dims)
        if keepdim or place not in places
    )
    e = build(x.expression, gone)
    held = held_as(dtype or x.dtype)
    return space.made(e, tuple(kept), extent or x.extent.inside(), **held)


def same_shape(space: Space, x: TextValue, other: TextValue, what: str) -> None:
    """Raise `Mismatch` unless both have the same dimensions."""
    sizes, others = ([space.size(axis) for axis in v.dims] for v in (x, other))
    if sizes != others:
        raise Mismatch(f"{what}: shape {other.shape} is not {x.shape}", "the shapes must be equal")
