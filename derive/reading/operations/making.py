"""Torch's operations that give the same tensor once more, or make one of nothing."""

from __future__ import annotations

from sympy import Expr, Integer

from derive.reading.operations.entries import Dtype, Operation, entry
from derive.reading.operations.shaping import axis_of_size, dims_of_sizes, relaid
from derive.reading.refusals import Refusal
from derive.reading.values import COUNT, MASK, TENSOR, Dims, Extent, Space, Value

making: dict[str, Operation] = {}


# The same tensor once more


@entry(making, "detach", "requires_grad_", "contiguous", forms="method")
def _itself(space: Space, input: Value):
    return input


@entry(making, "float", "double", "half", "bfloat16", forms="method")
def _float(space: Space, input: Value):
    return relaid(input, input.dims) if input.kind != MASK else _as_numbers(input)


def _as_numbers(mask: Value) -> Value:
    return Value(mask.expression, mask.dims, TENSOR, mask.by_name, mask.extent)


@entry(making, "to", "type", "type_as", forms="method")
def _to(space: Space, input: Value, other, dtype=None):
    if not isinstance(other, (Dtype, Value)):
        raise Refusal("to what is not said", "write .to(torch.float32)")
    return _float(space, input)


@entry(making, "int", "long", forms="method")
def _int(space: Space, input: Value):
    if input.kind == TENSOR:
        raise Refusal("this rounds every entry", "leave it out")
    return _as_numbers(input) if input.kind == MASK else input


@entry(making, "clone")
def _clone(space: Space, input: Value):
    return Value(input.expression, input.dims, input.kind, input.by_name, input.extent)


@entry(making, "item", forms="method")
def _item(space: Space, input: Value):
    if input.dims:
        raise Refusal(f"item of the shape {input.shape}", "it takes one entry")
    return Value(input.expression, (), TENSOR, extent=input.extent)


# New tensors


def _filled(space: Space, dims: Dims, e: Expr) -> Value:
    space.by_position = True
    return space.made(e, dims, Extent())


@entry(making, "zeros_like")
def _zeros_like(space: Space, input: Value, dtype=None, device=None):
    return _filled(space, input.dims, Integer(0))


@entry(making, "ones_like")
def _ones_like(space: Space, input: Value, dtype=None, device=None):
    return _filled(space, input.dims, Integer(1))


@entry(making, "full_like")
def _full_like(space: Space, input: Value, fill_value: Value, dtype=None, device=None):
    return _filled(space, input.dims, _number(fill_value))


def _number(value: Value) -> Expr:
    if value.dims:
        raise Refusal(f"the shape {value.shape} cannot fill", "fill with a number")
    return value.expression


@entry(making, "zeros", forms="torch")
def _zeros(space: Space, *size, dtype=None, device=None):
    return _filled(space, dims_of_sizes(space, size), Integer(0))


@entry(making, "ones", forms="torch")
def _ones(space: Space, *size, dtype=None, device=None):
    return _filled(space, dims_of_sizes(space, size), Integer(1))


@entry(making, "full", forms="torch")
def _full(space: Space, size, fill_value: Value, dtype=None, device=None):
    return _filled(space, dims_of_sizes(space, (size,)), _number(fill_value))


@entry(making, "tensor", "as_tensor", "scalar_tensor", forms="torch")
def _tensor(space: Space, data: Value, dtype=None, device=None):
    return Value(_number(data), (), TENSOR, extent=data.extent)


@entry(making, "arange", forms="torch")
def arange(space: Space, end: Value, device=None):
    axis = axis_of_size(space, end, ())
    return Value(Integer(0), (axis,), COUNT)
