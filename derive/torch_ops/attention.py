"""Attention."""

from __future__ import annotations

import sympy

from derive.torch_ops.formulas import where
from derive.torch_ops.products import matmul
from derive.torch_ops.reducing import soft
from derive.torch_ops.table import FLOAT, AnyTensor, Flag, Number, Tensor, op
from derive.torch_ops.trees import MINUS_INFINITY, number


def turned(a, x):
    """With its last two dimensions the other way round."""
    *front, row, column = range(x.rank)
    return a.permuted(x, [*front, column, row])


def mixed(a, query, key, value, how):
    """(what is looked up, the weights of it)."""
    mask, is_causal, scale = how
    scores = matmul(a, query, turned(a, key))
    if scale is None:
        root = number(sympy.sqrt(a.count(query, [query.rank - 1])))
        scores = a.each(lambda s: s / root, scores)
    else:
        scores = a.each(lambda c, s: c * s, scale, scores)
    rank = scores.rank
    if is_causal:
        seen = lambda s, i, j: where(j <= i, s, MINUS_INFINITY)  # noqa: E731
        places = (a.position(scores, rank - k) for k in (2, 1))
        scores = a.each(seen, scores, *places)
    if mask is not None and a.is_condition(mask):
        scores = a.chosen(mask, scores, MINUS_INFINITY)
    elif mask is not None:
        scores = a.each(lambda s, m: s + m, scores, mask)
    probs = a.let("probs", soft(a, scores, rank - 1))
    return matmul(a, probs, value), probs


@op("scaled_dot_product_attention", forms="F", called="mixed", of=FLOAT)
def _attention(
    a, query: Tensor, key: Tensor, value: Tensor, attn_mask: AnyTensor | None = None,
    dropout_p: Number = 0.0, is_causal: Flag = False, *, scale: Number | None = None,
    enable_gqa: Flag = False,
):  # fmt: skip
    if not a.is_zero(dropout_p):
        a.refuse("attention with dropout", "pass dropout_p=0.0, as in evaluation")
    if enable_gqa:
        a.refuse("attention with grouped queries", "repeat keys and values first")
    if attn_mask is not None and is_causal:
        a.refuse("attention with a mask that is causal too", "torch takes one of them")
    return mixed(a, query, key, value, (attn_mask, is_causal, scale))[0]
