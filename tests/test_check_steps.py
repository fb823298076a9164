"""Functions that round: what passes no gradient is read as straight through, by definition."""

import pytest

from codegen.backwards.checking import check_function

HEAD = """
import torch
from torch.autograd import Function
"""
CLASS = """
class Made(Function):
    @staticmethod
    def forward(ctx, {arguments}):
        ctx.save_for_backward({arguments})
        return {forward}

    @staticmethod
    def backward(ctx, dy):
        {arguments}, = ctx.saved_tensors
        return {backward}
"""
OF_X, OF_BOTH = ("x: N", "x"), ("x: N, s:", "x, s")
LEARNED = "torch.round((x / s).clamp(-4, 3)) * s"
INSIDE = "(((x / s) >= -4) & ((x / s) <= 3))"
OF_SIZE = "(dy * torch.where({0}, {1}, (x / s).clamp(-4, 3))).sum()"
# The arguments, the forward, the backward, the outcome, and what is said.
MADE = {
    "rounded": (OF_X, "x.round()", "dy", "by definition", "round in the forward"),
    "rounded, 0": (OF_X, "x.round()", "torch.zeros_like(dy)", "right", "proved"),
    "rounded, twice": (OF_X, "x.round()", "2 * dy", "wrong", "the coefficient of dy"),
    "cut off": (OF_X, "x.trunc()", "dy", "by definition", "floor and ceil"),
    "of n bits": (OF_X, "(x * 15).round() / 15", "dy", "by definition", "straight through"),
    "of n bits, scaled": (OF_X, "(x * 15).round() / 15", "dy / 15", "wrong", "straight through"),
    "learned": (
        OF_BOTH,
        LEARNED,
        f"dy * {INSIDE}, {OF_SIZE.format(INSIDE, '(x / s).round() - x / s')}",
        "by definition",
        "right by this: ds of Made",
    ),
    "learned, without the input": (
        OF_BOTH,
        LEARNED,
        f"dy * {INSIDE}, {OF_SIZE.format(INSIDE, '(x / s).round()')}",
        "wrong",
        "wrong: ds of Made",
    ),
    "a floor": (
        OF_BOTH,
        "torch.floor(x / s + 0.5) * s",
        "dy, (dy * (torch.floor(x / s + 0.5) - x / s)).sum()",
        "by definition",
        "floor in the forward",
    ),
    "a sign": (OF_X, "x.sign()", "dy * (x.abs() <= 1)", "by definition", "from -1 to 1"),
    "a sign of a size": (
        OF_X,
        "x.sign() * x.abs().mean()",
        "dy * x.abs().mean() + x.sign() * (dy * x.sign()).mean()",
        "by definition",
        "straight through",
    ),
    "a spike": (OF_X, "(x > 0).float()", "dy / (1 + x**2)", "not checked", "dx of Made is a surr"),
    "a spiked sign": (OF_X, "x.sign()", "dy / (1 + x**2)", "not checked", "surrogate"),
    "detached": (
        OF_X,
        "(x.round() - x).detach() + x**2",
        "2 * x * dy",
        "by definition",
        "round in the forward",
    ),
    "detached, as the value is": (
        OF_X,
        "(x.round() - x).data + x**2",
        "(2 * x - 1) * dy",
        "right",
        "proved",
    ),
}
LEAVING = {  # how a forward leaves the graph, in which a Function never was
    "detach": "return x.detach() * torch.detach(s)",
    "half of it": "return x * s.detach()",
    "data": "return x.data * s.data",
    "no_grad": "with torch.no_grad():\n            return x * s",
    "in place": "y = x.detach().clone()\n        y.mul_(s.detach())\n        return y.detach_()",
}


@pytest.mark.parametrize("name", MADE)
def test_the_reading_is_said(tmp_path, name):
    (axes, arguments), forward, backward, outcome, words = MADE[name]
    text = CLASS.format(arguments=arguments, forward=forward, backward=backward)
    (tmp_path / "made.py").write_text(HEAD + text)
    verdict = check_function(f"{tmp_path}/made.py:Made", axes)
    assert verdict.outcome == outcome and words in str(verdict)
    assert verdict.status == (outcome not in ("right", "by definition"))
    assert verdict.right == (outcome == "right")


@pytest.mark.parametrize("name", LEAVING)
@pytest.mark.parametrize(
    ("backward", "wrong"), [("dy * s, (dy * x).sum()", []), ("dy * s, dy.sum()", ["ds"])]
)
def test_what_leaves_the_graph_in_a_function_has_the_derivative_of_its_value(
    name, backward, wrong, tmp_path
):
    text = CLASS.format(arguments="x, s", forward="FORWARD", backward=backward)
    text = text.replace("return FORWARD", LEAVING[name])
    (tmp_path / "made.py").write_text(HEAD + text)
    assert check_function(f"{tmp_path}/made.py:Made", "x: N, s:").wrong == wrong


def test_at_ties_the_convention_is_that_of_the_value(tmp_path):
    """torch's own derivative of a forward that is detached would be none at all."""
    text = CLASS.format(arguments="x", forward="x.detach().clamp(min=0)", backward="dy * (x >= 0)")
    (tmp_path / "made.py").write_text(HEAD + text)
    assert check_function(f"{tmp_path}/made.py:Made", "x: N").right
    (tmp_path / "tied.py").write_text(
        HEAD + text.replace("clamp(min=0)", "abs()").replace("(x >= 0)", "x.sign()")
    )
    assert check_function(f"{tmp_path}/tied.py:Made", "x: N").right
