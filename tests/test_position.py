"""`Position`: the index along an axis, in comparisons: causal masks, all pairs but oneself."""

import pytest
import torch
from generating import assert_same_gradients, draw, forward_file, generated

from codegen.commands.cli import gradform
from derive import NotationError, check, derive, forward_from

CAUSAL = """    x = Input(N, K)
    kept = Piecewise((x**2, Position(K) <= Position(N)), (0, True))
    y = Sum(kept, K)
"""
PAIRS = """    x = Input(N, D)
    square = Sum((x - Rename(x, N, M))**2, D)
    other = Piecewise((square, Ne(Position(N), Position(M))), (0, True))
    y = Sum(exp(-other), M)
"""


def causal_by_hand(x):
    return (x**2).tril().sum(1)


def pairs_by_hand(x):
    square = ((x[:, None] - x) ** 2).sum(2)
    return torch.exp(-square * (1 - torch.eye(len(x), dtype=x.dtype))).sum(1)


def own_file(folder, name, body):
    file = forward_file(folder, name, body)
    file.write_text(file.read_text().replace("class", 'M = Axis("M")\n\n\nclass', 1))
    return file


@pytest.mark.parametrize(
    ("body", "by_hand", "shape", "code"),
    [
        (CAUSAL, causal_by_hand, (4, 5), "torch.arange"),
        (PAIRS, pairs_by_hand, (4, 3), "_with_diagonal"),
    ],
    ids=["causal", "pairs"],
)
def test_values_and_gradients_are_those_of_torch(body, by_hand, shape, code, tmp_path):
    function, _module, result = generated(own_file(tmp_path, "Placed", body), tmp_path)
    assert_same_gradients(function, by_hand, draw(*shape))
    assert code in result.text


@pytest.mark.parametrize("body", [CAUSAL, PAIRS], ids=["causal", "pairs"])
def test_it_is_proved_for_every_size(body, tmp_path):
    proved = derive(forward_from(own_file(tmp_path, "Placed", body)))
    assert all(gradient.every_size for gradient in proved.gradients)


def test_a_wrong_comparison_is_refuted(tmp_path):
    forward = forward_from(own_file(tmp_path, "Placed", CAUSAL))
    right = "2*x*dy*Piecewise((1, Position(K) <= Position(N)), (0, True))"
    assert check(forward, right, of="x").right
    assert check(forward, right.replace("<=", "<"), of="x").right is False


def test_every_page_shows_it(tmp_path, capsys):
    file = own_file(tmp_path, "Placed", CAUSAL)
    for format, shown in {
        "text": "index[K] ≤ index[N]",
        "latex": r"\mathrm{index}_{K}",
        "html": "index",
        "markdown": r"\mathrm{index}_{K}",
    }.items():
        page = tmp_path / "page"
        assert gradform(["show", str(file), "--format", format, "--output", str(page)]) == 0
        assert shown in page.read_text(), format


def test_it_takes_one_axis(tmp_path):
    file = forward_file(tmp_path, "Placed", "    x = Input(N)\n    y = x * Position(x)\n")
    with pytest.raises(NotationError, match=r"Position\(x\): it takes one axis"):
        forward_from(file)
