"""Normalizations, and attention."""

from __future__ import annotations

from functools import partial

import sympy

from codegen.importing.calls import operation_of
from codegen.importing.operations.pointwise import sqrt
from codegen.importing.operations.products import matmul
from codegen.importing.operations.reducing import softmax, spread
from codegen.importing.operations.table import rule
from codegen.importing.operations.viewing import transposed
from codegen.importing.values import CONDITION, Refused, Value
from derive.torch_ops import trees
from derive.torch_ops.trees import MINUS_INFINITY

SMALLEST = 2.220446049250313e-16  # torch's eps of an RMS norm that names none, in float64
EVALUATED = "call .eval() on the module, or pass no running statistics"


def normalized(r, x: Value, positions, eps) -> Value:
    """(x - mean) / sqrt(var + eps), with a statement for each step."""
    var, mean = spread(r, x, positions, True, 0)
    var = r.let("var", var)
    diff = r.sum_like(trees.difference, x, mean)
    known = next((s for s in reversed(r.statements) if s.tree == diff.tree), None)
    diff = diff if known is None else diff.of(trees.tensor(known.name, diff.tree.free))
    return r.let("xhat", scaled(r, diff, var, eps))


def scaled(r, diff: Value, var: Value, eps) -> Value:
    return r.pointwise(
        lambda d, v: trees.quotient(d, sqrt(trees.sum_of(v, trees.number(eps)))), diff, var
    )


def affine(r, y: Value, weight, bias) -> Value:
    y = y if weight is None else r.pointwise(trees.product, weight, y)
    return y if bias is None else r.sum_like(trees.sum_of, y, bias)


NATIVE = ("_native_batch_norm_legit", "_native_batch_norm_legit_no_training")


@rule("batch_norm", *NATIVE, called="normed")
def _batch_norm(
    r, x, weight=None, bias=None, running_mean=None, running_var=None, training=True, eps=0,
    momentum=0, cudnn_enabled=True,
):  # fmt: skip
    """As torch has it, and as its functional form has: with the statistics behind the output, and
    a name of its own where they are not of the batch.

    Long: torch's arguments.
    """
    own = operation_of(r.node)
    training = training and own != NATIVE[1]
    across = partial(_across, rank=x.rank)
    if training:
        x = r.let("u", r.as_number(x))
        y = normalized(r, x, [i for i in range(x.rank) if i != 1], eps)
    elif running_mean is None:
        raise Refused("a batch norm without statistics", EVALUATED)
    else:
        diff = r.sum_like(trees.difference, x, across(running_mean))
        y = scaled(r, diff, across(running_var), eps)
    y = affine(r, y, *(None if v is None else across(v) for v in (weight, bias)))
    return y if own not in NATIVE else [y, Value(trees.ZERO), Value(trees.ZERO)]


def _across(v: Value, rank: int) -> Value:
    """Channels, in the second dimension."""
    return v.along((v.dims[0], *((),) * (rank - 2)))


@rule("_native_batch_norm_legit_functional")
def _batch_norm_again(r, x, weight=None, bias=None, training=True, eps=0, momentum=0,
                      running_mean=None, running_var=None):  # fmt: skip
    """Long: torch's arguments."""
    y = _batch_norm(r, x, weight, bias, running_mean, running_var, training, eps)
    return [y if isinstance(y, Value) else y[0], *(Value(trees.ZERO),) * 4]


@rule("instance_norm", called="normed")
def _instance_norm(
    r, x, weight=None, bias=None, running_mean=None, running_var=None, use_input_stats=True,
    eps=0, momentum=0, cudnn_enabled=True,
):  # fmt: skip
    """Long: torch's arguments."""
    if not use_input_stats:
        raise Refused("an instance norm with running statistics", EVALUATED)
    x = r.let("u", r.as_number(x))
    y = normalized(r, x, list(range(2, x.rank)), eps)
    return affine(r, y, *(None if v is None else _across(v, x.rank) for v in (weight, bias)))


@rule("group_norm", called="normed")
def _group_norm(r, x, num_groups, weight, bias, eps, cudnn_enabled=True):
    """Long: torch's arguments."""
    x = r.single(r.let("u", r.as_number(x)), 1)
    (axis,) = x.dims[1]
    groups, each = r.split(axis, r.sizes.plain(num_groups), {*x.axes})
    dims = (x.dims[0], (groups,), (each,), *x.dims[2:])
    parts = Value(r.unflattened(x, axis, (groups, each)), dims)
    y = normalized(r, parts, list(range(2, len(dims))), eps)
    y = y.of(trees.flatten(y.tree, (groups, each), axis)).along(x.dims)
    return affine(r, y, *(None if v is None else _across(v, x.rank) for v in (weight, bias)))


@rule("scaled_dot_product_attention", called="mixed")
def _attention(
    r, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
    enable_gqa=False,
):  # fmt: skip
    """Long: torch's arguments."""
    if dropout_p or enable_gqa:
        raise Refused("attention with dropout or grouped queries", "write it out")
    scores = matmul(r, query, transposed(key, -1, -2))
    root = r.number(sympy.sqrt(r.sizes.of(query.dims[-1])))
    if scale is None:
        scores = scores.of(trees.quotient(scores.tree, root))
    else:
        scores = r.pointwise(trees.product, scale, scores)
    if is_causal:
        (i,), (j,) = scores.dims[-2:]
        seen = trees.compared("<=", trees.position(j), trees.position(i))
        scores = scores.of(trees.choice((scores.tree, seen), otherwise=MINUS_INFINITY))
    elif attn_mask is not None and attn_mask.kind == CONDITION:
        scores = r.chosen(attn_mask, scores, Value(MINUS_INFINITY))
    elif attn_mask is not None:
        scores = r.sum_like(trees.sum_of, scores, attn_mask)
    probs = r.let("probs", softmax(r, scores, -1))
    return matmul(r, probs, value)
