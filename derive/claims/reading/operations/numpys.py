"""Functions that only numpy has, or that differ in numpy.

A text is numpy if it names numpy and not torch, or names neither but calls a numpy-only method:
``dx = dy.copy()``. Its methods are then numpy's too: ``x.var(0)`` divides by the number of entries,
and ``x.max(0)`` is not a pair.
"""

from __future__ import annotations

from collections.abc import Callable

from derive.claims.reading.arrays import shared
from derive.claims.reading.operations.entries import Operation, entry
from derive.claims.reading.operations.functions import functions
from derive.claims.reading.operations.making import making
from derive.claims.reading.operations.products import matmul
from derive.claims.reading.operations.shaping import shape_of, shaping
from derive.claims.reading.values import Space, TextValue, number

ATTRIBUTES: dict[str, Callable] = {"size": lambda space, x: size_of(space, x)}
NO_LESS = number(0)  # degrees of freedom

numpys: dict[str, Operation] = {
    "max": shared["amax"],
    "min": shared["amin"],
    "copy": making["clone"],
    "asarray": making["detach"],
    **dict.fromkeys(("float32", "float64"), making["detach"]),
    "power": functions["pow"],
    "fabs": shared["abs"],
    "heaviside": shared["heaviside"],
    "ravel": shared["ravel"],
    "expand_dims": shared["unsqueeze"],
    "transpose": shared["t"],
}


@entry(numpys, "dot", "matmul")
def _dot(space: Space, a: TextValue, b: TextValue):
    return matmul(space, a, b)


@entry(numpys, "var")
def _var(
    space: Space, a: TextValue, dim=None, dtype=None, *, ddof: TextValue = NO_LESS, keepdim=False
):
    return shared["var"].compute(space, a, dim, keepdim=keepdim, correction=ddof)


@entry(numpys, "std")
def _std(
    space: Space, a: TextValue, dim=None, dtype=None, *, ddof: TextValue = NO_LESS, keepdim=False
):
    return shared["std"].compute(space, a, dim, keepdim=keepdim, correction=ddof)


@entry(numpys, "sum")
def _sum(space: Space, a: TextValue, dim=None, dtype=None, *, keepdim=False):
    return shared["sum"].compute(space, a, dim, keepdim, dtype=dtype)


@entry(numpys, "mean")
def _mean(space: Space, a: TextValue, dim=None, dtype=None, *, keepdim=False):
    return shared["mean"].compute(space, a, dim, keepdim, dtype=dtype)


@entry(numpys, "astype", forms="method")
def _astype(space: Space, a: TextValue, dtype):
    return making["to"].compute(space, a, dtype)


@entry(numpys, "array", forms="torch")
def _array(space: Space, input, dtype=None, *, copy=True):
    if isinstance(input, tuple):
        return making["tensor"].compute(space, input, dtype)
    made = making["clone"].compute(space, input)
    return made if dtype is None else making["to"].compute(space, made, dtype)


@entry(numpys, "size", forms="torch")
def size_of(space: Space, a: TextValue, axis=None):
    """The number of entries of a tensor, or along one axis."""
    if axis is None:
        return shaping["numel"].compute(space, a)
    return shaping["size"].compute(space, a, axis)


@entry(numpys, "shape", forms="torch")
def _shape(space: Space, a: TextValue):
    return shape_of(space, a)


linalg: dict[str, Operation] = {}  # of torch.linalg and np.linalg
