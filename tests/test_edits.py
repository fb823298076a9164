"""Edit the mathematics, generate again: code, docstring and proof follow, and nothing else is
touched.
"""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from generating import assert_same_gradients, draw, generated, labels

import derive

MATH = Path(derive.__file__).parent / "math"
X, GAIN, BIAS, TARGET = draw(7, 4), draw(4, seed=3), draw(4, seed=4), labels(7, 4)


def edited(folder: Path, name: str, *changes: tuple[str, str]) -> Path:
    """A copy of the project's own file with lines changed."""
    text = (MATH / f"{name}.py").read_text()
    for old, new in changes:
        assert text.count(old) == 1, f"{name}.py no longer reads {old!r}"
        text = text.replace(old, new)
    file = folder / f"{name}.py"
    file.write_text(text)
    return file


def biased(x, gain, bias):
    return F.batch_norm(x, None, None, gain, bias, training=True, eps=1e-5)


def eps_outside(x, gain, bias):
    return gain * (x - x.mean(0)) / (x.std(0) + 1e-5) + bias


NORM_EDITS = {
    "n-1 to n": ([("(N - 1)  # Bessel's correction", "N")], biased, "dgain*xhat/N"),
    "eps outside the root": (
        [("(var + eps) ** Rational(-1, 2)", "1 / (var ** Rational(1, 2) + eps)")],
        eps_outside,
        "sqrt(var)",
    ),
}


@pytest.mark.parametrize("edit", NORM_EDITS)
def test_an_edited_batch_norm(edit, tmp_path):
    changes, reference, formula = NORM_EDITS[edit]
    function, _, result = generated(edited(tmp_path, "batch_norm", *changes), tmp_path)
    assert_same_gradients(function, reference, X, GAIN, BIAS)
    assert formula in result.text and result.proved.every_size
    assert result.text.count("dgain*xhat/(N - 1))") == 0


def test_without_bessels_correction_one_row_is_allowed(tmp_path):
    changes, *_ = NORM_EDITS["n-1 to n"]
    function, _, _ = generated(edited(tmp_path, "batch_norm", *changes), tmp_path)
    assert torch.equal(function(X[:1], GAIN, BIAS), BIAS[None])


LOSS = "loss = -Sum(OneHot(labels, C) * logprobs, N, C) / N"


def test_the_mean_loss_as_a_sum(tmp_path):
    file = edited(tmp_path, "softmax_nll", (LOSS, LOSS.removesuffix(" / N")))
    function, _, result = generated(file, tmp_path)
    assert_same_gradients(function, lambda z, t: F.cross_entropy(z, t, reduction="sum"), X, TARGET)
    assert "dlogits = dloss*(probs - OneHot(labels, C))\n" in result.text
    empty = function(torch.zeros(0, 4), torch.zeros(0, dtype=torch.long))
    assert empty == 0  # nothing divides by N any more


def test_a_clamp_on_the_loss_stops_the_gradient_of_the_rows_above_it(tmp_path):
    row = "row = -Sum(OneHot(labels, C) * logprobs, C)\n    loss = Sum(Min(row, 1), N) / N"
    file = edited(tmp_path, "softmax_nll", (LOSS, row), ("import exp, log", "import Min, exp, log"))
    function, _, _ = generated(file, tmp_path)

    def clamped(z, t):
        return F.cross_entropy(z, t, reduction="none").clamp(max=1).mean()

    assert_same_gradients(function, clamped, X, TARGET)
    logits = X.clone().requires_grad_()
    function(logits, TARGET).backward()
    above = F.cross_entropy(X, TARGET, reduction="none") > 1
    assert above.any() and not above.all()
    assert (logits.grad[above] == 0).all() and (logits.grad[~above] != 0).all()


def test_a_loss_for_each_row(tmp_path):
    file = edited(tmp_path, "softmax_nll", (LOSS, "loss = -Sum(OneHot(labels, C) * logprobs, C)"))
    function, _, _ = generated(file, tmp_path)
    assert_same_gradients(function, lambda z, t: F.cross_entropy(z, t, reduction="none"), X, TARGET)
