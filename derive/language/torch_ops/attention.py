"""Attention."""

from __future__ import annotations

from functools import reduce

import sympy

from derive.language.torch_ops.formulas import where
from derive.language.torch_ops.norms import equal_parts
from derive.language.torch_ops.products import linear, matmul
from derive.language.torch_ops.reducing import mean, soft
from derive.language.torch_ops.table import (
    FLOAT,
    AnyTensor,
    Default,
    Flag,
    Number,
    Size,
    Tensor,
    op,
)
from derive.language.torch_ops.trees import MINUS_INFINITY, number


def turned(a, x):
    """Transpose the last two dimensions."""
    *front, row, column = range(x.rank)
    return a.permuted(x, [*front, column, row])


def mixed(a, query, key, value, how):
    """Return (attention output, attention weights)."""
    mask, is_causal, scale = how
    if min(query.rank, key.rank, value.rank) < 2:
        a.misfit("attention of vectors", "it takes matrices, of a row for each place")
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
    if attn_mask is not None and is_causal:
        a.refuse("attention with both a mask and is_causal", "torch takes one of them")
    if not enable_gqa:
        return mixed(a, query, key, value, (attn_mask, is_causal, scale))[0]
    return _grouped(a, query, key, value, (attn_mask, is_causal, scale))


def _grouped(a, query, key, value, how):
    """Grouped-query attention: several query heads share one head of keys and values."""
    heads = query.rank - 3
    if how[0] is not None and how[0].rank > 2:
        a.refuse("grouped queries with one mask per head", "repeat keys and values first")
    query = a.apart(query, heads, a.count(key, [heads]))
    key, value = (a.unsqueezed(x, heads + 1) for x in (key, value))
    return a.together(mixed(a, query, key, value, how)[0], heads)


@op("multi_head_attention_forward", forms="F", called="mixed", of=FLOAT)
def _multi_head(
    a, query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: Size, num_heads: Size,
    in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None,
    bias_v: Tensor | None, add_zero_attn: Flag, dropout_p: Number, out_proj_weight: Tensor,
    out_proj_bias: Tensor | None, training: Flag = True, key_padding_mask: AnyTensor | None = None,
    need_weights: Flag = True, attn_mask: AnyTensor | None = None,
    use_separate_proj_weight: Flag = False, q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None,
    static_k: Default = None, static_v: Default = None, average_attn_weights: Flag = True,
    is_causal: Flag = False,
):  # fmt: skip
    """Sequences come first, then the batch; a bool mask is True where attention is blocked."""
    if training and not a.is_zero(dropout_p):
        a.refuse("attention with dropout", "pass training=False, or dropout_p=0.0")
    if bias_k is not None or bias_v is not None or add_zero_attn:
        a.refuse("attention with learned keys", "leave out bias_k, bias_v and add_zero_attn")
    weights = q_proj_weight, k_proj_weight, v_proj_weight
    if not use_separate_proj_weight:
        weights = equal_parts(a, in_proj_weight, 0, 3)
    biases = (None,) * 3 if in_proj_bias is None else equal_parts(a, in_proj_bias, 0, 3)
    single = query.rank == 2
    heads = []
    for x, w, b in zip((query, key, value), weights, biases, strict=True):
        x = linear(a, a.unsqueezed(x, 1) if single else x, w, b)
        heads.append(a.permuted(a.apart(x, 2, num_heads), [1, 2, 0, 3]))
    masks = _masks(a, attn_mask, key_padding_mask, a.count(heads[0], [0]))
    found, probs = mixed(a, *heads, (masks, is_causal and attn_mask is None, None))
    y = linear(a, a.together(a.permuted(found, [2, 0, 1, 3]), 2), out_proj_weight, out_proj_bias)
    probs = mean(a, probs, 1) if average_attn_weights else probs
    if single:
        y, probs = a.squeezed(y, [1]), a.squeezed(probs, [0])
    return y, probs if need_weights else None


def _masks(a, mask, padding, batch):
    """The additive mask: along batch, heads, queries, keys."""
    if mask is not None and mask.rank == 3:
        mask = a.apart(mask, 0, batch)
    if padding is not None:
        padding = a.unsqueezed(a.unsqueezed(padding, padding.rank - 1), padding.rank - 1)
    added = [
        a.chosen(m, MINUS_INFINITY, a.each(lambda x: number(0), m)) if a.is_condition(m) else m
        for m in (mask, padding)
        if m is not None
    ]
    return reduce(lambda m, n: a.each(lambda x, y: x + y, m, n), added) if added else None
