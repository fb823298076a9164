"""``-oo`` as a branch of a `Piecewise`: a score that is masked out."""

import pytest
import torch
import torch.nn.functional as F
from generating import assert_same_gradients, draw, forward_file, generated, pages

from codegen.commands.cli import gradform
from derive import NotationError, forward_from

MASKED_SOFTMAX = """    x = Input(N, K)
    mask = Given(N, K)
    score = Piecewise((x, Ne(mask, 0)), (-oo, True))
    largest = Max(score, K)
    top = Piecewise((0, Eq(largest, -oo)), (largest, True))
    counts = exp(score - top)
    total = Sum(counts, K)
    y = Piecewise((counts / total, total > 0), (0, True))
"""
GUARDED = """    x = Input(N, C)
    logs = Piecewise((log(x), x > 0), (0, True))
    y = Sum(logs, C)
"""


@pytest.fixture(scope="module")
def softmax(tmp_path_factory):
    folder = tmp_path_factory.mktemp("masked")
    return generated(forward_file(folder, "MaskedSoftmax", MASKED_SOFTMAX), folder)


def test_a_masked_softmax_is_that_of_torch(softmax):
    function, *_ = softmax
    x, mask = draw(5, 4), draw(5, 4, seed=3) > -0.5
    mask[:, 0] = True
    assert_same_gradients(
        lambda x: function(x, mask), lambda x: F.softmax(x.masked_fill(~mask, -torch.inf), 1), x
    )


def test_a_row_that_is_masked_out_as_a_whole_is_zero(softmax):
    function, *_ = softmax
    x, mask = draw(3, 4).requires_grad_(), torch.ones(3, 4, dtype=torch.bool)
    mask[1] = False
    y = function(x, mask)
    y.backward(draw(3, 4, seed=5))
    assert torch.equal(y[1], torch.zeros(4)) and torch.equal(x.grad[1], torch.zeros(4))
    assert x.grad.isfinite().all() and x.grad[0].abs().min() > 0


def test_what_is_masked_out_may_be_no_number(softmax):
    function, *_ = softmax
    x, mask = draw(3, 4), torch.ones(3, 4, dtype=torch.bool)
    mask[1, 2] = False
    clean, marred = x.clone().requires_grad_(), x.clone()
    marred[1, 2] = torch.nan
    marred.requires_grad_()
    for leaf in (clean, marred):
        function(leaf, mask).backward(draw(3, 4, seed=5))
    assert torch.equal(clean.grad, marred.grad)


def test_nothing_leaks_from_the_branch_that_is_not_taken(tmp_path):
    function, *_ = generated(forward_file(tmp_path, "Guarded", GUARDED), tmp_path)
    x = torch.tensor([[2.0, 0.0, -1.0]], dtype=torch.float64, requires_grad=True)
    function(x).backward(torch.full((1,), 1e308, dtype=torch.float64))
    assert torch.equal(x.grad[0, 1:], torch.zeros(2, dtype=torch.float64))


def test_pages_and_checks_hold_it(softmax, tmp_path):
    *_, result = softmax
    written = pages(result.proved)
    for format, shown in {"text": "\N{MINUS SIGN}∞", "latex": r"-\infty", "html": "∞"}.items():
        assert shown in written[format], format
    file = forward_file(tmp_path, "MaskedSoftmax", MASKED_SOFTMAX)
    right = "y*(dy - (dy*y).sum(1, keepdim=True))"
    assert gradform(["check", str(file), "--of", "x", right.replace("- (", "+ (")]) == 1


def test_a_score_of_minus_infinity_is_told_apart(tmp_path):
    body = "    x = Input(N)\n    y = Piecewise((x**2, x > -oo), (3, True))\n"
    function, *_ = generated(forward_file(tmp_path, "Kept", body), tmp_path)
    x = torch.tensor([2.0, -torch.inf, -1.0], dtype=torch.float64, requires_grad=True)
    y = function(x)
    y.sum().backward()
    assert y.tolist() == [4, 3, 1] and x.grad.tolist() == [4, 0, -2]


@pytest.mark.parametrize(
    "line", ["y = x - oo", "y = exp(x) * oo", "y = Piecewise((oo, x > 0), (x, True))"]
)
def test_an_infinity_elsewhere_is_refused(line, tmp_path):
    with pytest.raises(NotationError, match="-oo may be a branch"):
        forward_from(forward_file(tmp_path, "Mine", f"    x = Input(N)\n    {line}\n"))


def test_an_infinite_factor_does_not_leak_where_it_is_masked_out(tmp_path):
    body = """    x = Input(N)
    weight = Given(N)
    mask = Given(N)
    scaled = weight * x
    y = Piecewise((scaled, Ne(mask, 0)), (0, True))
"""
    function, *_ = generated(forward_file(tmp_path, "Weighted", body), tmp_path)
    x = draw(3).requires_grad_()
    weight, mask = torch.tensor([2.0, torch.inf, torch.nan]).double(), torch.tensor([1, 0, 0])
    function(x, weight, mask).sum().backward()
    assert x.grad.tolist() == [2, 0, 0]


def test_a_choice_inside_of_a_sum_stays_inside_of_a_condition(tmp_path):
    """SymPy would compare every entry of the mask in place of their sum."""
    body = """    x = Input(N, C)
    mask = Given(N, C)
    y = Piecewise((2 * x, Eq(Sum(Piecewise((1, Ne(mask, 0)), (0, True)), C), 0)), (x, True))
"""
    function, *_ = generated(forward_file(tmp_path, "Doubled", body), tmp_path)
    x, mask = draw(3, 4), torch.tensor([[0, 1, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1]])
    factors = torch.tensor([1.0, 2.0, 1.0], dtype=x.dtype)[:, None]
    assert torch.equal(function(x, mask), factors * x)
    assert_same_gradients(lambda x: function(x, mask), lambda x: factors * x, x)


def test_a_largest_entry_may_be_compared_with_minus_infinity(tmp_path):
    """It is -oo where nothing takes part, although every entry of the input is a number."""
    body = """    x = Input(N, C)
    mask = Given(N, C)
    score = Piecewise((x, Ne(mask, 0)), (-oo, True))
    y = Piecewise((2 * x, Eq(Max(score, C), -oo)), (x, True))
"""
    function, *_ = generated(forward_file(tmp_path, "Doubled", body), tmp_path)
    x, mask = draw(3, 4), torch.tensor([[0, 1, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1]])
    factors = torch.tensor([1.0, 2.0, 1.0], dtype=x.dtype)[:, None]
    assert torch.equal(function(x, mask), factors * x)
