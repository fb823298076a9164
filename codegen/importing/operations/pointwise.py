"""Entrywise operations: functions, arithmetic, comparisons, choices."""

from __future__ import annotations

from codegen.importing.operations.table import rule
from codegen.importing.values import Refused
from derive.language.torch_ops import trees
from derive.language.torch_ops.trees import Tree


def exp(x: Tree) -> Tree:
    return trees.call("exp", x)


def sqrt(x: Tree) -> Tree:
    return trees.call("sqrt", x)


# Arithmetic


@rule("add", called="total")
def _add(r, x, other, alpha=1):
    return r.sum_like(trees.sum_of, x, _times(r, other, alpha))


@rule("sub", "subtract", called="diff")
def _sub(r, x, other, alpha=1):
    return r.sum_like(trees.difference, x, _times(r, other, alpha))


@rule("rsub", called="diff")
def _rsub(r, x, other, alpha=1):
    return r.sum_like(trees.difference, other, _times(r, x, alpha))


def _times(r, x, factor):
    return x if factor == 1 else r.pointwise(trees.product, factor, x)


@rule("div", "divide", "true_divide", called="ratio")
def _div(r, x, other, rounding_mode=None):
    if rounding_mode is not None:
        raise Refused("a rounding division", "divide without rounding_mode")
    return r.pointwise(trees.quotient, x, other)


@rule("pow", "float_power", called="power")
def _pow(r, x, exponent):
    return r.pointwise(trees.power, x, exponent)
