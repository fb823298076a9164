"""Torch's operations that return their input, or create a tensor."""

from __future__ import annotations

from dataclasses import replace

from sympy import Expr

from derive.claims.reading.operations.dtypes import Dtype, asked, converted, floats
from derive.claims.reading.operations.entries import Operation, entry
from derive.claims.reading.operations.joining import stack
from derive.claims.reading.operations.shaping import relaid
from derive.claims.reading.refusals import Refusal
from derive.claims.reading.values import (
    BOOL,
    FLOAT,
    INDEX,
    INT,
    NUMBER,
    Dims,
    Extent,
    Space,
    TextValue,
    entries,
    held_as,
)

making: dict[str, Operation] = {}


# Identity operations


@entry(making, "detach", forms="method torch F")
@entry(making, "contiguous", forms="method")
def _itself(space: Space, input: TextValue):
    return input


@entry(making, "requires_grad_", forms="method")
def _requires_grad(space: Space, input: TextValue):
    return floats(input, "gradient")


def _as_dtype(space: Space, x: TextValue, dtype: str) -> TextValue:
    """``x.to(dtype)`` where x has that dtype already."""
    if x.kind == INDEX and dtype != INT:
        raise Refusal("an index must be an integer tensor", "leave this out")
    if x.dtype == FLOAT and dtype == INT:
        raise Refusal("this truncates every entry", "leave it out")
    same = x.dtype == dtype
    return relaid(x, x.dims) if same else replace(converted(space, x, dtype), storage=None)


@entry(making, "float", "double", "half", "bfloat16", forms="method")
def _float(space: Space, input: TextValue):
    return _as_dtype(space, input, FLOAT)


@entry(making, "int", "long", forms="method")
def _int(space: Space, input: TextValue):
    return _as_dtype(space, input, INT)


@entry(making, "bool", forms="method")
def _bool(space: Space, input: TextValue):
    return _as_dtype(space, input, BOOL)


@entry(making, "to", "type", "type_as", forms="method")
def _to(space: Space, input: TextValue, other=None, dtype=None):
    if not all(isinstance(o, (Dtype, TextValue, type(None))) for o in (other, dtype)) or (
        other is None and dtype is None
    ):
        raise Refusal("the target dtype is missing", "write .to(torch.float32)")
    default = input.dtype if other is None else other.dtype or input.dtype
    return _as_dtype(space, input, asked(dtype, default))


@entry(making, "clone")
def _clone(space: Space, input: TextValue):
    return replace(input, storage=None)


@entry(making, "item", forms="method")
def _item(space: Space, input: TextValue):
    if input.dims:
        raise Refusal(f"item of the shape {input.shape}", "it takes one entry")
    return replace(input, kind=NUMBER, storage=None, whole=input.dtype != FLOAT)


# New tensors


def _filled(space: Space, dims: Dims, e: Expr, dtype: str) -> TextValue:
    space.by_position = True
    return space.made(e, dims, Extent(), **held_as(dtype))


def filled_with(space: Space, dims: Dims, value: TextValue, dtype: str) -> TextValue:
    return _filled(space, dims, _number(converted(space, value, dtype)), dtype)


def _number(value: TextValue) -> Expr:
    if value.dims:
        raise Refusal(f"the shape {value.shape} cannot fill", "fill with a number")
    return value.expression


@entry(making, "scalar_tensor", forms="torch")
def _scalar_tensor(space: Space, s: TextValue, dtype=None, device=None):
    return _tensor_of(space, s, asked(dtype, FLOAT, device))


@entry(making, "tensor", "as_tensor", forms="torch")
def _tensor(space: Space, data, dtype=None, device=None):
    data = _laid_out(space, data)
    if data.dims:
        return converted(space, data, asked(dtype, data.dtype, device))
    return _tensor_of(space, data, asked(dtype, data.dtype, device))


def _laid_out(space: Space, data) -> TextValue:
    """``[[1, 2], [3, 4]]`` as a tensor, one axis for each level of brackets."""
    if isinstance(data, tuple) and data:
        return stack(space, [_laid_out(space, part) for part in data], 0)
    if not isinstance(data, TextValue):
        raise Refusal("this is not a list of numbers", "write torch.tensor([1.0, 2.0])")
    return data


def _tensor_of(space: Space, data: TextValue, dtype: str) -> TextValue:
    value = converted(space, data, dtype)
    return entries(TextValue(_number(value), extent=value.extent), dtype)
