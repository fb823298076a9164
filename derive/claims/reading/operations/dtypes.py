"""Dtypes of entries: bool, integer or float, and torch's rules of promotion.

Promotion takes the larger of two (``promoted`` of ``values.py``); bit widths are not tracked. Where
torch rejects integers or bools, so does the reader; a value written into an integer tensor is read
as truncated.
"""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Integer, Ne

from derive.claims.reading.operations.choosing import chosen, related
from derive.claims.reading.refusals import Refusal
from derive.claims.reading.values import (
    BOOL,
    DTYPES,
    FLOAT,
    INT,
    MASK,
    NUMBER,
    Space,
    TextValue,
    entries,
)
from derive.language.symbols import is_constant

WORDS = {BOOL: "bools", INT: "integers", FLOAT: "floats"}
AS_FLOATS = "make floats first: .float(), or a dtype"


@dataclass(frozen=True)
class Dtype:
    """A dtype, or a device, which has no effect and is None."""

    dtype: str | None = None


def asked(dtype, default: str, device=None) -> str:
    """The dtype an argument asks for, else ``default``."""
    for argument, kinds in ((dtype, Dtype), (device, (Dtype, str))):  # a device may be a string
        if argument is not None and not isinstance(argument, kinds):
            raise Refusal("this is not a dtype", "write dtype=torch.float32")
    return default if dtype is None or dtype.dtype is None else dtype.dtype


def floats(x: TextValue, what: str) -> TextValue:
    """``x``, if it holds floats: torch rejects other dtypes for ``what``."""
    if x.dtype != FLOAT:
        raise Refusal(f"torch does not support {what} of {WORDS[x.dtype]}", AS_FLOATS)
    return x


def numbers(x: TextValue, what: str) -> TextValue:
    """``x``, if it does not hold bools."""
    if x.kind == MASK and not x.by_name:
        raise Refusal(
            f"torch does not support {what} of bools", "make them numbers: (x > 0).float()"
        )
    return x


def of_one_dtype(a: TextValue, b: TextValue, what: str) -> None:
    """Raise `Refusal` unless both have one dtype: torch does not promote here."""
    if a.dtype != b.dtype:
        raise Refusal(
            f"{what} of {WORDS[a.dtype]} and {WORDS[b.dtype]}: torch raises an error",
            "make both floats: .float()",
        )


def in_place(into: TextValue, result: TextValue) -> TextValue:
    """The result of an in-place operation, refused, as in torch, if it would be truncated."""
    if DTYPES.index(result.dtype) > DTYPES.index(into.dtype):
        raise Refusal(
            f"the result is {WORDS[result.dtype]}, and the tensor that it is written into holds "
            f"{WORDS[into.dtype]}: torch raises an error",
            AS_FLOATS,
        )
    return result


def converted(space: Space, x: TextValue, dtype: str) -> TextValue:
    """``x`` as ``copy_`` and ``to`` convert it: a number is truncated to an integer, with a remark;
    any other possible fraction is refused.
    """
    if x.dtype == dtype:
        return x
    if dtype == BOOL:
        return entries(_truth(space, x), BOOL)
    if dtype == INT and x.dtype == FLOAT and not x.expression.is_integer:
        return entries(_cut(space, x), INT)
    return entries(x, dtype)


def _truth(space: Space, x: TextValue) -> TextValue:
    """1 where an entry is not 0."""
    e = chosen((1, related(Ne, x.expression, Integer(0))), (0, True))
    if x.expression.is_number and e != x.expression:
        space.remark(f"torch converts {x.expression} to True, because the tensor holds bools")
    return space.made(e, x.dims, x.extent.inside())


def _cut(space: Space, x: TextValue) -> TextValue:
    e = x.expression
    if not is_constant(e) or not e.is_number:
        raise Refusal("torch truncates floats that become integers", AS_FLOATS)
    whole = Integer(int(e))
    space.remark(f"torch truncates {e} to {whole}, because the tensor holds integers; {AS_FLOATS}")
    return space.made(whole, x.dims, x.extent, kind=x.kind)


def source_of(space: Space, into: TextValue, x: TextValue) -> TextValue:
    """The source of a write at an index of ``into``: a number is converted as by ``copy_``, a
    tensor must have the same dtype.
    """
    if x.kind == NUMBER:
        return converted(space, x, into.dtype)
    if x.dtype != into.dtype:
        raise Refusal(
            f"{WORDS[x.dtype]} are written into {WORDS[into.dtype]}: torch raises an error",
            "make both floats: .float()",
        )
    return x
