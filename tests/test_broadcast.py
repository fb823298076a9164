"""Arguments that are broadcast to their axes, as torch broadcasts."""

import pytest
import torch
import torch.nn.functional as F
from generating import assert_same_gradients, draw, forward_file, generated

from generated.bce_with_logits import bce_with_logits
from generated.biased_attention import biased_attention
from generated.masked_attention import masked_attention

WEIGHTED = """    x = Input(N, K)
    weight = Input(N, K, default=1, broadcast=True)
    y = x**2 * weight
"""
SHAPES = ((5, 6), (2, 1, 1, 6), (3, 1, 6), (2, 1, 5, 6), (2, 3, 5, 6))  # batch, heads, T, S


def attended():
    return [draw(2, 3, n, 4, seed=n).requires_grad_() for n in (5, 6, 6)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_mask_of_any_shape_is_torchs(shape):
    mask = draw(*shape, seed=9) > -0.5
    mask[..., 0] = True
    assert_same_gradients(
        lambda *tensors: masked_attention(*tensors, mask),
        lambda *tensors: F.scaled_dot_product_attention(*tensors, attn_mask=mask),
        *attended(),
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_gradient_of_what_is_broadcast_is_summed(shape):
    assert_same_gradients(
        biased_attention,
        lambda q, k, v, bias: F.scaled_dot_product_attention(q, k, v, attn_mask=bias),
        *attended(),
        draw(*shape, seed=9),
    )


@pytest.mark.parametrize("shape", [(3,), (4, 1), (1, 1), (), (4, 3)], ids=str)
def test_without_an_axis_of_any_number(shape, tmp_path):
    function, *_ = generated(forward_file(tmp_path, "Weighted", WEIGHTED), tmp_path)
    x, weight = draw(4, 3), draw(1, 4, 3, seed=2).sum_to_size(1, *shape)[0]
    assert_same_gradients(function, lambda x, weight: x**2 * weight, x, weight)
    assert torch.equal(function(x), x**2)
    target, weights = torch.rand_like(x), weight.abs()
    expected = F.binary_cross_entropy_with_logits(x, target, weights)
    torch.testing.assert_close(bce_with_logits(x, target, weights), expected)


@pytest.mark.parametrize("shape", [(4, 6), (2, 2, 5, 6), (7, 2, 3, 5, 6)], ids=str)
def test_what_cannot_be_broadcast_is_refused(shape):
    with pytest.raises(ValueError, match="mask"):
        masked_attention(*attended(), torch.ones(shape))


def test_what_is_no_tensor_is_refused():
    with pytest.raises(TypeError, match=r"mask must .*, got str"):
        masked_attention(*attended(), "causal")
