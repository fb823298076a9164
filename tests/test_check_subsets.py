"""A Function is asked for some of its gradients only: every case that its code can tell apart."""

import pytest

from codegen.backwards.checking import check_function

HEAD = """
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def reference(x, w):
    return x @ w

"""
SETUP = """
class F(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        dx = dw = None
"""
SAVES = """
class F(Function):
    @staticmethod
    def forward(x, w):
        return x @ w

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w = inputs
        need_x, need_w = ctx.needs_input_grad
        ctx.save_for_backward(x if {0} else None, w if {1} else None)

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        need_x, need_w = ctx.needs_input_grad
        return dy @ w.t() if need_x else None, x.t() @ dy if need_w else None
"""
BETWEEN = """
class F(Function):
    @staticmethod
    def forward(ctx, x, k=2, w=None):
        ctx.save_for_backward(x, w)
        return k * (x @ w)

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        dw = 2 * (x.t() @ dy) if ctx.needs_input_grad[{0}] else None
        return 2 * (dy @ w.t()), None, dw
"""
TWO = """
class F(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        n = (x > 0).sum()
        ctx.mark_non_differentiable(n)
        return x * x, x.exp(), n

    @staticmethod
    def backward(ctx, da, db, _):
        x, = ctx.saved_tensors
"""
LINES = {  # of the backward of a product: is it right, and what is said
    "return dy @ w.t(), x.t() @ dy if all(ctx.needs_input_grad) else None": "only w needs",
    "if ctx.needs_input_grad[1]: dx = dy @ w.t()\n"
    "        if ctx.needs_input_grad[0]: dw = x.t() @ dy\n"
    "        return dx, dw": "dx of F is None where only x needs",
    "need_x, need_w = ctx.needs_input_grad\n"
    "        if need_x: dx = dy @ w.t()\n"
    "        if need_w: dw = x.t() @ dy\n"
    "        return dx, dw": "",
    "if not any(ctx.needs_input_grad): return None, None\n"
    "        return dy @ w.t(), x.t() @ dy": "",
    "scale = sum(ctx.needs_input_grad)\n"
    "        return dy @ w.t(), scale / 2 * (x.t() @ dy)": "dw of F differs",
    "if ctx.needs_input_grad[0]: g = dy @ w.t()\n        return g, x.t() @ dy": "raises",
}
CASES = {
    **{f"line {i}": (SETUP + f"        {x}\n", LINES[x]) for i, x in enumerate(LINES)},
    "saved as needed": (SAVES.format("need_w", "need_x"), ""),
    "saved the wrong way": (SAVES.format("need_x", "need_w"), "raises AttributeError"),
    "behind a number": (BETWEEN.format(-1), ""),
    "the number's place": (BETWEEN.format(1), "None is returned"),
    "the first for the last": (BETWEEN.format(0), "dw of F is None where only w needs"),
    "None arrives": (TWO + "        return 2 * x * da + x.exp() * db\n", "only output 1 is used"),
    "an output is dropped": (
        TWO + "        if da is None: return None\n"
        "        return 2 * x * da + (0 if db is None else x.exp() * db)\n",
        "dx of F is None where only output 2 is used",
    ),
    "None is met": (
        TWO + "        dx = 0 if da is None else 2 * x * da\n"
        "        return dx if db is None else dx + x.exp() * db\n",
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_subset_is_looked_at(tmp_path, name):
    text, said = CASES[name]
    (tmp_path / "ops.py").write_text(HEAD + text)
    axes = "x: N" if "set_materialize_grads" in text else "x: N K, w: K M"
    verdict = check_function(f"{tmp_path}/ops.py:F", axes)
    assert verdict.outcome == ("wrong" if said else "right"), str(verdict)
    assert said in str(verdict)
    asks = "needs_input_grad" in text or "materialize" in text
    assert asks == (bool(verdict.partly) or "the same where only some" in str(verdict))
    of = "outputs" if "set_materialize_grads" in text else "gradients"
    first = str(verdict).partition("\n")[0]
    assert first.endswith(f"every subset of {of})") == (asks and not said), first
    assert repr(verdict).startswith(first) or said


def test_what_needs_no_gradient_is_not_asked_for(tmp_path):
    line = "return dy @ w.t() if not ctx.needs_input_grad[1] else None, None"
    (tmp_path / "ops.py").write_text(f"{HEAD}{SETUP}        {line}\n")
    assert check_function(f"{tmp_path}/ops.py:F", "x: N K, w: K M given").outcome == "right"


def test_each_alone_is_compared_with_a_reference(tmp_path):
    line = "return dy @ w.t(), x.t() @ dy if ctx.needs_input_grad[0] else None"
    (tmp_path / "ops.py").write_text(f"{HEAD}{SETUP}        {line}\n")
    verdict = check_function(f"{tmp_path}/ops.py:F", "x: N K, w: K M", like="reference")
    assert verdict.wrong == ["dw"] and "where only w needs a gradient" in str(verdict)
