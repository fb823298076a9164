"""The evaluator that random forwards are compared with is compared with torch's functionals."""

import pytest
import torch
import torch.nn.functional as F
from generating import draw, labels
from random_forwards.plain_torch import GALLERY, evaluate
from torch.nn.functional import scaled_dot_product_attention as attention

X = draw(4, 3)
IGNORED = torch.tensor([2, -1, 0, 1])
Q, K, V = (draw(2, n, 4, seed=n) for n in (5, 6, 7))
K, V = K[:, :5], V[:, :5]


def lstm(x, h, c, weight_ih, weight_hh):
    return torch.stack(torch._VF.lstm_cell(x, (h, c), weight_ih, weight_hh, None, None))


CASES = {
    "CrossEntropy": (
        {"logits": X[..., None], "labels": IGNORED[:, None], "label_smoothing": 0.1},
        F.cross_entropy(X, IGNORED, ignore_index=-1, label_smoothing=0.1),
    ),
    "GroupNorm": (
        {"x": draw(2, 6, 5), "gain": draw(6), "groups": 3},
        F.group_norm(draw(2, 6, 5), 3, draw(6)),
    ),
    "CausalAttention": ({"query": Q, "key": K, "value": V}, attention(Q, K, V, is_causal=True)),
    "LSTMCell": (
        arguments := {
            "x": draw(4, 3),
            "h": draw(4, 2, seed=3),
            "c": draw(4, 2, seed=4),
            "weight_ih": draw(8, 3, seed=5),
            "weight_hh": draw(8, 2, seed=6),
        },
        lstm(*arguments.values()),
    ),
    "Embedding": (
        {"index": labels(7, 5).reshape(7), "table": draw(5, 3)},
        draw(5, 3)[labels(7, 5)],
    ),
    "SmoothL1": ({"x": X[0], "target": 3 * X[1]}, F.smooth_l1_loss(X[0], 3 * X[1])),
    "Var": ({"x": X}, X.var(-1)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_forward_of_the_gallery_is_torchs(name):
    arguments, expected = CASES[name]
    (text,) = [
        file.read_text() for file in GALLERY.glob("*.py") if f"class {name}(" in file.read_text()
    ]
    torch.testing.assert_close(evaluate(text, name, arguments).output.data, expected)


def test_of_equal_entries_the_first_is_the_largest():
    text = """from derive import Axis, Forward, Input, Max
N = Axis("N")
class Largest(Forward):
    x = Input(N)
    y = Max(x, N)
"""
    x = torch.tensor([1.0, 3.0, 3.0], requires_grad=True)
    (gradient,) = torch.autograd.grad(evaluate(text, "Largest", {"x": x}).output.data, x)
    assert gradient.tolist() == [0, 1, 0]
